"""Requests near the borders of what AKS takes: `validate` and the local Azure agree on each."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.refused_specs import SPEC, problems_of, refusal_of, spec_of
from tests.support.sample import examples


@dataclass(frozen=True)
class Nodes:
    """A node pool of a generated cluster."""

    most: int
    surge: str | None
    spot: bool
    scaled: bool

    def pool(self, number: int) -> dict[str, Any]:
        size = {"minCount": 1, "maxCount": self.most} if self.scaled else {"count": self.most}
        name = "system" if number == 0 else f"pool{number}"
        settings_of = {} if self.surge is None else {"upgradeSettings": {"maxSurge": self.surge}}
        spot = {"scaleSetPriority": "Spot"} if self.spot else {}
        mode = {"mode": "System"} if number == 0 else {}
        return {"name": name, "vmSize": "Standard_D2s_v5", **mode, **size, **settings_of, **spot}

    def whole(self) -> int:
        """Return the nodes with those of an upgrade, as Microsoft's pages count them."""
        if self.spot:
            return self.most
        surge = self.surge or "10%"
        share = ceil(self.most * int(surge[:-1]) / 100) if surge.endswith("%") else int(surge)
        return self.most + share


SURGES = st.sampled_from([None, "1", "3", "10%", "33%", "50%"])
USUAL = st.builds(Nodes, st.integers(1, 20), SURGES, st.just(False), st.booleans())
SPOT = st.builds(Nodes, st.integers(1, 20), st.none(), st.just(True), st.booleans())
POOLS = st.tuples(USUAL, st.lists(USUAL | SPOT, max_size=3)).map(lambda found: [found[0], *found[1]])
NEAR = st.integers(-2, 2)
BORDER = settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def check_all_agree(spec: dict[str, Any], *, refused: bool, field: str) -> None:
    problems, (rule, _) = problems_of(spec), refusal_of(spec)
    assert (field in problems, bool(rule)) == (refused, refused), (problems, rule)


