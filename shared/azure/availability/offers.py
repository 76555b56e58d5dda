"""What a commit needs of Azure, compared with what a region has left for the subscription. Pure.

It annotates a plan and decides nothing: what Azure did not say is unknown, and what is enough is not
reported. Sources: learn.microsoft.com/azure/aks/quotas-skus-regions (cores of a family and of a region, sizes
that a subscription may not have), concepts-storage and enable-host-encryption (disks that a size lacks) and
configure-azure-cni (addresses: without overlay each node takes one, and one for each of its pods).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from ipaddress import IPv4Network

from shared.azure.availability.offered import AzureQuota, Offer, Size, Subnet
from shared.azure.running_versions import UNKNOWN, RunningVersions
from shared.frozen import dataclass
from shared.kubernetes_versions import needs_upgrade, numbers
from shared.language.desired import Desired, dumped_spec
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.node_pool import AUTO, NodePool
from shared.language.resolve.rules.refusal import completed, pod_ranges, service_ranges, surge_of
from shared.resource_ids import RegionId
from shared.sentences import many, some_of

NAMED = 5
"""How many clusters a sentence names."""
PODS = 30
"""Pods on a node of Azure CNI without overlay, unless the manifest says."""
DISK = 128
"""The GB of an OS disk that git does not size (concepts-storage: ephemeral from 128 GiB on)."""
_AKS = "microsoft.containerservice/managedclusters"
TOTAL, ADDRESSES, CLUSTERS = "cores", "IPv4StandardSkuPublicIpAddresses", "ManagedClusters"
"""The names of the limits of all cores of a region, of its public addresses, and of its clusters."""


# What a cluster adds.


@dataclass(frozen=True)
class OfferRequest:
    """What the commit asks of one cluster: ``old`` is its spec before, None for a new one.

    ``new`` has the values that AKS chooses for a new cluster where git names none. ``runs`` are the versions
    that it ran when it was read last.
    """

    cluster: str
    old: ClusterSpec | None
    new: ClusterSpec
    runs: RunningVersions = UNKNOWN

    @classmethod
    def of(cls, wanted: Desired, old: ClusterSpec | None, runs: RunningVersions = UNKNOWN) -> OfferRequest:
        """Return what is asked of a cluster; one that is adopted has the values of another day."""
        return cls(wanted.name, old, wanted.spec if wanted.adopt else completed(wanted.spec), runs)

    @property
    def place(self) -> RegionId:
        """Where it is, in lower case."""
        return RegionId(self.new.subscription_id.lower(), self.new.location.lower())

    @property
    def upgrades_to(self) -> str | None:
        """The version that the control plane is upgraded to, "" for pools or images alone, None for none."""
        old, new = self.old, self.new
        if old is None:
            return None
        if needs_upgrade(new.kubernetes_version, old.kubernetes_version):
            return new.kubernetes_version
        return "" if self.own_versions or self.reimages else None

    @property
    def own_versions(self) -> Mapping[str, str]:
        """The versions of their own to which node pools are upgraded, "" for that of the control plane."""
        old, new = self.old, self.new
        before = {pool.name: pool for pool in old.node_pools} if old else {}
        return {
            pool.name: pool.orchestrator_version or ""
            for pool in new.node_pools
            if old
            and (had := before.get(pool.name))
            and pool.orchestrator_version != had.orchestrator_version
            and needs_upgrade(_version(new, pool), _version(old, had))
        }

    @property
    def reimages(self) -> bool:
        """Whether git asks for newer images than its nodes have, or may have."""
        old, wanted = self.old, self.new.min_node_image_version
        if old is None or wanted in (None, old.min_node_image_version):
            return False
        return not self.runs.has_image(wanted, dumped_spec(self.new))

    @property
    def networks_in(self) -> frozenset[str]:
        """The subscriptions of the subnets that git names for nodes and pods."""
        named = (id for pool in self.new.node_pools for id in (pool.vnet_subnet_id, pool.pod_subnet_id))
        return frozenset(id.split("/")[2].lower() for id in named if id)


def sized(pool: NodePool) -> Mapping[str, int]:
    """Return how many nodes a pool has at first by their size: the least of one that is autoscaled."""
    if pool.stopped:
        return {}
    scale = pool.virtual_machines_profile.scale if pool.virtual_machines_profile else None
    if scale is None:
        return {pool.vm_size or "": pool.count or pool.min_count or 0}
    manual = {part.size: part.count for part in scale.manual}
    return manual | {part.size: part.min_count for part in scale.autoscale}


def _growth(request: OfferRequest) -> Iterator[tuple[NodePool, str, int]]:
    """Yield each pool with a size and the nodes of it that the commit adds, also while it upgrades."""
    before = {pool.name: pool for pool in request.old.node_pools} if request.old else {}
    for pool in request.new.node_pools:
        had = before.get(pool.name)
        earlier = sized(had) if had else {}
        upgraded = (
            request.old is not None
            and had
            and (request.reimages or _version(request.old, had) != _version(request.new, pool))
        )
        for size, nodes in sized(pool).items():
            added = max(0, nodes - earlier.get(size, 0)) + (surge_of(pool, nodes) if upgraded else 0)
            if added:
                yield pool, size, added


def _version(spec: ClusterSpec, pool: NodePool) -> str:
    return pool.orchestrator_version or spec.kubernetes_version


def _cores(request: OfferRequest, sizes: Mapping[str, Size]) -> Counter[str]:
    """Return the cores that a cluster adds by the family of their limit, and in all."""
    needed = Counter[str]()
    for pool, name, added in _growth(request):
        size = sizes.get(name.lower())
        if size is not None and pool.scale_set_priority != "Spot":
            needed[size.family] += size.cores * added
            needed[TOTAL] += size.cores * added
    return needed


def managed_addresses(spec: ClusterSpec) -> int:
    """Return the public addresses for outbound traffic that AKS makes and owns."""
    network = spec.network_profile
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


def _addressed(request: OfferRequest) -> Counter[str]:
    """Return the addresses that a cluster adds by the ids of subnets in lower case."""
    needed = Counter[str]()
    for pool, _, added in _growth(request):
        needed += addresses_of(request.new, pool, added)
    return needed


def addresses_of(spec: ClusterSpec, pool: NodePool, nodes: int) -> Counter[str]:
    """Return the addresses that so many nodes of a pool take, by the ids of subnets in lower case."""
    network, needed = spec.network_profile, Counter[str]()
    flat = network.network_plugin == "azure" and network.network_plugin_mode != "overlay"
    pods = (pool.max_pods or PODS) * nodes
    if pool.vnet_subnet_id:
        needed[pool.vnet_subnet_id.lower()] += nodes + (pods if flat and not pool.pod_subnet_id else 0)
    if pool.pod_subnet_id:
        needed[pool.pod_subnet_id.lower()] += pods
    return needed


# What is short.


def shortages(requests: Iterable[OfferRequest], offers: Mapping[RegionId, Offer]) -> list[str]:
    """Return a sentence for each thing that Azure does not have, or not enough of, as far as it is known."""
    by_place = defaultdict[RegionId, list[OfferRequest]](list)
    for request in requests:
        by_place[request.place].append(request)
    found = list[str]()
    for place, together in sorted(by_place.items()):
        offer = offers.get(place)
        if offer is not None:
            together.sort(key=lambda request: request.cluster)
            found += _of_region(place, together, offer)
    return list(dict.fromkeys(found))


def _of_region(place: RegionId, requests: list[OfferRequest], offer: Offer) -> Iterator[str]:
    named = _named(request.cluster for request in requests)
    if offer.regions is not None and place.location not in offer.regions:
        yield (
            f"location {place.location}: subscription {place.subscription} has no such region"
            f"{_instead(place.location, offer.regions)} ({named})"
        )
        return
    for found in (
        _of_versions(place, requests, offer),
        _of_sizes(place, requests, offer),
        _of_disks(requests, offer.sizes or {}),
        _of_ranges(requests, offer),
        _of_networks(place, requests, offer),
    ):
        yield from _grouped(found)
    needs = {request.cluster: _cores(request, offer.sizes or {}) for request in requests}
    limits = {name: None for need in needs.values() for name in need}
    for name in limits:
        what = "cores" if name == TOTAL else f"cores of {name}"
        each = {cluster: need[name] for cluster, need in needs.items() if need[name]}
        yield from _of_quota(what, place.location, each, offer.quotas.get(name))
    new = [request for request in requests if request.old is None]
    public = {request.cluster: count for request in new if (count := managed_addresses(request.new))}
    yield from _of_quota("public addresses", place.location, public, offer.quotas.get(ADDRESSES))
    created = {request.cluster: 1 for request in new}
    yield from _of_quota("managed clusters", place.location, created, offer.quotas.get(CLUSTERS))
    yield from _of_subnets(requests, offer)


def _grouped(found: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield each text with the clusters that it is of."""
    of = defaultdict[str, list[str]](list)
    for text, cluster in found:
        of[text].append(cluster)
    return (f"{text} ({_named(clusters)})" for text, clusters in sorted(of.items()))


