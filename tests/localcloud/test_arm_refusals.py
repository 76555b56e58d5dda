"""Every rule of the tables of refusals: a write that breaks it, and that AKS' answer names it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from localcloud.azure.world.arm_errors import AksError
from localcloud.azure.world.arm_resources import Condition
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.azure.world.refusals import cluster_rules, fixed, maintenance_rules, network_rules, pool_rules
from localcloud.azure.world.refusals.node_settings import SYSCTLS
from localcloud.common.clock import ManualClock
from localcloud.common.control_plane import NullPlane
from shared.fleet.resource_ids import ClusterId

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
CLUSTER = ClusterId(SUBSCRIPTION, "rg", "one")
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers"
SUBNET = f"{GROUP}/Microsoft.Network/virtualNetworks/v/subnets/s"
USER = f"{GROUP}/Microsoft.ManagedIdentity/userAssignedIdentities/u"
ADDRESS = {"publicIPs": [{"id": f"{GROUP}/Microsoft.Network/publicIPAddresses/a"}]}
ON, OVERLAY = {"enabled": True}, {"networkPlugin": "azure", "networkPluginMode": "overlay"}
FLAT = {"networkPlugin": "azure"}
NAT = {"outboundType": "managedNATGateway"}
MANAGED = {"managedOutboundIPProfile": {"count": 2}}
PREFIXES = {"publicIPPrefixes": ["p"]}


def net(**fields: Any) -> dict[str, Any]:
    return {"networkProfile": fields}


def nat(**fields: Any) -> dict[str, Any]:
    return net(**NAT, natGatewayProfile=fields)


def lb(**fields: Any) -> dict[str, Any]:
    return net(loadBalancerProfile=fields)


def kms(**fields: Any) -> dict[str, Any]:
    return {"securityProfile": {"azureKeyVaultKms": fields}}


def access(**fields: Any) -> dict[str, Any]:
    return {"apiServerAccessProfile": fields}


CREATED: dict[str, dict[str, Any]] = {
    "load-balancer-one-kind": lb(managedOutboundIPs={"count": 1}, outboundIPs=ADDRESS),
    "user-defined-routing-without-load-balancer": net(
        outboundType="userDefinedRouting", loadBalancerProfile={"idleTimeoutInMinutes": 5}
    )
    | {"pool": {"vnetSubnetID": SUBNET}},
    "load-balancer-profile-of-another-outbound-type": net(
        **NAT, loadBalancerProfile={"idleTimeoutInMinutes": 5}
    ),
    "nat-profile-of-another-outbound-type": net(natGatewayProfile=MANAGED),
    "nat-managed-or-own-addresses": nat(**MANAGED, outboundIPs={"publicIPs": ["a"]}),
    "nat-v2-only": nat(sku="Standard", outboundIPPrefixes=PREFIXES),
    "nat-count": nat(managedOutboundIPProfile={"count": 17}),
    "nat-count-ipv6": nat(managedOutboundIPProfile={"countIPv6": 0}),
    "nat-idle-timeout": nat(idleTimeoutInMinutes=3),
    "load-balancer-count": lb(managedOutboundIPs={"count": 101}),
    "load-balancer-count-ipv6": lb(managedOutboundIPs={"countIPv6": 1}),
    "load-balancer-ports": lb(allocatedOutboundPorts=64001),
    "load-balancer-idle-timeout": lb(idleTimeoutInMinutes=121),
    "managed-nat-in-own-network": net(**NAT) | {"pool": {"vnetSubnetID": SUBNET}},
    "own-egress-needs-own-network": net(outboundType="userAssignedNATGateway"),
    "basic-load-balancer-retired": net(loadBalancerSku="basic"),
    "ranges-are-ranges": net(**OVERLAY, podCidr="10.1.0.0/33"),
    "families-are-one-or-both": net(**OVERLAY, ipFamilies=["IPv6"]),
    "ranges-match-families": net(**OVERLAY, podCidrs=["10.1.0.0/16", "fd00::/64"]),
    "dual-stack-needs-overlay": net(**FLAT, ipFamilies=["IPv4", "IPv6"]),
    "dns-inside-services": net(dnsServiceIP="10.9.0.10"),
    "overlay-is-azure": net(networkPlugin="kubenet", networkPluginMode="overlay"),
    "cilium-is-azure": net(networkPlugin="kubenet", networkDataplane="cilium"),
    "cilium-policy-needs-cilium": net(networkPolicy="cilium"),
    "network-security-needs-cilium": net(advancedNetworking={"enabled": True, "security": ON}),
    "system-identity-alone": {"identity": {"type": "SystemAssigned", "userAssignedIdentities": {USER: {}}}},
    "one-user-identity": {"identity": {"type": "UserAssigned"}},
    "kubelet-identity-needs-user-identity": {"identityProfile": {"kubeletidentity": {"resourceId": USER}}},
    "long-term-support-is-premium": {"supportPlan": "AKSLongTermSupport"},
    "cost-analysis-is-paid": {"metricsProfile": {"costAnalysis": ON}},
    "local-accounts-need-entra": {"disableLocalAccounts": True},
    "workload-identity-needs-issuer": {"securityProfile": {"workloadIdentity": ON}},
    "no-name-at-all": access(
        enablePrivateCluster=True, privateDNSZone="none", enablePrivateClusterPublicFQDN=False
    ),
    "ranges-are-for-public-servers": access(enablePrivateCluster=True, authorizedIPRanges=["192.0.2.7"]),
    "kms-needs-key": kms(enabled=True),
    "kms-off-without-key": kms(enabled=False, keyId="https://v.vault.azure.net/keys/k/1"),
    "kms-private-vault": kms(enabled=True, keyId="k", keyVaultNetworkAccess="Private"),
    "defender-needs-workspace": {"securityProfile": {"defender": {"securityMonitoring": ON}}},
    "monitoring-needs-workspace": {"addonProfiles": {"omsagent": ON}},
    "http-routing-retired": {"addonProfiles": {"httpApplicationRouting": ON}},
    "fips-everywhere": {"enableFIPS": True},
    "automatic-is-paid": {"sku": {"name": "Automatic", "tier": "Free"}},
    "registry-goes-with-cache": {
        "bootstrapProfile": {"artifactSource": "Direct", "containerRegistryId": "r"}
    },
    "autoscaler-share": {"autoScalerProfile": {"max-total-unready-percentage": "101"}},
    "autoscaler-scan-interval": {"autoScalerProfile": {"scan-interval": "10"}},
    **{
        f"autoscaler-{field}": {"autoScalerProfile": {field: "soon" if "skip" in field else "90x"}}
        for field in cluster_rules._TEXTS
        if field != "scan-interval"
    },
}
UPDATED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nat-addresses-change-hands": (nat(**MANAGED), nat(outboundIPs={"publicIPs": ["a"]})),
    "nat-sku-back": (nat(sku="StandardV2"), nat(sku="Standard")),
    "outbound-type-paths": ({}, net(outboundType="userDefinedRouting")),
    "families-change": (net(**FLAT), net(ipFamilies=["IPv4", "IPv6"])),
    "overlay-and-cilium-are-two-writes": (
        net(**FLAT),
        net(**OVERLAY, podCidr="10.1.0.0/16", networkDataplane="cilium"),
    ),
    "overlay-needs-a-range": (net(**FLAT), net(**OVERLAY)),
    "overlay-without-policy": (net(**FLAT, networkPolicy="calico"), net(**OVERLAY, podCidr="10.1.0.0/16")),
    "kubenet-to-azure-is-overlay": (net(networkPlugin="kubenet"), net(**FLAT)),
    "pod-range-grows": (net(**OVERLAY, podCidr="10.1.0.0/16"), net(podCidr="10.1.0.0/17")),
    "issuer-stays": ({"oidcIssuerProfile": ON}, {"oidcIssuerProfile": {"enabled": False}}),
    "entra-stays": ({"aadProfile": {"managed": True}}, {"aadProfile": {"managed": False}}),
    "network-integration-stays": (
        access(enableVnetIntegration=True),
        access(enableVnetIntegration=False),
    ),
    "private-only-with-integration": ({}, access(enablePrivateCluster=True)),
    "private-zone-to-none": (
        access(enablePrivateCluster=True, privateDNSZone="none"),
        access(privateDNSZone="system"),
    ),
}
CILIUM = net(**OVERLAY, networkDataplane="cilium")
WINDOWS = {"osType": "Windows"}
POOLS: dict[str, dict[str, Any]] = {
    "system-is-linux-and-regular": {"mode": "System", "scaleSetPriority": "Spot"},
    "windows-name": {**WINDOWS, "name": "windows"},
    "sku-of-its-system": {"osSKU": "Windows2022"},
    "windows-2019-retired": {**WINDOWS, "osSKU": "Windows2019"},
    "windows-2025-is-fips": {**WINDOWS, "osSKU": "Windows2025"},
    "wasm-retired": {"workloadRuntime": "WasmWasi"},
    "max-pods": {"maxPods": 9},
    "taint-form": {"nodeTaints": ["key:NoSchedule"]},
    "labels-of-aks": {"nodeLabels": {"kubernetes.azure.com/x": "y"}},
    "labels-of-kubernetes": {"nodeLabels": {"node-restriction.kubernetes.io/x": "y"}},
    "gateway-profile-of-gateways": {"gatewayProfile": {"publicIPPrefixSize": 30}},
    "gateway-prefix": {"mode": "Gateway", "gatewayProfile": {"publicIPPrefixSize": 27}},
    "zones-of-scale-sets": {"type": "AvailabilitySet", "availabilityZones": ["1"]},
    "machines-of-their-type": {"virtualMachinesProfile": {"scale": {"manual": [{"size": "s", "count": 1}]}}},
    "pod-subnet-needs-subnet": {"podSubnetID": SUBNET},
    "prefix-needs-public-addresses": {"nodePublicIPPrefixID": "p"},
    "message-of-the-day": {"messageOfTheDay": "hi!"},
    "surge": {"upgradeSettings": {"maxSurge": "a third"}},
    "surge-or-unavailable": {"upgradeSettings": {"maxSurge": "0"}},
    "drain-timeout": {"upgradeSettings": {"drainTimeoutInMinutes": 1441}},
    "soak": {"upgradeSettings": {"nodeSoakDurationInMinutes": 31}},
    "host-ports": {"networkProfile": {"allowedHostPorts": [{"portStart": 90, "portEnd": 80}]}},
    "outbound-nat-off": {**WINDOWS, "windowsProfile": {"disableOutboundNat": True}},
    "windows-profile-of-windows": {"windowsProfile": {"disableOutboundNat": False}},
    "sysctl-netIpv4IpLocalPortRange": {"linuxOSConfig": {"sysctls": {"netIpv4IpLocalPortRange": "1 2"}}},
    "image-thresholds": {"kubeletConfig": {"imageGcLowThreshold": 90}},
    "log-files": {"kubeletConfig": {"containerLogMaxFiles": 1}},
    "swap-file-size": {"linuxOSConfig": {"swapFileSizeMB": 0}},
    "unsafe-sysctls": {"kubeletConfig": {"allowedUnsafeSysctls": ["vm.swappiness"]}},
    "windows-kubelet-settings": {**WINDOWS, "kubeletConfig": {"cpuManagerPolicy": "none"}},
    "windows-without-linux-settings": {**WINDOWS, "linuxOSConfig": {"swapFileSizeMB": 1}},
    "setting-cpuManagerPolicy": {"kubeletConfig": {"cpuManagerPolicy": "all"}},
    "setting-topologyManagerPolicy": {"kubeletConfig": {"topologyManagerPolicy": "all"}},
    "setting-transparentHugePageEnabled": {"linuxOSConfig": {"transparentHugePageEnabled": "on"}},
    "setting-transparentHugePageDefrag": {"linuxOSConfig": {"transparentHugePageDefrag": "on"}},
    **{
        f"sysctl-{name}": {"linuxOSConfig": {"sysctls": {name: low - 1}}}
        for name, (low, _) in SYSCTLS.items()
    },
}
POOLS_OF: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "windows-needs-azure-network": (net(networkPlugin="kubenet"), WINDOWS),
    "windows-without-cilium": (CILIUM, WINDOWS),
}
STOPPED = {"powerState": {"code": "Stopped"}}
POOLS_UPDATED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "windows-fips-stays": (WINDOWS, {"enableFIPS": True}),
    "windows-sku-stays": (WINDOWS | {"osSKU": "Windows2025", "enableFIPS": True}, {"osSKU": "Windows2022"}),
}
WINDOW = {
    "schedule": {"weekly": {"intervalWeeks": 1, "dayOfWeek": "Sunday"}},
    "durationHours": 4,
    "startTime": "01:00",
}
AUTO = "aksManagedAutoUpgradeSchedule"


def scheduled(**schedule: Any) -> dict[str, Any]:
    return {"maintenanceWindow": WINDOW | {"schedule": schedule}}


def window(**fields: Any) -> dict[str, Any]:
    return {"maintenanceWindow": WINDOW | fields}


MAINTENANCE: dict[str, tuple[str, dict[str, Any]]] = {
    "weekly-slots-of-default": (AUTO, {"timeInWeek": []}),
    "hours-of-a-day": ("default", {"timeInWeek": [{"day": "Monday", "hourSlots": [24]}]}),
    "one-schedule": (AUTO, scheduled()),
    "default-is-weekly": ("default", scheduled(daily={"intervalDays": 1})),
    "duration": (AUTO, window(durationHours=3)),
    "start-time": (AUTO, window(startTime="25:00")),
    "offset": (AUTO, window(utcOffset="1")),
    "dates-in-order": (AUTO, window(notAllowedDates=[{"start": "2026-02-02", "end": "2026-02-01"}])),
    "interval-daily.intervalDays": (AUTO, scheduled(daily={"intervalDays": 8})),
    "interval-weekly.intervalWeeks": (AUTO, scheduled(weekly={"intervalWeeks": 5, "dayOfWeek": "Sunday"})),
    "interval-absoluteMonthly.intervalMonths": (
        AUTO,
        scheduled(absoluteMonthly={"intervalMonths": 7, "dayOfMonth": 1}),
    ),
    "interval-absoluteMonthly.dayOfMonth": (
        AUTO,
        scheduled(absoluteMonthly={"intervalMonths": 1, "dayOfMonth": 32}),
    ),
    "interval-relativeMonthly.intervalMonths": (
        AUTO,
        scheduled(relativeMonthly={"intervalMonths": 7, "weekIndex": "First", "dayOfWeek": "Sunday"}),
    ),
}
ELSEWHERE = {
    *("cilium-without-windows", "stops-when-ready", "system-pools-run"),
    "no-stop-with-auto-provisioning",
}
"""Rules with a test of their own."""


class Cloud:
    """A world with a resource group."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.world = AzureWorld(self.clock, plane=NullPlane(), throttle=False)
        self.world.put_group(SUBSCRIPTION, "rg", {"location": "westeurope"})

    def create(self, given: dict[str, Any]) -> Cloud:
        top: dict[str, Any] = {key: given[key] for key in ("sku", "identity") if key in given}
        properties = {key: value for key, value in given.items() if key not in ("sku", "identity", "pool")}
        pool: dict[str, Any] = {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5"}
        pool |= given.get("pool", {})
        body: dict[str, Any] = {
            "location": "westeurope",
            "identity": {"type": "SystemAssigned"},
            **top,
            "properties": {"dnsPrefix": "one", "agentPoolProfiles": [pool], **properties},
        }
        self.world.put_cluster(CLUSTER, body)
        self.clock.advance(10)
        return self

    def update(self, properties: dict[str, Any]) -> None:
        self.world.put_cluster(CLUSTER, {"location": "westeurope", "properties": properties})
        self.clock.advance(10)

    def put_pool(self, given: dict[str, Any]) -> Cloud:
        properties = {key: value for key, value in given.items() if key != "name"}
        self.world.put_pool(CLUSTER, given.get("name", "web"), {"properties": {"count": 1, **properties}})
        self.clock.advance(10)
        return self

    def shown_by_put(self, given: dict[str, Any]) -> dict[str, Any]:
        answer = self.world.put_pool(CLUSTER, "web", {"properties": given}).document
        assert answer is not None
        properties: dict[str, Any] = answer["properties"]
        return properties

    def pool(self, name: str) -> dict[str, Any]:
        properties: dict[str, Any] = self.world.get_pool(CLUSTER, name)["properties"]
        return properties

    def nodes(self) -> dict[str, int]:
        self.world.complete_due()
        return dict(Counter(node.pool for node in self.world.engine.plane.nodes[CLUSTER]))  # type: ignore[attr-defined]


def rule(error: AksError) -> str:
    assert error.status == 400
    assert error.target
    assert set(error.body()) == {"code", "details", "message", "subcode", "target"}
    return error.rule


def test_every_rule_has_an_example_and_a_source() -> None:
    rules = [
        *(network_rules.RULES + cluster_rules.RULES + pool_rules.RULES + maintenance_rules.RULES),
    ]
    names = [each.name for each in rules]
    examples = {*CREATED, *UPDATED, *POOLS, *POOLS_OF, *POOLS_UPDATED, *MAINTENANCE, *ELSEWHERE}
    assert sorted(names) == sorted(set(names))
    assert set(names) == examples
    assert [each.name for each in rules if not each.source or not each.message] == []
    assert [path for path, source in {**fixed.CLUSTER, **fixed.POOL}.items() if not source] == []


@pytest.mark.parametrize("name", CREATED)
def test_a_creation_that_breaks_a_rule_is_refused(name: str) -> None:
    with pytest.raises(AksError) as refused:
        Cloud().create(CREATED[name])
    assert rule(refused.value) == name


@pytest.mark.parametrize("name", UPDATED)
def test_an_update_that_breaks_a_rule_is_refused(name: str) -> None:
    before, update = UPDATED[name]
    cloud = Cloud().create(before)
    with pytest.raises(AksError) as refused:
        cloud.update(update)
    assert rule(refused.value) == name


@pytest.mark.parametrize("name", [*POOLS, *POOLS_OF])
def test_a_pool_that_breaks_a_rule_is_refused(name: str) -> None:
    cluster, pool = POOLS_OF[name] if name in POOLS_OF else ({}, POOLS[name])
    cloud = Cloud().create(cluster)
    with pytest.raises(AksError) as refused:
        cloud.put_pool(pool)
    assert rule(refused.value) == name


@pytest.mark.parametrize("name", POOLS_UPDATED)
def test_an_update_of_a_pool_that_breaks_a_rule_is_refused(name: str) -> None:
    before, after = POOLS_UPDATED[name]
    cloud = Cloud().create({}).put_pool(before)
    with pytest.raises(AksError) as refused:
        cloud.put_pool(after)
    assert rule(refused.value) == name


@pytest.mark.parametrize("name", MAINTENANCE)
def test_a_maintenance_configuration_that_breaks_a_rule_is_refused(name: str) -> None:
    configuration, properties = MAINTENANCE[name]
    cloud = Cloud().create({})
    with pytest.raises(AksError) as refused:
        cloud.world.put_maintenance(CLUSTER, configuration, {"properties": properties})
    assert rule(refused.value) == name


def test_labels_that_the_kubelet_may_set_and_those_of_a_spot_pool_are_accepted() -> None:
    labels = (
        "node.kubernetes.io/a",
        "x.kubelet.kubernetes.io/b",
        "node-role.kubernetes.io/c",
        "e.org/d",
        "f",
    )
    spot = {"kubernetes.azure.com/scalesetpriority": "spot"}
    Cloud().create({}).put_pool({"nodeLabels": dict.fromkeys(labels, "") | spot})


@pytest.mark.parametrize("key", ["kubernetes.io/os", "k8s.io/x", "a.k8s.io/x", "node.x.kubernetes.io/x"])
def test_other_labels_of_kubernetes_own_domains_are_refused_with_the_code_of_aks(key: str) -> None:
    with pytest.raises(AksError) as refused:
        Cloud().create({}).put_pool({"nodeLabels": {key: "y"}})
    assert (refused.value.rule, refused.value.code) == ("labels-of-kubernetes", "BadRequest")


def test_windows_server_2022_becomes_2025_in_place_together_with_fips() -> None:
    cloud = Cloud().create({}).put_pool(WINDOWS)
    with pytest.raises(AksError) as refused:
        cloud.put_pool({"osSKU": "Windows2025"})
    assert refused.value.rule == "windows-2025-is-fips"
    cloud.put_pool({"osSKU": "Windows2025", "enableFIPS": True})
    assert cloud.world.get_pool(CLUSTER, "web")["properties"]["osSKU"] == "Windows2025"


def test_a_pool_may_be_moved_to_a_snapshot() -> None:
    snapshot = {"sourceResourceId": f"{GROUP}/Microsoft.ContainerService/snapshots/s"}
    cloud = Cloud().create({}).put_pool({}).put_pool({"creationData": snapshot})
    assert cloud.world.get_pool(CLUSTER, "web")["properties"]["creationData"] == snapshot


def test_an_unknown_pool_or_maintenance_configuration_is_refused_with_the_code_of_aks() -> None:
    cloud = Cloud().create({})
    with pytest.raises(AksError, match="NotFound") as absent:
        cloud.world.get_pool(CLUSTER, "none")
    assert (absent.value.status, absent.value.code) == (404, "NotFound")
    with pytest.raises(AksError, match="InvalidParameter: Only 'default', "):
        cloud.world.put_maintenance(CLUSTER, "weekly", {"properties": {}})


def test_a_pool_stops_and_starts_while_it_is_ready_only() -> None:
    cloud = Cloud().create({}).put_pool({"count": 2})
    stopping = cloud.shown_by_put({"count": 2, **STOPPED})
    shown = (stopping["provisioningState"], stopping["count"], stopping["powerState"])
    assert shown == ("Stopping", 0, {"code": "Stopped"})
    cloud.clock.advance(10)
    assert cloud.pool("web")["provisioningState"] == "Succeeded"
    assert cloud.nodes() == {"system": 1}
    started = {"count": 0, "powerState": {"code": "Running"}}
    starting = cloud.shown_by_put(started)
    assert (starting["provisioningState"], starting["count"]) == ("Starting", 2)
    cloud.clock.advance(10)
    assert cloud.nodes() == {"system": 1, "web": 2}
    cloud.world.interventions.fail_next("one", "AllocationFailed", "none left")
    cloud.put_pool({"nodeLabels": {"a": "b"}})
    with pytest.raises(AksError) as refused:
        cloud.put_pool(STOPPED)
    assert refused.value.rule == "stops-when-ready"


def test_a_stopped_pool_is_upgraded_and_stays_stopped_through_a_stop_of_its_cluster() -> None:
    cloud = (
        Cloud().create({"kubernetesVersion": "1.33"}).put_pool({"orchestratorVersion": "1.32", "count": 2})
    )
    cloud.put_pool({**STOPPED, "count": 2})
    cloud.put_pool({"orchestratorVersion": "1.33", "count": 0})
    assert cloud.pool("web")["currentOrchestratorVersion"].startswith("1.33.")
    assert (cloud.pool("web")["count"], cloud.nodes()) == (0, {"system": 1})
    cloud.world.interventions.stop(CLUSTER)
    cloud.world.interventions.start(CLUSTER)
    assert cloud.nodes() == {"system": 1}
    cloud.put_pool({"powerState": {"code": "Running"}, "count": 0})
    assert cloud.nodes() == {"system": 1, "web": 2}


def test_a_system_pool_is_not_stopped() -> None:
    cloud = Cloud().create({})
    with pytest.raises(AksError) as refused:
        cloud.put_pool({"name": "system", **STOPPED})
    assert rule(refused.value) == "system-pools-run"


def test_no_pool_is_stopped_while_nodes_are_provisioned_automatically() -> None:
    cloud = Cloud().create({"nodeProvisioningProfile": {"mode": "Auto"}, **net(**OVERLAY)}).put_pool({})
    with pytest.raises(AksError) as refused:
        cloud.put_pool(STOPPED)
    assert rule(refused.value) == "no-stop-with-auto-provisioning"


def test_a_cluster_with_windows_nodes_does_not_turn_to_cilium() -> None:
    cloud = Cloud().create(net(**OVERLAY)).put_pool(WINDOWS)
    with pytest.raises(AksError) as refused:
        cloud.update(net(networkDataplane="cilium"))
    assert refused.value.rule == "cilium-without-windows"


@pytest.mark.parametrize("name", ["securityProfile", "artifactStreamingProfile"])
def test_the_first_pools_of_a_cluster_take_fewer_fields_than_a_pool_of_its_own(name: str) -> None:
    field = {name: {"enableVTPM": True} if name == "securityProfile" else ON}
    with pytest.raises(AksError, match=f'unknown field "{name}"') as refused:
        Cloud().create({"pool": field})
    assert refused.value.code == "UnmarshalError"
    cloud = Cloud().create({}).put_pool(field)
    read = cloud.world.get_cluster(CLUSTER)
    cloud.world.put_cluster(CLUSTER, read)
    assert cloud.world.get_pool(CLUSTER, "web")["properties"][name] == field[name]


ALLOWED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (net(**FLAT), net(**OVERLAY, podCidr="10.1.0.0/16")),
    (net(networkPlugin="kubenet"), net(**OVERLAY)),
    (net(**OVERLAY), net(networkDataplane="cilium")),
    (net(**OVERLAY, podCidr="10.1.0.0/17"), net(podCidr="10.1.0.0/16")),
    (net(**OVERLAY), net(ipFamilies=["IPv4", "IPv6"], serviceCidrs=["10.0.0.0/16", "fd00::/108"])),
    ({}, nat(**MANAGED)),
    (nat(**MANAGED), net(outboundType="loadBalancer", loadBalancerProfile={"outboundIPs": ADDRESS})),
    (lb(managedOutboundIPs={"count": 2}), lb(outboundIPs=ADDRESS)),
    (nat(sku="Standard"), nat(sku="StandardV2")),
    ({"pool": {"vnetSubnetID": SUBNET}}, net(outboundType="userDefinedRouting")),
    (access(enableVnetIntegration=True), access(enablePrivateCluster=True)),
    (access(enablePrivateCluster=True, privateDNSZone="system"), access(privateDNSZone="none")),
    (kms(enabled=True, keyId="k"), kms(enabled=False)),
]