@BORDER
@given(POOLS, st.integers(1, 6), NEAR)
def test_validate_and_azure_agree_about_the_outbound_ports_of_all_nodes(
    pools: list[Nodes], addresses: int, near: int
) -> None:
    nodes = sum(pool.whole() for pool in pools)
    ports = max(8, min(64_000, (addresses * 64_000 // nodes // 8 + near) * 8))
    balancer = {"allocatedOutboundPorts": ports, "managedOutboundIPs": {"count": addresses}}
    spec = {**SPEC, "nodePools": [pool.pool(number) for number, pool in enumerate(pools)]}
    spec["networkProfile"] = {"loadBalancerProfile": balancer}
    refused = nodes * ports > addresses * 64_000
    check_all_agree(spec, refused=refused, field="networkProfile.loadBalancerProfile.allocatedOutboundPorts")


@BORDER
@given(POOLS, st.sampled_from([-1, 0, 1]), st.sampled_from(["overlay", "kubenet"]))
def test_validate_and_azure_agree_about_the_range_of_the_pods(
    pools: list[Nodes], near: int, kind: str
) -> None:
    nodes = sum(pool.most if kind == "kubenet" else pool.whole() for pool in pools)
    bits = max(0, (nodes - 1).bit_length() + near)
    plugin = (
        {"networkPlugin": "kubenet"}
        if kind == "kubenet"
        else {"networkPlugin": "azure", "networkPluginMode": kind}
    )
    spec = {**SPEC, "nodePools": [pool.pool(number) for number, pool in enumerate(pools)]}
    spec["networkProfile"] = {**plugin, "podCidr": f"10.128.0.0/{24 - bits}"}
    check_all_agree(spec, refused=nodes > 2**bits, field="networkProfile.podCidr")


@BORDER
@given(st.integers(10, 35), st.integers(1, 4), st.booleans())
def test_validate_and_azure_agree_about_thirty_pods_in_a_node_pool(
    pods: int, most: int, scaled: bool
) -> None:
    pool = Nodes(most, None, spot=False, scaled=scaled).pool(1) | {"maxPods": pods}
    spec = {**SPEC, "nodePools": [*SPEC["nodePools"], pool]}
    check_all_agree(spec, refused=most * pods < 30, field="nodePools[pool1].maxPods")


RANGES = st.sampled_from(
    [None, *(f"10.{second}.0.0/{bits}" for second in (0, 1, 244, 245) for bits in (15, 16, 17, 20))]
)
SERVICES = st.sampled_from([None, "10.0.0.0/16", "10.1.0.0/16", "10.244.0.0/16", "10.245.128.0/17"])


def _valid(text: str | None) -> str | None:
    import ipaddress

    return str(ipaddress.ip_network(text, strict=False)) if text else None


@BORDER
@given(RANGES.map(_valid), SERVICES, st.sampled_from([None, 0, 1, 2, 10, 65_536]))
def test_validate_and_azure_agree_about_pods_services_and_dns_with_the_defaults_of_aks(
    pods: str | None, services: str | None, dns: int | None
) -> None:
    import ipaddress

    network = ipaddress.ip_network(services or "10.0.0.0/16")
    address = None if dns is None else network.network_address + dns
    written = {"podCidr": pods, "serviceCidr": services, "dnsServiceIP": str(address) if address else None}
    spec = {**SPEC, "networkProfile": {key: value for key, value in written.items() if value}}
    name = address or ipaddress.ip_address("10.0.0.10")
    apart = not ipaddress.ip_network(pods or "10.244.0.0/16").overlaps(network)
    fits = name in network and int(name) - int(network.network_address) >= 2
    problems, (rule, _) = problems_of(spec), refusal_of(spec)
    assert (bool(problems), bool(rule)) == (not (apart and fits),) * 2, (problems, rule)


KEYS = st.sampled_from(["CriticalAddonsOnly", "team", "CriticalAddons"])
EFFECTS = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
TAINTS = st.lists(st.tuples(KEYS, EFFECTS, st.sampled_from("ab")), max_size=3, unique=True)


@BORDER
@given(TAINTS, st.sampled_from(["System", "User"]))
def test_validate_and_azure_agree_about_taints(taints: list[tuple[str, str, str]], mode: str) -> None:
    pool = {
        **SPEC["nodePools"][1],
        "mode": mode,
        "nodeTaints": [f"{key}={value}:{effect}" for key, effect, value in taints],
    }
    keeps_out = mode == "System" and any(
        key != "CriticalAddonsOnly" and effect != "PreferNoSchedule" for key, effect, _ in taints
    )
    refused = keeps_out or len({taint[:2] for taint in taints}) < len(taints)
    spec = {**SPEC, "nodePools": [SPEC["nodePools"][0], pool]}
    check_all_agree(spec, refused=refused, field="nodePools[apps].nodeTaints")


BESIDE_A_RESERVATION: dict[str, Any] = {
    "scaleSetPriority": "Spot",
    "proximityPlacementGroupID": "PPG",
    "hostGroupID": "HOSTS",
    "enableUltraSSD": True,
}


@BORDER
@given(st.booleans(), st.sets(st.sampled_from(sorted(BESIDE_A_RESERVATION))), st.booleans())
def test_validate_and_azure_agree_about_reservations_of_capacity(
    reserved: bool, beside: set[str], takes_swap: bool
) -> None:
    pool = {"name": "apps", **{name: BESIDE_A_RESERVATION[name] for name in beside}}
    pool |= {"capacityReservationGroupID": "CRG"} if reserved else {}
    pool |= {"linuxOSConfig": {"swapFileSizeMB": 100}, "kubeletConfig": {"failSwapOn": not takes_swap}}
    spec = spec_of({"nodePools": [pool]})
    refused = (reserved and bool(beside)) or not takes_swap
    problems, (rule, _) = problems_of(spec), refusal_of(spec)
    assert (bool(problems), bool(rule)) == (refused, refused), (problems, rule)


@BORDER
@given(
    st.sampled_from([None, "V1", "V1B", "V2"]),
    st.sampled_from([None, "V1", "V1B", "V2"]),
    st.sampled_from(
        [None, "loadBalancer", "managedNATGateway", "userAssignedNATGateway", "userDefinedRouting"]
    ),
)
def test_validate_and_azure_agree_about_subnets_and_the_way_out(
    first: str | None, second: str | None, outbound: str | None
) -> None:
    subnets = [{"name": "system", "vnetSubnetID": first}, {"name": "apps", "vnetSubnetID": second}]
    spec = spec_of({"nodePools": subnets, "networkProfile": {"outboundType": outbound} if outbound else {}})
    own = bool(first or second)
    mixed = bool(first) is not bool(second) or (first or "")[:2] != (second or "")[:2]
    needs = outbound in ("userAssignedNATGateway", "userDefinedRouting") and not own
    refused = mixed or needs or (outbound == "managedNATGateway" and own)
    problems, (rule, _) = problems_of(spec), refusal_of(spec)
    assert (bool(problems), bool(rule)) == (refused, refused), (problems, rule)


@BORDER
@given(
    st.sampled_from([None, "system", "none", "own"]),
    st.sampled_from(
        ["privatelink.", "private.", "a.privatelink.", "a.b.privatelink.", "x" * 33 + ".private.", ""]
    ),
    st.sampled_from(["westeurope", "northeurope"]),
    st.booleans(),
)
def test_validate_and_azure_agree_about_private_zones(
    kind: str | None, prefix: str, region: str, user: bool
) -> None:
    zone = f"ZONE/{prefix}westeurope.azmk8s.io" if kind == "own" else kind
    access = {"enablePrivateCluster": True, **({"privateDNSZone": zone} if zone else {})}
    identity = {"identity": {"type": "UserAssigned", "userAssignedIdentity": "USER"}} if user else {}
    spec = spec_of({"apiServerAccessProfile": access, "location": region, **identity})
    named_well = prefix in ("privatelink.", "private.", "a.privatelink.", "")
    refused = kind == "own" and (region == "northeurope" or not user or not named_well)
    problems, (rule, _) = problems_of(spec), refusal_of(spec)
    assert (bool(problems), bool(rule)) == (refused, refused), (problems, rule)


PUBLIC = [(0, 9), (11, 99), (101, 126), (128, 168), (170, 171), (173, 191), (193, 223)]
"""First octets of addresses that somebody may have on the internet, with nothing else among them."""
FIRST = st.sampled_from([octet for first, last in PUBLIC for octet in (first or 1, last)])
PRIVATE = st.sampled_from(["10.255.255.0", "172.16.0.0", "172.31.255.0", "192.168.0.0", "100.64.0.0"])
BESIDE = st.sampled_from(["9.255.255.0", "11.0.0.0", "172.15.255.0", "172.32.0.0", "192.167.255.0"])


@BORDER
@given(st.lists(FIRST.map("{}.7.0.0".format) | BESIDE, max_size=2), st.none() | PRIVATE, st.integers(24, 32))
def test_validate_and_azure_agree_about_the_ranges_of_callers(
    public: list[str], private: str | None, bits: int
) -> None:
    ranges = [f"{first}/{bits}" for first in (*public, *((private,) if private else ()))]
    spec = {**SPEC, "apiServerAccessProfile": {"authorizedIPRanges": ranges}} if ranges else SPEC
    check_all_agree(spec, refused=private is not None, field="apiServerAccessProfile.authorizedIPRanges")


SIZES = {
    **{"Standard_D2s_v5": "", "Standard_D2as_v5": "", "Standard_DS2_v2": "", "Standard_DC2s_v3": ""},
    **{"Standard_DS1_v2": "small", "Standard_B1ms": "small", "Standard_F1s": "small"},
    **{"Standard_D2ps_v5": "arm", "Standard_E2pds_v5": "arm", "Standard_B2pts_v2": "arm"},
    **{"Standard_DC2as_v5": "confidential", "Standard_EC2ads_v5": "confidential"},
    **{"Standard_DC2es_v5": "confidential", "Standard_NP10s": "", "Standard_L8as_v3": ""},
}


@BORDER
@given(st.sampled_from([*SIZES]), st.sampled_from(["System", "User", "Windows", "enableFIPS"]))
def test_validate_and_azure_agree_about_sizes(size: str, kind: str) -> None:
    beside: dict[str, Any] = {"System": {"mode": "System"}, "Windows": {"osType": "Windows"}}
    beside["enableFIPS"] = {"enableFIPS": True}
    pool = {**SPEC["nodePools"][1], "vmSize": size, **beside.get(kind, {})}
    named = {"small": {"System": "vmSize"}, "arm": {"Windows": "vmSize", "enableFIPS": "enableFIPS"}}
    named["confidential"] = {"Windows": "vmSize", "enableFIPS": "vmSize"}
    field = named.get(SIZES[size], {}).get(kind, "")
    spec = {**SPEC, "nodePools": [SPEC["nodePools"][0], pool]}
    check_all_agree(spec, refused=bool(field), field=f"nodePools[apps].{field or 'vmSize'}")


@BORDER
@given(st.sampled_from([-1.0, -0.5, 0.0, 0.00001, 0.000001, 0.5, 0.12345, 0.123456]), st.booleans())
def test_validate_and_azure_agree_about_the_price_of_spot_nodes(price: float, spot: bool) -> None:
    kind = {"scaleSetPriority": "Spot"} if spot else {}
    spec = spec_of({"nodePools": [{"name": "apps", "spotMaxPrice": price, **kind}]})
    fits = price == -1 or (price > 0 and price == round(price, 5))
    problems, (rule, _) = problems_of(spec), refusal_of(spec)
    assert bool(problems) is not (fits and spot)
    assert bool(rule) is not (fits and (spot or price == -1))
