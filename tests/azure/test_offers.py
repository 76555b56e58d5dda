"""What a commit needs and Azure does not have, as sentences; what Azure did not say is no shortage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.azure.availability.offered import AzureQuota, Offer, Size, Subnet, quotas_of, sizes_of, subnets_of
from shared.azure.availability.offers import ADDRESSES, TOTAL, OfferRequest, shortages
from shared.azure.running_versions import PoolVersions, RunningVersions
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.resolve.rules.refusal import completed, surge_of
from shared.resource_ids import RegionId

HERE = RegionId("11111111-1111-1111-1111-111111111111", "eastus")
D4S = Size("standardDSv5Family", 4, frozenset("12"))
NETWORK = f"/subscriptions/{HERE.subscription}/resourceGroups/net/providers/Microsoft.Network"
SUBNET = f"{NETWORK}/virtualNetworks/hub/subnets/aks"
AKS = "Microsoft.ContainerService/managedClusters"
ADDRESS = f"{NETWORK}/publicIPAddresses/out"
OFFER = Offer(
    frozenset({"eastus", "westeurope"}), ["1.35.7", "1.36.3", "1.37.1"], {"standard_d4s_v5": D4S}, {}, {}
)


def spec(*, nodes: int = 3, size: str = "Standard_D4s_v5", version: str = "1.36", **more: Any) -> ClusterSpec:
    pool = {"name": "apps", "mode": "System", "vmSize": size, "count": nodes} | more.pop("pool", {})
    return ClusterSpec.model_validate(
        {
            **{"subscriptionId": HERE.subscription, "location": HERE.location, "resourceGroup": "rg"},
            "kubernetesVersion": version,
            "nodePools": [{key: value for key, value in pool.items() if value is not None}],
            "flux": {"repository": "https://github.com/example/fleet", "path": "./platform"},
            **more,
        }
    )


def added(**pool: Any) -> OfferRequest:
    """Return a commit that adds a node pool to a cluster with three system nodes."""
    system = {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 3}
    return changed(spec(nodePools=[system]), spec(nodePools=[system, {"name": "apps", **pool}]))


def changed(before: ClusterSpec, after: ClusterSpec) -> OfferRequest:
    return OfferRequest("one", before, completed(after))


def short(*requests: OfferRequest, offer: Offer = OFFER, **changed: Any) -> list[str]:
    offers = {request.place: replace(offer, **changed) for request in requests}
    return shortages(requests, offers)


def new(name: str = "one", **more: Any) -> OfferRequest:
    return OfferRequest(name, None, completed(spec(**more)))


def test_a_commit_that_azure_has_everything_for_says_nothing() -> None:
    assert short(new()) == []


def test_cores_of_a_family_that_are_left_for_some_clusters_name_those_that_would_fail() -> None:
    quotas = {"standardDSv5Family": AzureQuota(76, 100), TOTAL: AzureQuota(0, 1000)}
    requests = [new(name, nodes=4) for name in ("one", "two", "three", "four")]
    assert short(*requests, quotas=quotas) == [
        "quota: eastus has 24 of 100 cores of standardDSv5Family left, this commit needs 64: "
        "3 clusters would fail (one, three, two)"
    ]


def test_a_pool_that_grows_needs_what_it_adds_and_one_that_shrinks_nothing() -> None:
    quotas = {"standardDSv5Family": AzureQuota(92, 100)}
    assert short(changed(spec(nodes=3), spec(nodes=5)), quotas=quotas) == []
    assert "this commit needs 12" in short(changed(spec(nodes=3), spec(nodes=6)), quotas=quotas)[0]
    assert short(changed(spec(nodes=9), spec(nodes=1)), quotas=quotas) == []


def test_an_upgrade_needs_cores_for_its_surge() -> None:
    quotas = {"standardDSv5Family": AzureQuota(100, 100)}
    (found,) = short(changed(spec(nodes=12), spec(nodes=12, version="1.37")), quotas=quotas)
    assert "this commit needs 8" in found


def test_a_surge_is_a_number_or_a_part_that_is_rounded_up() -> None:
    def surge(nodes: int, written: str | None) -> int:
        settings = {"upgradeSettings": {"maxSurge": written}} if written else {}
        return surge_of(completed(spec(nodes=nodes, pool=settings)).node_pools[0])

    assert (surge(3, None), surge(30, None), surge(3, "33%"), surge(3, "2")) == (1, 3, 1, 2)


def test_spot_nodes_use_no_cores_of_the_family() -> None:
    quotas = {"standardDSv5Family": AzureQuota(100, 100)}
    spot = added(vmSize="Standard_D4s_v5", count=3, scaleSetPriority="Spot")
    assert short(spot, quotas=quotas) == []


def test_a_region_that_does_not_exist_is_named_with_the_nearest_one() -> None:
    (found,) = short(new(location="westeuropa"))
    assert found.startswith(f"location westeuropa: subscription {HERE.subscription} has no such region")
    assert found.endswith("; did you mean westeurope? (one)")


def test_a_size_that_does_not_exist_is_named_with_the_nearest_one() -> None:
    assert short(new(size="Standard_D4sv5")) == [
        "vmSize Standard_D4sv5: eastus has no such size; did you mean standard_d4s_v5? (one)"
    ]


def test_a_size_that_the_subscription_may_not_have_and_a_zone_without_it_are_named() -> None:
    barred = {"standard_d4s_v5": replace(D4S, barred=True)}
    assert "bars the subscription from it in eastus" in short(new(), sizes=barred)[0]
    zones = new(pool={"availabilityZones": ["1", "2", "3"]})
    assert short(zones) == ["vmSize Standard_D4s_v5: the subscription has none in zone 3 of eastus (one)"]
    assert short(new(pool={"availabilityZones": ["auto"]})) == [], "AKS chooses them"


def test_an_ephemeral_disk_that_a_size_has_no_room_for_and_a_host_that_does_not_encrypt_are_named() -> None:
    sizes = {"standard_d4s_v5": replace(D4S, zones=frozenset(), ephemeral=75, encrypts=False)}
    large: dict[str, Any] = {"osDiskType": "Ephemeral", "enableEncryptionAtHost": True}
    assert short(new(pool=large), sizes=sizes) == [
        "vmSize Standard_D4s_v5: has 75 GB for an ephemeral OS disk, this commit needs 128 (one)",
        "vmSize Standard_D4s_v5: has no encryption at host (one)",
    ]
    assert short(new(pool={"osDiskType": "Ephemeral", "osDiskSizeGB": 75}), sizes=sizes) == []
    assert short(new(pool={"osDiskSizeGB": 512}), sizes=sizes) == [], "AKS takes a managed disk"
    assert short(changed(spec(pool=large), spec(nodes=5, pool=large)), sizes=sizes) == []
    assert short(new(pool=large)) == [], "the list does not say it"


def test_the_room_for_an_ephemeral_disk_is_the_largest_of_its_places() -> None:
    def room(**capabilities: str) -> int | None:
        named = [{"name": name, "value": value} for name, value in capabilities.items()]
        document = {"resourceType": "virtualMachines", "name": "Standard_X", "capabilities": named}
        return sizes_of([document])["standard_x"].ephemeral

    assert room() is None
    assert room(EphemeralOSDiskSupported="False", MaxResourceVolumeMB="153600") == 0
    assert room(EphemeralOSDiskSupported="True", MaxResourceVolumeMB="153600") == 150
    both = {"MaxResourceVolumeMB": "32768", "CachedDiskBytes": str(100 * 2**30)}
    assert room(EphemeralOSDiskSupported="True", **both) == 100


def test_a_version_that_the_region_does_not_offer_is_named_unless_the_cluster_has_it_already() -> None:
    assert short(new(version="1.99")) == [
        "Kubernetes 1.99 is not offered in eastus, which has 1.35, 1.36, 1.37 (one)"
    ]
    assert short(changed(spec(version="1.33"), spec(version="1.33", nodes=4))) == []


def test_public_addresses_are_counted_for_clusters_that_get_some_of_their_own() -> None:
    quotas = {ADDRESSES: AzureQuota(1000, 1000)}
    assert "public addresses left, this commit needs 1" in short(new(), quotas=quotas)[0]
    routed: dict[str, Any] = {"networkProfile": {"outboundType": "none"}}
    assert short(new(**routed), quotas=quotas) == []
    addresses = {"outboundIPs": {"publicIPs": [{"id": ADDRESS}]}}
    own: dict[str, Any] = {"networkProfile": {"loadBalancerProfile": addresses}}
    assert short(new(**own), quotas=quotas) == []


def test_addresses_of_a_subnet_are_counted_with_the_pods_of_its_nodes_unless_they_have_an_overlay() -> None:
    subnets = {SUBNET.lower(): Subnet(251, 200)}
    flat = new(pool={"vnetSubnetID": SUBNET}, networkProfile={"networkPlugin": "azure"})
    assert short(flat, subnets=subnets) == [
        "subnet hub/aks has 51 of 251 addresses left, this commit needs 93 (one)"
    ]
    overlay = {"networkPlugin": "azure", "networkPluginMode": "overlay"}
    assert short(new(pool={"vnetSubnetID": SUBNET}, networkProfile=overlay), subnets=subnets) == []


def test_a_new_cluster_that_names_no_plugin_has_the_overlay_that_aks_gives_it() -> None:
    subnets = {SUBNET.lower(): Subnet(251, 200)}
    assert short(new(pool={"vnetSubnetID": SUBNET}), subnets=subnets) == []


def test_each_size_of_a_pool_of_single_machines_is_counted() -> None:
    scale = {"manual": [{"size": "Standard_D4s_v5", "count": 3}, {"size": "Standard_Odd", "count": 1}]}
    request = added(type="VirtualMachines", virtualMachinesProfile={"scale": scale})
    found = short(request, quotas={TOTAL: AzureQuota(0, 11)})
    assert found == [
        "vmSize Standard_Odd: eastus has no such size (one)",
        "quota: eastus has 11 of 11 cores left, this commit needs 12: 1 cluster would fail (one)",
    ]


def test_an_upgrade_without_overlay_needs_addresses_for_its_surge_and_the_pods_on_it() -> None:
    flat: dict[str, Any] = {"networkProfile": {"networkPlugin": "azure", "networkPluginMode": None}}
    where = {"vnetSubnetID": SUBNET, "maxPods": 20, "upgradeSettings": {"maxSurge": "2"}}
    upgraded = changed(spec(pool=where, **flat), spec(pool=where, version="1.37", **flat))
    assert "this commit needs 42 (one)" in short(upgraded, subnets={SUBNET.lower(): Subnet(251, 211)})[0]
    assert short(upgraded, subnets={SUBNET.lower(): Subnet(251, 209)}) == []


def test_a_subnet_that_a_network_does_not_have_is_named_and_an_unseen_network_is_not() -> None:
    other = SUBNET.replace("/aks", "/akss")
    found = short(new(pool={"vnetSubnetID": other}), subnets={SUBNET.lower(): Subnet(251, 0)})
    assert found == ["subnet hub/akss: the network has no such subnet (one)"]
    assert short(new(pool={"vnetSubnetID": other}), subnets={}) == []


def test_what_azure_did_not_say_is_no_shortage() -> None:
    assert short(new(size="Standard_Odd", version="1.99"), offer=Offer()) == []


def test_azures_documents_are_read_as_its_published_examples_have_them() -> None:
    restricted = {
        "type": "Zone",
        "values": ["eastus"],
        "restrictionInfo": {"locations": ["eastus"], "zones": ["3"]},
        "reasonCode": "NotAvailableForSubscription",
    }
    documents: list[dict[str, Any]] = [
        {
            "resourceType": "virtualMachines",
            "name": "Standard_D4s_v5",
            "family": "standardDSv5Family",
            "locationInfo": [{"location": "eastus", "zones": ["2", "1", "3"]}],
            "capabilities": [{"name": "MaxResourceVolumeMB", "value": "0"}, {"name": "vCPUs", "value": "4"}],
            "restrictions": [restricted],
        },
        {"resourceType": "disks", "name": "Premium_LRS"},
    ]
    assert sizes_of(documents) == {"standard_d4s_v5": D4S}
    usage = {
        "name": {"value": "cores", "localizedValue": "Total Regional vCPUs"},
        "currentValue": 8,
        "limit": 10,
    }
    assert quotas_of([usage]) == {"cores": AzureQuota(8, 10)}
    subnet = {
        "id": SUBNET,
        "properties": {"addressPrefixes": ["10.0.0.0/24"], "ipConfigurations": [{"id": "a"}]},
    }
    known = Subnet(251, 1, ("10.0.0.0/24",))
    assert subnets_of([{"id": "x", "properties": {"subnets": [subnet]}}]) == {SUBNET.lower(): known}


@given(
    st.integers(1, 50),
    st.integers(1, 50),
    st.integers(0, 300),
    st.integers(0, 300),
)
def test_a_commit_fails_nowhere_if_what_it_adds_is_left(
    before: int, after: int, used: int, limit: int
) -> None:
    quotas = {"standardDSv5Family": AzureQuota(used, limit)}
    found = short(changed(spec(nodes=before), spec(nodes=after)), quotas=quotas)
    assert bool(found) == (4 * max(0, after - before) > max(0, limit - used))


def test_a_range_of_services_or_pods_that_a_subnet_of_the_network_has_is_named_for_a_new_cluster() -> None:
    subnets = {
        SUBNET.lower(): Subnet(251, 0, ("10.0.1.0/24",)),
        f"{NETWORK}/virtualNetworks/hub/subnets/vms".lower(): Subnet(251, 0, ("10.244.7.0/24",)),
        f"{NETWORK}/virtualNetworks/other/subnets/a".lower(): Subnet(251, 0, ("10.0.2.0/24",)),
    }
    pool = {"vnetSubnetID": SUBNET}
    assert short(new(pool=pool), subnets=subnets) == [
        "podCidr 10.244.0.0/16: subnet hub/vms has 10.244.7.0/24, which overlaps (one)",
        "serviceCidr 10.0.0.0/16: subnet hub/aks has 10.0.1.0/24, which overlaps (one)",
    ]
    apart = {"serviceCidr": "172.16.0.0/16", "dnsServiceIP": "172.16.0.10", "podCidr": "192.168.0.0/16"}
    assert short(new(pool=pool, networkProfile=apart), subnets=subnets) == []
    assert short(changed(spec(pool=pool), spec(pool=pool, nodes=4)), subnets=subnets) == []
    assert short(new(), subnets=subnets) == [], "its network is AKS's own"
    document = {"id": SUBNET, "properties": {"addressPrefixes": ["10.0.1.0/24", "fd00::/64"]}}
    assert subnets_of([{"properties": {"subnets": [document]}}])[SUBNET.lower()].ranges == ("10.0.1.0/24",)


@pytest.mark.parametrize(
    ("state", "field", "outbound", "why"),
    [
        (
            {"location": "westeurope"},
            "vnetSubnetID",
            "loadBalancer",
            "is in westeurope, and a cluster of eastus",
        ),
        ({"location": "eastus"}, "vnetSubnetID", "loadBalancer", ""),
        ({"delegated": ("Microsoft.Web/serverFarms",)}, "vnetSubnetID", "loadBalancer", "is delegated to"),
        ({"delegated": ("Microsoft.Web/serverFarms",)}, "podSubnetID", "loadBalancer", "is delegated to"),
        ({"delegated": (AKS,)}, "vnetSubnetID", "loadBalancer", f"is delegated to {AKS}, so nothing"),
        ({"delegated": (AKS,)}, "podSubnetID", "loadBalancer", ""),
        ({}, "vnetSubnetID", "userDefinedRouting", "has no route table"),
        ({"routed": True}, "vnetSubnetID", "userDefinedRouting", ""),
        ({}, "vnetSubnetID", "userAssignedNATGateway", "has no NAT gateway"),
        ({"gateway": True}, "vnetSubnetID", "userAssignedNATGateway", ""),
        ({"gateway": True}, "vnetSubnetID", "loadBalancer", "has a NAT gateway"),
        ({"gateway": True}, "podSubnetID", "loadBalancer", ""),
    ],
)
def test_what_keeps_new_nodes_out_of_a_subnet_is_told(
    state: dict[str, Any], field: str, outbound: str, why: str
) -> None:
    nodes = f"{NETWORK}/virtualNetworks/hub/subnets/nodes"
    subnets = {SUBNET.lower(): Subnet(9_999, 0, **state), nodes.lower(): Subnet(9_999, 0, routed=True)}
    asked = new(pool={"vnetSubnetID": nodes, field: SUBNET}, networkProfile={"outboundType": outbound})
    found = short(asked, subnets=subnets)
    assert len(found) == bool(why), found
    assert not why or found[0].startswith(f"subnet hub/aks {why}")
    assert short(changed(asked.new, asked.new), subnets=subnets) == [], "its nodes are there"


def test_the_state_of_a_subnet_is_read_off_its_network() -> None:
    shown = {
        "addressPrefix": "10.0.0.0/24",
        "delegations": [{"name": "a", "properties": {"serviceName": AKS}}],
        "natGateway": {"id": "/gateway"},
        "routeTable": {"id": "/routes"},
    }
    network = {"location": "EastUS", "properties": {"subnets": [{"id": SUBNET, "properties": shown}]}}
    assert subnets_of([network])[SUBNET.lower()] == Subnet(
        251, 0, ("10.0.0.0/24",), "eastus", (AKS,), gateway=True, routed=True
    )


@pytest.mark.parametrize(
    ("before", "after", "upgrades"), [("1.35", None, ""), ("1.35", "1.36", "1.36"), ("1.36", None, None)]
)
def test_a_pool_that_gives_up_its_own_version_is_upgraded_to_that_of_its_control_plane(
    before: str, after: str | None, upgrades: str | None
) -> None:
    old, asks = (spec(pool={"orchestratorVersion": version}) for version in (before, after))
    request = OfferRequest("one", old, asks)
    assert request.upgrades_to == (None if upgrades is None else "")
    assert request.own_versions == ({} if upgrades is None else {"apps": upgrades})


@pytest.mark.parametrize(("runs", "upgrades"), [("", True), ("202510.19.0", True), ("202511.07.0", False)])
def test_an_oldest_image_that_all_nodes_have_already_upgrades_nothing(runs: str, upgrades: bool) -> None:
    asks = spec(minNodeImageVersion="202511.07.0")
    image = f"AKSUbuntu-2204gen2containerd-{runs}" if runs else ""
    request = OfferRequest(
        "one", spec(), asks, RunningVersions("1.36.3", pools={"apps": PoolVersions("1.36.3", image)})
    )
    assert request.reimages is upgrades
    assert (request.upgrades_to is not None) is upgrades