def _of_versions(place: RegionId, requests: list[OfferRequest], offer: Offer) -> Iterator[tuple[str, str]]:
    """Yield the versions that nobody runs yet and that the region does not offer, with who asks for each."""
    offered = {numbers(version) for version in offer.versions or ()}
    shown = ", ".join(".".join(map(str, known)) for known in sorted({known[:2] for known in offered}))
    for request in requests if offered else ():
        had = _versions(request.old) if request.old else set()
        for version in _versions(request.new) - had:
            if not any(known[: len(numbers(version))] == numbers(version) for known in offered):
                where = f"is not offered in {place.location}, which has {shown}"
                yield f"Kubernetes {version} {where}", request.cluster


def _versions(spec: ClusterSpec) -> set[str]:
    named = (spec.kubernetes_version, *(pool.orchestrator_version or "" for pool in spec.node_pools))
    return {version for version in named if numbers(version)}


def _of_sizes(place: RegionId, requests: list[OfferRequest], offer: Offer) -> Iterator[tuple[str, str]]:
    """Yield the sizes of new pools that the region, or a zone, does not have for the subscription."""
    for request in requests if offer.sizes else ():
        for pool, name, _ in _growth(request):
            size, why = (offer.sizes or {}).get(name.lower()), ""
            if size is None:
                why = f"{place.location} has no such size{_instead(name, offer.sizes or {})}"
            elif size.barred:
                why = f"Azure bars the subscription from it in {place.location}"
            elif lacking := sorted({*pool.availability_zones} - {AUTO} - size.zones):
                why = f"the subscription has none in zone {', '.join(lacking)} of {place.location}"
            if name and why:
                yield f"vmSize {name}: {why}", request.cluster


