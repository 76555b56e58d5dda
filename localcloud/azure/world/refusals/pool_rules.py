"""Refusals about an agent pool, in its own PUT as in that of a cluster."""

from __future__ import annotations

import re
from base64 import b64decode

from localcloud.azure.world.refusals import machine_rules, node_settings, windows_rules
from localcloud.azure.world.refusals.rule import RefusalRule, RequestedWrite, outside, without
from localcloud.azure.world.refusals.windows_rules import windows
from shared.json_tree import Json

_TAINT = re.compile(r"[^=:\s]+=[^=:\s]*:(NoSchedule|PreferNoSchedule|NoExecute)")
_SURGE = re.compile(r"\d+%?")
_KUBERNETES = ("kubernetes.io", "k8s.io")
_FOR_NODES = ("kubelet.kubernetes.io", "node.kubernetes.io", "node-role.kubernetes.io")


def _labels_of_aks(asked: RequestedWrite) -> bool:
    """The label of a Spot pool is in AKS' own answer, and may come back."""
    return any(
        key.startswith("kubernetes.azure.com/") and key != "kubernetes.azure.com/scalesetpriority"
        for key in asked.says("nodeLabels") or {}
    )


def _labels_of_kubernetes(asked: RequestedWrite) -> bool:
    prefixes = [key.rpartition("/")[0] for key in asked.says("nodeLabels") or {}]
    return any(_within(prefix, _KUBERNETES) and not _within(prefix, _FOR_NODES) for prefix in prefixes)


def _within(prefix: str, domains: tuple[str, ...]) -> bool:
    return any(prefix == domain or prefix.endswith(f".{domain}") for domain in domains)


def _not_base64(asked: RequestedWrite) -> bool:
    text = asked.says("messageOfTheDay")
    try:
        return text is not None and not b64decode(text, validate=True)
    except ValueError:
        return True


def _ports(asked: RequestedWrite) -> bool:
    for statement in asked.says("networkProfile.allowedHostPorts") or ():
        first, last = statement.get("portStart", 1), statement.get("portEnd", 65535)
        if not 1 <= first <= last <= 65535:
            return True
    return False


def _wrong_price(asked: RequestedWrite) -> bool:
    price = asked.says("spotMaxPrice")
    if price is None or price == -1:
        return False
    decimals = f"{price:.10f}".rstrip("0").partition(".")[2]
    return bool(price <= 0 or len(decimals) > 5 or asked.now("scaleSetPriority") != "Spot")


def _number(asked: RequestedWrite) -> bool:
    settings = asked.says("upgradeSettings") or {}
    given = [settings[key] for key in ("maxSurge", "maxUnavailable") if settings.get(key)]
    return any(
        _SURGE.fullmatch(text) is None or (text.endswith("%") and int(text[:-1]) > 100) for text in given
    )


def _neither_surge_nor_unavailable(asked: RequestedWrite) -> bool:
    zero = ("0", "0%")
    return asked.now("upgradeSettings.maxSurge") in zero and asked.now("upgradeSettings.maxUnavailable") in (
        None,
        *zero,
    )


def _stops_unready(asked: RequestedWrite) -> bool:
    stops = asked.says("powerState.code") == "Stopped" and asked.was("powerState.code") != "Stopped"
    return bool(stops and asked.was("provisioningState") != "Succeeded")


def _pods_of_all(asked: RequestedWrite) -> int:
    nodes = asked.now("maxCount") if asked.now("enableAutoScaling") else asked.now("count")
    return (nodes or 0) * (asked.now("maxPods") or 0)


def _dns_overrides(asked: RequestedWrite) -> list[tuple[str, str, Json]]:
    return [
        (kind, domain, override)
        for kind in ("vnetDNSOverrides", "kubeDNSOverrides")
        for domain, override in (asked.now(f"localDNSProfile.{kind}") or {}).items()
    ]


def _dns_loops(asked: RequestedWrite) -> bool:
    pairs = [
        (kind, domain, override.get("forwardDestination")) for kind, domain, override in _dns_overrides(asked)
    ]
    outside = any(
        kind == "vnetDNSOverrides"
        and to == "ClusterCoreDNS"
        and domain.split(".")[-2:] != ["cluster", "local"]
        for kind, domain, to in pairs
    )
    return outside or any(domain == "cluster.local" and to == "VnetDNS" for _, domain, to in pairs)


