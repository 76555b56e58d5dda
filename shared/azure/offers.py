"""What a commit needs of Azure, compared with what a region has left for the subscription. Pure.

It annotates a plan and decides nothing: what Azure did not say is unknown, and what is enough is not
reported. Sources: learn.microsoft.com/azure/aks/quotas-skus-regions (cores of a family and of a region, sizes
that a subscription may not have) and
configure-azure-cni (addresses: without overlay each node takes one, and one for each of its pods).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from ipaddress import ip_network

from shared.frozen import dataclass, field
from shared.json_tree import Json
from shared.kubernetes_versions import numbers
from shared.language.desired import Desired
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.node_pool import AUTO, NodePool
from shared.language.resolve.rules.refusal import completed, surge_of
from shared.resource_ids import RegionId
from shared.sentences import many, some_of

NAMED = 5
"""How many clusters a sentence names."""
PODS = 30
"""Pods on a node of Azure CNI without overlay, unless the manifest says."""
RESERVED = 5
"""The addresses of each subnet that Azure keeps (virtual-networks-faq)."""
TOTAL, ADDRESSES = "cores", "IPv4StandardSkuPublicIpAddresses"
"""The names of the limits of all cores of a region, and of its public addresses."""


@dataclass(frozen=True)
class Size:
    """A size of machines: its family, cores and zones, and whether the subscription may not have it."""

    family: str
    cores: int
    zones: frozenset[str] = frozenset()
    barred: bool = False


@dataclass(frozen=True)
class Quota:
    """A limit, and what of it is used."""

    used: int
    limit: int

    @property
    def left(self) -> int:
        """What is left; what is used can be above the limit."""
        return max(0, self.limit - self.used)


@dataclass(frozen=True)
class Subnet:
    """How many addresses a subnet has for nodes and pods, and how many of them are used."""

    size: int
    used: int

    @property
    def left(self) -> int:
        """The addresses that are left."""
        return max(0, self.size - self.used)


@dataclass(frozen=True)
class Offer:
    """What Azure has in one region for one subscription; None, or nothing, for what it did not say.

    ``sizes`` and ``subnets`` are by name and id in lower case, ``quotas`` by the names that Azure gives them.
    Subnets can be in other subscriptions.
    """

    regions: Collection[str] | None = None
    versions: Collection[str] | None = None
    sizes: Mapping[str, Size] | None = None
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    subnets: Mapping[str, Subnet] = field(default_factory=dict)


# What Azure's documents say.


def sizes_of(documents: Sequence[Json]) -> dict[str, Size]:
    """Return the sizes of machines in a list of what can be created in a region."""
    found = {}
    for document in documents:
        if document["resourceType"] != "virtualMachines":
            continue
        named = {one.get("name"): one.get("value") for one in document.get("capabilities") or ()}
        places = document.get("locationInfo") or ()
        zones = {str(zone) for place in places for zone in place.get("zones") or ()}
        limits = document.get("restrictions") or ()
        for limit in limits:
            if limit.get("type") == "Zone":
                zones -= {*((limit.get("restrictionInfo") or {}).get("zones") or ())}
        cores = str(named.get("vCPUs") or "")
        found[str(document["name"]).lower()] = Size(
            str(document.get("family") or ""),
            int(cores) if cores.isdecimal() else 0,
            frozenset(zones),
            any(limit.get("type") == "Location" for limit in limits),
        )
    return found


def quotas_of(documents: Sequence[Json]) -> dict[str, Quota]:
    """Return the limits in a list of usages by their names."""
    return {
        str((document["name"] or {}).get("value")): Quota(
            int(document.get("currentValue") or 0), int(document["limit"])
        )
        for document in documents
    }


def subnets_of(networks: Sequence[Json]) -> dict[str, Subnet]:
    """Return the subnets of networks by their ids in lower case; those of IPv6 alone have no limit."""
    found = {}
    for network in networks:
        for subnet in network["properties"].get("subnets") or ():
            shown = subnet.get("properties") or {}
            prefixes = shown.get("addressPrefixes") or [shown.get("addressPrefix")]
            sizes = [_addresses(str(prefix)) for prefix in prefixes if prefix and ":" not in str(prefix)]
            if sizes:
                used = len(shown.get("ipConfigurations") or ())
                found[str(subnet["id"]).lower()] = Subnet(sum(sizes) - RESERVED, used)
    return found


def _addresses(prefix: str) -> int:
    try:
        return ip_network(prefix, strict=False).num_addresses
    except ValueError:
        return 0


# What a cluster adds.


@dataclass(frozen=True)
class Request:
    """What the commit asks of one cluster: ``old`` is its spec before, None for a new one.

    ``new`` has the values that AKS chooses for a new cluster where git names none.
    """

    cluster: str
    old: ClusterSpec | None
    new: ClusterSpec

    @classmethod
    def of(cls, wanted: Desired, old: ClusterSpec | None) -> Request:
        """Return what is asked of a cluster; one that is adopted has the values of another day."""
        return cls(wanted.name, old, wanted.spec if wanted.adopt else completed(wanted.spec))

    @property
    def place(self) -> RegionId:
        """Where it is, in lower case."""
        return RegionId(self.new.subscription_id.lower(), self.new.location.lower())

    @property
    def networks_in(self) -> frozenset[str]:
        """The subscriptions of the subnets that git names for nodes and pods."""
        named = (id for pool in self.new.node_pools for id in (pool.vnet_subnet_id, pool.pod_subnet_id))
        return frozenset(id.split("/")[2].lower() for id in named if id)


def _sized(pool: NodePool) -> Mapping[str, int]:
    """Return how many nodes a pool has at first by their size: the least of one that is autoscaled."""
    if pool.stopped:
        return {}
    scale = pool.virtual_machines_profile.scale if pool.virtual_machines_profile else None
    if scale is None:
        return {pool.vm_size or "": pool.count or pool.min_count or 0}
    manual = {part.size: part.count for part in scale.manual}
    return manual | {part.size: part.min_count for part in scale.autoscale}


def _growth(request: Request) -> Iterator[tuple[NodePool, str, int]]:
    """Yield each pool with a size and the nodes of it that the commit adds, also while it upgrades."""
    before = {pool.name: pool for pool in request.old.node_pools} if request.old else {}
    for pool in request.new.node_pools:
        had = before.get(pool.name)
        earlier = _sized(had) if had else {}
        upgraded = (
            request.old is not None and had and _version(request.old, had) != _version(request.new, pool)
        )
        for size, nodes in _sized(pool).items():
            added = max(0, nodes - earlier.get(size, 0)) + (surge_of(pool, nodes) if upgraded else 0)
            if added:
                yield pool, size, added


def _version(spec: ClusterSpec, pool: NodePool) -> str:
    return pool.orchestrator_version or spec.kubernetes_version


def _cores(request: Request, sizes: Mapping[str, Size]) -> Counter[str]:
    """Return the cores that a cluster adds by the family of their limit, and in all."""
    needed = Counter[str]()
    for pool, name, added in _growth(request):
        size = sizes.get(name.lower())
        if size is not None and pool.scale_set_priority != "Spot":
            needed[size.family] += size.cores * added
            needed[TOTAL] += size.cores * added
    return needed


def _public(request: Request) -> int:
    """Return the public addresses that AKS makes for a new cluster."""
    network = request.new.network_profile
    if request.old is not None:
        return 0
    if network.outbound_type == "managedNATGateway":
        gateway = network.nat_gateway_profile
        addresses = gateway.managed_outbound_ip_profile if gateway else None
        return (addresses.count if addresses else None) or 1
    balancer = network.load_balancer_profile
    if network.outbound_type != "loadBalancer":
        return 0
    if balancer and (balancer.outbound_ips or balancer.outbound_ip_prefixes):
        return 0
    managed = balancer.managed_outbound_ips if balancer else None
    return (managed.count if managed else None) or 1


def _addressed(request: Request) -> Counter[str]:
    """Return the addresses that a cluster adds by the ids of subnets in lower case."""
    network, needed = request.new.network_profile, Counter[str]()
    flat = network.network_plugin == "azure" and network.network_plugin_mode != "overlay"
    for pool, _, added in _growth(request):
        pods = (pool.max_pods or PODS) * added
        if pool.vnet_subnet_id:
            needed[pool.vnet_subnet_id.lower()] += added + (pods if flat and not pool.pod_subnet_id else 0)
        if pool.pod_subnet_id:
            needed[pool.pod_subnet_id.lower()] += pods
    return needed


# What is short.


def shortages(requests: Iterable[Request], offers: Mapping[RegionId, Offer]) -> list[str]:
    """Return a sentence for each thing that Azure does not have, or not enough of, as far as it is known."""
    by_place = defaultdict[RegionId, list[Request]](list)
    for request in requests:
        by_place[request.place].append(request)
    found = list[str]()
    for place, together in sorted(by_place.items()):
        offer = offers.get(place)
        if offer is not None:
            together.sort(key=lambda request: request.cluster)
            found += _of_region(place, together, offer)
    return list(dict.fromkeys(found))


def _of_region(place: RegionId, requests: list[Request], offer: Offer) -> Iterator[str]:
    named = _named(request.cluster for request in requests)
    if offer.regions is not None and place.location not in offer.regions:
        yield (
            f"location {place.location}: subscription {place.subscription} has no such region"
            f"{_instead(place.location, offer.regions)} ({named})"
        )
        return
    yield from _of_versions(place, requests, offer)
    yield from _of_sizes(place, requests, offer)
    needs = {request.cluster: _cores(request, offer.sizes or {}) for request in requests}
    limits = {name: None for need in needs.values() for name in need}
    for name in limits:
        what = "cores" if name == TOTAL else f"cores of {name}"
        each = {cluster: need[name] for cluster, need in needs.items() if need[name]}
        yield from _of_quota(what, place.location, each, offer.quotas.get(name))
    public = {request.cluster: count for request in requests if (count := _public(request))}
    yield from _of_quota("public addresses", place.location, public, offer.quotas.get(ADDRESSES))
    yield from _of_subnets(requests, offer)


def _of_versions(place: RegionId, requests: list[Request], offer: Offer) -> Iterator[str]:
    """Yield the versions that nobody runs yet and that the region does not offer."""
    if not offer.versions:
        return
    offered = {numbers(version) for version in offer.versions}
    asked = defaultdict[str, list[str]](list)
    for request in requests:
        had = _versions(request.old) if request.old else set()
        for version in _versions(request.new) - had:
            if not any(known[: len(numbers(version))] == numbers(version) for known in offered):
                asked[version].append(request.cluster)
    shown = ", ".join(".".join(map(str, known)) for known in sorted({known[:2] for known in offered}))
    for version, clusters in sorted(asked.items()):
        yield (
            f"Kubernetes {version} is not offered in {place.location}, which has {shown} ({_named(clusters)})"
        )


def _versions(spec: ClusterSpec) -> set[str]:
    named = (spec.kubernetes_version, *(pool.orchestrator_version or "" for pool in spec.node_pools))
    return {version for version in named if numbers(version)}


def _of_sizes(place: RegionId, requests: list[Request], offer: Offer) -> Iterator[str]:
    """Yield the sizes of new pools that the region, or a zone, does not have for the subscription."""
    if not offer.sizes:
        return
    asked = defaultdict[tuple[str, tuple[str, ...]], list[str]](list)
    for request in requests:
        for pool, name, _ in _growth(request):
            if name:
                asked[name, tuple(pool.availability_zones)].append(request.cluster)
    for (name, zones), clusters in sorted(asked.items()):
        size = offer.sizes.get(name.lower())
        of = f"({_named(clusters)})"
        if size is None:
            yield f"vmSize {name}: {place.location} has no such size{_instead(name, offer.sizes)} {of}"
        elif size.barred:
            yield f"vmSize {name}: Azure bars the subscription from it in {place.location} {of}"
        elif lacking := sorted({*zones} - {AUTO} - size.zones):
            where = f"zone {', '.join(lacking)} of {place.location}"
            yield f"vmSize {name}: the subscription has none in {where} {of}"


def _of_quota(what: str, where: str, needs: Mapping[str, int], quota: Quota | None) -> Iterator[str]:
    needed = sum(needs.values())
    if quota is None or needed <= quota.left:
        return
    left, failing = quota.left, list[str]()
    for cluster, count in needs.items():
        if count <= left:
            left -= count
        else:
            failing.append(cluster)
    yield (
        f"quota: {where} has {quota.left} of {quota.limit} {what} left, this commit needs {needed}: "
        f"{many(len(failing), 'cluster')} would fail ({_named(failing)})"
    )


def _of_subnets(requests: list[Request], offer: Offer) -> Iterator[str]:
    needs = defaultdict[str, dict[str, int]](dict)
    for request in requests:
        for subnet, count in _addressed(request).items():
            needs[subnet][request.cluster] = count
    for subnet, each in sorted(needs.items()):
        known, needed = offer.subnets.get(subnet), sum(each.values())
        name = "/".join(subnet.split("/")[-3::2])
        if known is None and _network(subnet) in {_network(other) for other in offer.subnets}:
            yield f"subnet {name}: the network has no such subnet ({_named(each)})"
        elif known is not None and needed > known.left:
            yield (
                f"subnet {name} has {known.left} of {known.size} addresses left, this commit needs {needed} "
                f"({_named(each)})"
            )


def _network(subnet: str) -> str:
    return subnet.rpartition("/subnets/")[0]


def _named(clusters: Iterable[str]) -> str:
    return some_of(sorted({*clusters}), NAMED)


def _instead(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name.lower(), [*known], 1, 0.75)
    return f"; did you mean {near[0]}?" if near else ""