@pytest.mark.parametrize(("before", "update"), ALLOWED, ids=str)
def test_a_change_that_aks_knows_a_way_for_is_accepted_and_leaves_nothing_behind(
    before: dict[str, Any], update: dict[str, Any]
) -> None:
    cloud = Cloud().create(before)
    cloud.update(update)
    document = dict(cloud.world.get_cluster(CLUSTER))
    network = document["properties"]["networkProfile"]
    assert ("loadBalancerProfile" in network) is (network["outboundType"] == "loadBalancer")
    kinds = {"managedOutboundIPs", "outboundIPs", "outboundIPPrefixes"}
    assert len(kinds & network.get("loadBalancerProfile", {}).keys()) <= 1
    cloud.world.put_cluster(CLUSTER, document, Condition(if_match=document["eTag"]))


def test_fips_of_a_linux_pool_changes_in_place() -> None:
    cloud = Cloud().create({}).put_pool({}).put_pool({"enableFIPS": True})
    assert cloud.world.get_pool(CLUSTER, "web")["properties"]["enableFIPS"] is True


def test_a_pool_of_single_machines_has_the_count_of_its_scale_profile() -> None:
    scale = {"manual": [{"size": "Standard_D2s_v5", "count": 2}, {"size": "Standard_D4s_v5", "count": 1}]}
    machines = {"type": "VirtualMachines", "virtualMachinesProfile": {"scale": scale}}
    cloud = Cloud().create({}).put_pool(machines)
    assert cloud.world.get_pool(CLUSTER, "web")["properties"]["count"] == 3