RULES = (
    RefusalRule(
        "system-is-linux-and-regular",
        "docs use-system-pools: Linux; docs spot-node-pool: not the default node pool",
        "mode",
        "A System agent pool must be a regular Linux pool.",
        lambda asked: (
            asked.now("mode") == "System" and (windows(asked) or asked.now("scaleSetPriority") == "Spot")
        ),
    ),
    *windows_rules.RULES,
    RefusalRule(
        "spot-without-surge",
        "hashicorp/terraform-provider-azurerm#19355; Azure/bicep-types-az#2217; "
        "XenitAB/terraform-modules#755",
        "agentPoolProfile.upgrade.maxSurge",
        "The value of parameter agentPoolProfile.upgrade.maxSurge is invalid. Error details: Spot pools "
        "can't set max surge. Please see https://aka.ms/aks-naming-rules for more details.",
        lambda asked: (
            asked.now("scaleSetPriority") == "Spot" and asked.says("upgradeSettings.maxSurge") is not None
        ),
    ),
    RefusalRule(
        "spot-price",
        "docs spot-node-pool: -1 or a positive value with up to five decimal places; azure-cli "
        "validate_spot_max_price",
        "spotMaxPrice",
        "spotMaxPrice must be -1, or positive with up to five decimal places, and needs priority Spot.",
        _wrong_price,
    ),
    RefusalRule(
        "system-pods-are-tolerated",
        "Azure/AKS#2578",
        "nodeTaints",
        "Operation failed due to insufficient nodes for system pod scheduling. Placing custom taints on "
        "system pool is not supported(except 'CriticalAddonsOnly' taint or taint effect is "
        "'PreferNoSchedule'). Please refer to https://aka.ms/aks/system-taints for detail",
        lambda asked: (
            asked.now("mode") == "System"
            and not all(
                taint.startswith("CriticalAddonsOnly=") or taint.endswith(":PreferNoSchedule")
                for taint in asked.now("nodeTaints") or ()
            )
        ),
        code="SystemPoolHasRestrictedTaint",
    ),
    RefusalRule(
        "no-unavailable-system-nodes",
        "docs upgrade-aks-node-pools-rolling: you can't set max unavailable on system node pools",
        "upgradeSettings.maxUnavailable",
        "maxUnavailable is not allowed on a System agent pool.",
        lambda asked: (
            asked.now("mode") == "System"
            and asked.says("upgradeSettings.maxUnavailable") not in (None, "", "0", "0%")
        ),
    ),
    *machine_rules.RULES,
    RefusalRule(
        "dns-does-not-loop",
        "docs localdns-custom: root zone and cluster.local restrictions; release notes of AKS, 2026-01-04: "
        "external domains",
        "localDNSProfile",
        "forwardDestination of the root zone and of external domains must not be ClusterCoreDNS, and that of "
        "cluster.local not VnetDNS.",
        _dns_loops,
    ),
    RefusalRule(
        "dns-serves-stale",
        "docs localdns-custom: protocol and serveStale compatibility",
        "localDNSProfile",
        "serveStale Verify is not allowed with protocol ForceTCP.",
        lambda asked: any(
            override.get("protocol") == "ForceTCP" and override.get("serveStale") == "Verify"
            for _, _, override in _dns_overrides(asked)
        ),
    ),
    RefusalRule(
        "max-pods",
        "docs concepts-network-ip-address-planning: 10 to 250, enforced by the service",
        "maxPods",
        "maxPods must be between 10 and 250.",
        outside("maxPods", 10, 250),
    ),
    RefusalRule(
        "thirty-pods",
        "docs concepts-network-ip-address-planning: space for a minimum of 30 pods in each node pool",
        "maxPods",
        "The nodes of an agent pool must have room for 30 pods.",
        lambda asked: 0 < _pods_of_all(asked) < 30,
    ),
    RefusalRule(
        "taint-form",
        "docs use-node-taints: key=value:effect",
        "nodeTaints",
        "A node taint must have the form key=value:Effect.",
        lambda asked: any(_TAINT.fullmatch(taint) is None for taint in asked.says("nodeTaints") or ()),
    ),
    RefusalRule(
        "labels-of-aks",
        "docs use-labels: a reserved prefix, and spot-node-pool; code: ams0/aks-nvme-ssd-provisioner#5",
        "nodeLabels",
        "Invalid node label key. The 'kubernetes.azure.com' prefix is preserved by aks system labels",
        _labels_of_aks,
        code="BadRequest",
    ),
    RefusalRule(
        "labels-of-kubernetes",
        "docs use-labels: a reserved prefix; Azure/AKS#2866, Azure/AKS#4613; node-role: Azure/AKS#4628",
        "nodeLabels",
        "For Kubernetes version greater than or equal to 1.16, node label keys in the 'kubernetes.io' or "
        "'k8s.io' namespace must begin with an allowed prefix (kubelet.kubernetes.io, node.kubernetes.io). "
        "For more information, please check https://aka.ms/aks-node-labels-116.",
        _labels_of_kubernetes,
        code="BadRequest",
    ),
    RefusalRule(
        "gateway-profile-of-gateways",
        "models AgentPool.gateway_profile: cannot be set if the mode is not Gateway",
        "gatewayProfile",
        "gatewayProfile is allowed only with mode Gateway.",
        lambda asked: asked.says("gatewayProfile") and asked.now("mode") != "Gateway",
    ),
    RefusalRule(
        "gateway-prefix",
        "models AgentPoolGatewayProfile.public_ip_prefix_size: 28 to 31",
        "gatewayProfile.publicIPPrefixSize",
        "publicIPPrefixSize must be between 28 and 31.",
        outside("gatewayProfile.publicIPPrefixSize", 28, 31),
    ),
    RefusalRule(
        "gateway-fits-its-prefix",
        "docs configure-static-egress-gateway: the number of nodes must fit within the prefix",
        "count",
        "The nodes of a Gateway agent pool must fit within publicIPPrefixSize.",
        lambda asked: (
            asked.now("mode") == "Gateway"
            and asked.now("count") > 2 ** (32 - (asked.now("gatewayProfile.publicIPPrefixSize") or 31))
        ),
    ),
    RefusalRule(
        "gateway-needs-static-egress",
        "docs configure-static-egress-gateway: you must enable the feature for your cluster before",
        "mode",
        "A Gateway agent pool needs networkProfile.staticEgressGatewayProfile.enabled.",
        lambda asked: (
            asked.now("mode") == "Gateway"
            and not asked.now("cluster.networkProfile.staticEgressGatewayProfile.enabled")
        ),
    ),
    RefusalRule(
        "pod-subnet-needs-subnet",
        "not found; retained because docs configure-azure-cni-dynamic-ip-allocation gives both",
        "podSubnetID",
        "podSubnetID needs vnetSubnetID.",
        without("podSubnetID", "vnetSubnetID"),
    ),
    RefusalRule(
        "prefix-needs-public-addresses",
        "docs use-node-public-ips: both are given; CAPZ webhook validateEnableNodePublicIP",
        "nodePublicIPPrefixID",
        "nodePublicIPPrefixID needs enableNodePublicIP.",
        without("nodePublicIPPrefixID", "enableNodePublicIP"),
    ),
    RefusalRule(
        "own-routes-without-public-addresses",
        "the code UDRWithNodePublicIPNotAllowed of the resource provider, with its sentence",
        "enableNodePublicIP",
        "enableNodePublicIP is not allowed with outboundType userDefinedRouting.",
        lambda asked: (
            asked.now("enableNodePublicIP")
            and asked.now("cluster.networkProfile.outboundType") == "userDefinedRouting"
        ),
        code="UDRWithNodePublicIPNotAllowed",
    ),
    RefusalRule(
        "message-of-the-day",
        "models AgentPool.message_of_the_day: base64; not for Windows nodes",
        "messageOfTheDay",
        "messageOfTheDay must be base64-encoded, on Linux only.",
        lambda asked: _not_base64(asked) or (windows(asked) and asked.says("messageOfTheDay")),
    ),
    RefusalRule(
        "surge",
        "models AgentPoolUpgradeSettings.max_surge, max_unavailable: a number or a percentage",
        "upgradeSettings",
        "maxSurge and maxUnavailable must be an integer or a percentage.",
        _number,
    ),
    RefusalRule(
        "surge-or-unavailable",
        "docs upgrade-aks-node-pools-rolling: maxUnavailable 0 requires maxSurge above 0",
        "upgradeSettings",
        "maxSurge and maxUnavailable cannot both be 0.",
        _neither_surge_nor_unavailable,
    ),
    RefusalRule(
        "drain-timeout",
        "docs upgrade-aks-node-pools-rolling: 5 minutes to 24 hours; release notes of AKS, 2024-08-05",
        "upgradeSettings.drainTimeoutInMinutes",
        "drainTimeoutInMinutes must be between 5 and 1440.",
        outside("upgradeSettings.drainTimeoutInMinutes", 5, 1440),
    ),
    RefusalRule(
        "soak",
        "REST specification AgentPoolUpgradeSettings: minimum 0, maximum 30",
        "upgradeSettings.nodeSoakDurationInMinutes",
        "nodeSoakDurationInMinutes must be between 0 and 30.",
        outside("upgradeSettings.nodeSoakDurationInMinutes", 0, 30),
    ),
    RefusalRule(
        "host-ports",
        "models PortRange: 1 to 65535, the start not above the end",
        "networkProfile.allowedHostPorts",
        "allowedHostPorts must be ranges within 1 to 65535.",
        _ports,
    ),
    RefusalRule(
        "stops-when-ready",
        "models AgentPool.power_state: only if it is Running and provisioning state is Succeeded",
        "powerState",
        "An agent pool can be stopped only while its provisioning state is Succeeded.",
        _stops_unready,
        code="OperationNotAllowed",
    ),
    RefusalRule(
        "system-pools-run",
        "docs start-stop-nodepools: you can't stop system pools",
        "powerState",
        "A System agent pool cannot be stopped.",
        lambda asked: asked.says("powerState.code") == "Stopped" and asked.now("mode") == "System",
        code="OperationNotAllowed",
    ),
    RefusalRule(
        "no-stop-with-auto-provisioning",
        "docs start-stop-nodepools: not in clusters which use node auto-provisioning",
        "powerState",
        "An agent pool of a cluster with node auto-provisioning cannot be stopped.",
        lambda asked: (
            asked.says("powerState.code") == "Stopped"
            and asked.now("cluster.nodeProvisioningProfile.mode") == "Auto"
        ),
        code="OperationNotAllowed",
    ),
    *node_settings.RULES,
)
