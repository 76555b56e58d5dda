"""Refusals of clusters without a way out, of proxies, of managed gateways and of the mesh."""

from __future__ import annotations

import ipaddress
import re
from collections import defaultdict

from localcloud.azure.world.refusals.rule import RefusalRule, RequestedWrite

_NET, _PROXY, _ROUTING = "networkProfile", "httpProxyConfig", "ingressProfile.webAppRouting"
_REVISIONS = "serviceMeshProfile.istio.revisions"
_HOST = re.compile(r"\.?([a-z0-9]([a-z0-9_-]*[a-z0-9])?\.)*[a-z0-9]([a-z0-9_-]*[a-z0-9])?", re.IGNORECASE)
_LAST = dict(zip(range(23, 31), (32, 33, 33, 34, 35, 35, 36, 36), strict=True))
"""docs istio-support-policy: the last of the "Compatible AKS versions" of asm-1-23 to asm-1-30."""


def _cut_off(asked: RequestedWrite) -> bool:
    return (asked.now(f"{_NET}.outboundType"), asked.now("bootstrapProfile.artifactSource")) == (
        "none",
        "Cache",
    )


def _has_windows(asked: RequestedWrite) -> bool:
    return any(pool.get("osType") == "Windows" for pool in asked.now("agentPoolProfiles") or ())


def _proxied(asked: RequestedWrite) -> bool:
    return bool(asked.now(_PROXY)) and asked.now(f"{_PROXY}.enabled") is not False


def _unproxied_by_wildcard(asked: RequestedWrite) -> bool:
    entries = asked.says(f"{_PROXY}.noProxy") or ()
    return any(entry != "*" and not _HOST.fullmatch(entry) and not _is_network(entry) for entry in entries)


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _zones_in_two_groups(asked: RequestedWrite) -> bool:
    groups = defaultdict(set)
    for zone in asked.now(f"{_ROUTING}.dnsZoneResourceIds") or ():
        group, _, named = zone.lower().partition("/providers/")
        groups[named.rpartition("/")[0]].add(group)
    return any(len(found) > 1 for found in groups.values())


def _mesh_too_old(asked: RequestedWrite) -> dict[str, str] | None:
    version = str(asked.now("kubernetesVersion"))
    for revision in asked.now(_REVISIONS) or ():
        number = revision.rpartition("-")[2]
        if not number.isdecimal():
            continue
        last = _LAST.get(int(number), 0 if int(number) < min(_LAST) else 99)
        if int(version.split(".")[1]) > last:
            return {"revision": revision, "version": version}
    return None


_OF_ISOLATION = "docs concepts-network-isolated: Limitations"


def _mesh_goes_back(asked: RequestedWrite) -> bool:
    had, wanted = (
        {int(number) for revision in value or () if (number := str(revision).rpartition("-")[2]).isdecimal()}
        for value in (asked.was(_REVISIONS), asked.now(_REVISIONS))
    )
    return any(revision < max(had, default=0) for revision in wanted - had)


def _ever(asked: RequestedWrite, path: str, value: str) -> bool:
    return value in (asked.was(path), asked.now(path))