def _of_disks(requests: list[OfferRequest], sizes: Mapping[str, Size]) -> Iterator[tuple[str, str]]:
    """Yield what the disks of new pools ask for and their sizes of machines do not have."""
    for request in requests:
        before = {pool.name for pool in request.old.node_pools} if request.old else set()
        for pool in request.new.node_pools:
            size, disk = sizes.get((pool.vm_size or "").lower()), pool.os_disk_size_gb or DISK
            if size is None or pool.name in before:
                continue
            if pool.os_disk_type == "Ephemeral" and size.ephemeral is not None and disk > size.ephemeral:
                room = f"has {size.ephemeral} GB for an ephemeral OS disk, this commit needs {disk}"
                yield f"vmSize {pool.vm_size}: {room}", request.cluster
            if pool.enable_encryption_at_host and size.encrypts is False:
                yield f"vmSize {pool.vm_size}: has no encryption at host", request.cluster


def _of_quota(what: str, where: str, needs: Mapping[str, int], quota: AzureQuota | None) -> Iterator[str]:
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


def _of_subnets(requests: list[OfferRequest], offer: Offer) -> Iterator[str]:
    needs = defaultdict[str, dict[str, int]](dict)
    for request in requests:
        for subnet, count in _addressed(request).items():
            needs[subnet][request.cluster] = count
    for subnet, counts in sorted(needs.items()):
        known, needed = offer.subnets.get(subnet), sum(counts.values())
        name = subnet_name(subnet)
        if known is None and _network(subnet) in {_network(other) for other in offer.subnets}:
            yield f"subnet {name}: the network has no such subnet ({_named(counts)})"
        elif known is not None and needed > known.left:
            yield (
                f"subnet {name} has {known.left} of {known.size} addresses left, this commit needs {needed} "
                f"({_named(counts)})"
            )