RULES = (
    RefusalRule(
        "isolated-nodes-are-managed",
        _OF_ISOLATION,
        "autoUpgradeProfile.nodeOSUpgradeChannel",
        "nodeOSUpgradeChannel Unmanaged is not supported on a network isolated cluster.",
        lambda asked: _cut_off(asked) and asked.now("autoUpgradeProfile.nodeOSUpgradeChannel") == "Unmanaged",
    ),
    RefusalRule(
        "isolated-without-kubenet",
        _OF_ISOLATION,
        f"{_NET}.networkPlugin",
        "networkPlugin kubenet is not supported on a network isolated cluster.",
        lambda asked: _cut_off(asked) and asked.now(f"{_NET}.networkPlugin") == "kubenet",
    ),
    RefusalRule(
        "proxy-has-an-address",
        "Azure/AKS#205",
        _PROXY,
        "HTTPProxy and HTTPSProxy both cannot be empty.",
        lambda asked: (
            _proxied(asked) and not asked.now(f"{_PROXY}.httpProxy") and not asked.now(f"{_PROXY}.httpsProxy")
        ),
        code="HTTPProxyConfigInputError",
    ),
    RefusalRule(
        "proxy-is-http",
        "docs http-proxy: the URL scheme of httpProxy must be http",
        f"{_PROXY}.httpProxy",
        "The URL scheme of httpProxy must be http.",
        lambda asked: not str(asked.says(f"{_PROXY}.httpProxy") or "http:").lower().startswith("http:"),
        code="HTTPProxyWrongUrlError",
    ),
    RefusalRule(
        "proxy-exceptions-are-hosts",
        "docs http-proxy: Limitations; release notes of AKS, 2026-04-02: relaxed",
        f"{_PROXY}.noProxy",
        "noProxy hosts must have no wildcard attached to a domain suffix.",
        _unproxied_by_wildcard,
        code="HTTPProxyConfigInputError",
    ),
    RefusalRule(
        "zones-of-one-group",
        "docs app-routing: Limitations",
        f"{_ROUTING}.dnsZoneResourceIds",
        "All public DNS zones, and all private ones, must be in the same resource group.",
        _zones_in_two_groups,
    ),
    RefusalRule(
        "one-gateway-of-istio",
        "docs app-routing-gateway-api: not with the Istio add-on, nor switched in one operation",
        _ROUTING,
        "Application routing's Gateway API implementation and the Istio add-on are mutually exclusive.",
        lambda asked: (
            _ever(asked, f"{_ROUTING}.gatewayAPIImplementations.appRoutingIstio.mode", "Enabled")
            and _ever(asked, "serviceMeshProfile.mode", "Istio")
        ),
    ),
    RefusalRule(
        "mesh-of-the-version",
        "Azure/ARO-HCP#5156, with the answer; docs istio-support-policy, Compatible AKS versions",
        _REVISIONS,
        "Service mesh revision {revision} is not compatible with cluster version {version}. To find "
        "information about mesh-cluster compatibility, use 'az aks mesh get-upgrades'.",
        _mesh_too_old,
        code="BadRequest",
    ),
    RefusalRule(
        "mesh-goes-forward",
        "SupportArticles-docs istio-add-on-minor-revision-upgrade; MicrosoftDocs/azure-docs#120606",
        _REVISIONS,
        "Requested change in revisions is not allowed. Reason: a downgrade to an older revision.",
        _mesh_goes_back,
        code="BadRequest",
    ),
    RefusalRule(
        "no-policy-engine-without-plugin",
        "docs use-byo-cni; the code NetworkPolicyNotSupportedForNone of the resource provider",
        f"{_NET}.networkPolicy",
        "networkPolicy is not supported with networkPlugin none.",
        lambda asked: (
            asked.now(f"{_NET}.networkPlugin") == "none"
            and asked.now(f"{_NET}.networkPolicy") not in (None, "", "none")
        ),
        code="NetworkPolicyNotSupportedForNone",
    ),
    RefusalRule(
        "acceleration-needs-cilium",
        "docs how-to-enable-ebpf-host-routing: prerequisites",
        f"{_NET}.advancedNetworking.performance",
        "accelerationMode BpfVeth needs networkDataplane cilium.",
        lambda asked: (
            asked.now(f"{_NET}.advancedNetworking.performance.accelerationMode") == "BpfVeth"
            and asked.now(f"{_NET}.networkDataplane") != "cilium"
        ),
    ),
    RefusalRule(
        "acceleration-without-static-egress",
        "docs container-network-performance-ebpf-host-routing: Limitations",
        f"{_NET}.advancedNetworking.performance",
        "accelerationMode BpfVeth is not supported with staticEgressGatewayProfile.",
        lambda asked: (
            asked.now(f"{_NET}.advancedNetworking.performance.accelerationMode") == "BpfVeth"
            and asked.now(f"{_NET}.staticEgressGatewayProfile.enabled")
        ),
    ),
)
OF_POOLS = (
    RefusalRule(
        "isolated-without-windows",
        _OF_ISOLATION,
        "agentPoolProfile.osType",
        "Windows node pools are not supported on a network isolated cluster.",
        lambda asked: _cut_off(asked) and _has_windows(asked),
    ),
    RefusalRule(
        "proxy-without-windows",
        "docs http-proxy: Limitations",
        _PROXY,
        "HTTP proxy is not supported with Windows node pools.",
        lambda asked: _proxied(asked) and _has_windows(asked),
        code="HTTPProxyConfigInputError",
    ),
)
"""The rules that hold for a pool of its own, too."""