def _of_networks(place: RegionId, requests: list[OfferRequest], offer: Offer) -> Iterator[tuple[str, str]]:
    """Yield what keeps new node pools out of the subnets that git names.

    Sources: the error pages of SubnetIsDelegated and InvalidResourceReference, egress-outboundtype and
    nat-gateway; Azure/azure-service-operator#2273 (a gateway and the load balancer).
    """
    for request in requests:
        before = {pool.name for pool in request.old.node_pools} if request.old else set()
        outbound = request.new.network_profile.outbound_type
        for pool in (pool for pool in request.new.node_pools if pool.name not in before):
            for id in filter(None, (pool.vnet_subnet_id, pool.pod_subnet_id)):
                subnet, of_nodes = offer.subnets.get(id.lower()), id == pool.vnet_subnet_id
                for why in _keeps_out(subnet, place.location, outbound, of_nodes) if subnet else ():
                    yield f"subnet {subnet_name(id.lower())} {why}", request.cluster


def _keeps_out(subnet: Subnet, location: str, outbound: str | None, of_nodes: bool) -> Iterator[str]:
    if subnet.location not in ("", location):
        yield f"is in {subnet.location}, and a cluster of {location} takes none of another region"
    others = [name for name in subnet.delegated if of_nodes or name.lower() != _AKS]
    if others:
        yield f"is delegated to {', '.join(others)}, so nothing of a cluster can be in it"
    if of_nodes and outbound == "userDefinedRouting" and not subnet.routed:
        yield "has no route table, and outboundType userDefinedRouting needs one with a default route"
    if of_nodes and outbound == "userAssignedNATGateway" and not subnet.gateway:
        yield "has no NAT gateway, and outboundType userAssignedNATGateway needs one"
    if of_nodes and outbound == "loadBalancer" and subnet.gateway:
        yield "has a NAT gateway, and outboundType loadBalancer does not go with one"


def _of_ranges(requests: list[OfferRequest], offer: Offer) -> Iterator[tuple[str, str]]:
    """Yield the ranges of services and pods of new clusters that a subnet of their network has already.

    Source: the error page of ServiceCidrOverlapExistingSubnetsCidr; concepts-network-azure-cni-overlay.
    """
    for request in (request for request in requests if request.old is None):
        around = {_network((pool.vnet_subnet_id or "").lower()) for pool in request.new.node_pools}
        profile = request.new.network_profile
        wanted = (("serviceCidr", service_ranges(profile)), ("podCidr", pod_ranges(profile)))
        for id, subnet in sorted(offer.subnets.items()):
            for field, ranges in wanted if _network(id) in around else ():
                for text in (text for text in ranges if any(_overlap(text, own) for own in subnet.ranges)):
                    there = f"subnet {subnet_name(id)} has {', '.join(subnet.ranges)}"
                    yield f"{field} {text}: {there}, which overlaps", request.cluster


def _overlap(range: str, other: str) -> bool:
    return ":" not in range and IPv4Network(range, strict=False).overlaps(IPv4Network(other, strict=False))


def subnet_name(subnet: str) -> str:
    """Return what a sentence calls a subnet: hub/nodes."""
    return "/".join(subnet.split("/")[-3::2])


def _network(subnet: str) -> str:
    return subnet.rpartition("/subnets/")[0]


def _named(clusters: Iterable[str]) -> str:
    return some_of(sorted({*clusters}), NAMED)


def _instead(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name.lower(), [*known], 1, 0.75)
    return f"; did you mean {near[0]}?" if near else ""
