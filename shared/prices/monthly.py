"""What a cluster is listed at for a month: its tier, its nodes and their disks, and its public addresses.

It is a list price of what git asks for, and never what it costs: what is not counted is named. A pool that is
autoscaled is listed from its minimum to its maximum. Of a cluster that sleeps by a schedule, tier and nodes
are listed for the hours in which that has it awake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from types import MappingProxyType

from shared.azure.availability.offers import managed_addresses
from shared.frozen import dataclass, replace
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.node_pool import NodePool
from shared.language.resolve.rules.refusal import completed
from shared.prices.asleep import awake_share, hours_text
from shared.prices.os_disks import OsDisk, os_disk
from shared.prices.price_file import Kind, Prices

ADDRESS = "Standard IPv4 static"
"""The name of a public address in a price file."""
FREE, STANDARD = "Free", "Standard"
ALWAYS_LEFT_OUT = (
    "network traffic, load balancer rules, volumes, logs, nodes that an upgrade adds, "
    "and discounts of every kind"
)
"""What no list price of a cluster has."""
STAYS = (Kind.DISK, Kind.ADDRESS)
"""What is billed while a cluster sleeps, too."""
NO_LABELS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Line:
    """So many of one thing: from ``least`` to ``most`` of it, one for ``month``.

    ``pool`` is "" for what belongs to the cluster as a whole.
    """

    kind: Kind
    name: str
    region: str
    pool: str
    least: int
    most: int
    month: Decimal

    @property
    def low(self) -> Decimal:
        """What the least of it is listed at."""
        return self.month * self.least

    @property
    def high(self) -> Decimal:
        """What the most of it is listed at."""
        return self.month * self.most


@dataclass(frozen=True)
class Monthly:
    """The list price of a cluster for a month in the currency of the prices.

    ``missing`` names what has no price in the file, ``left_out`` what else of this cluster is not counted;
    ``ALWAYS_LEFT_OUT`` is not repeated there. Spot nodes are a part of ``low`` and ``high``.
    """

    lines: tuple[Line, ...] = ()
    missing: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def low(self) -> Decimal:
        """With each autoscaled pool at its minimum."""
        return sum((line.low for line in self.lines), Decimal())

    @property
    def high(self) -> Decimal:
        """With each autoscaled pool at its maximum."""
        return sum((line.high for line in self.lines), Decimal())

    @property
    def spot(self) -> Monthly:
        """Its spot nodes alone, whose prices change by the hour."""
        return Monthly(tuple(line for line in self.lines if line.kind.is_spot))


@dataclass(frozen=True)
class Part:
    """From ``least`` to ``most`` of one thing that a cluster consists of; ``pool`` as in a ``Line``."""

    kind: Kind
    name: str
    pool: str = ""
    least: int = 1
    most: int = 1


def monthly(spec: ClusterSpec, prices: Prices, labels: Mapping[str, str] = NO_LABELS) -> Monthly:
    """Return the list price of a cluster; ``labels`` are its own, which may keep it awake."""
    if spec.existing is not None:
        return Monthly(left_out=("the cluster, which is outside Roadstead",))
    share = awake_share(spec.sleep, labels, prices.day)
    found = _priced(spec, parts_of(spec), prices, share)
    return Monthly(found.lines, found.missing, tuple(dict.fromkeys(_left_out(spec, share))))


def idle(spec: ClusterSpec, prices: Prices) -> Monthly:
    """Return the list price of a cluster that sleeps all month: of nodes' disks and addresses none to all."""
    stays = (part for part in parts_of(spec) if part.kind in STAYS)
    left = (replace(part, least=0) if part.pool else part for part in stays)
    return _priced(spec, left, prices, Decimal(1))


def _priced(spec: ClusterSpec, parts: Iterable[Part], prices: Prices, awake: Decimal) -> Monthly:
    lines, missing, region = list[Line](), dict[str, None](), spec.location
    for part in parts:
        price = prices.of(part.kind, part.name, region)
        if price is None:
            missing[f"no price for {of_kind(part.kind)}{part.name} in {region}"] = None
        else:
            month = price.month if part.kind in STAYS else price.month * awake
            lines.append(Line(part.kind, price.name, region, part.pool, part.least, part.most, month))
    return Monthly(tuple(lines), tuple(missing))


def of_kind(kind: Kind) -> str:
    """Return what stands before the name of a thing: nothing for a node, whose name says what it is."""
    return "" if kind is Kind.NODE else f"{kind} "


def parts_of(spec: ClusterSpec) -> Iterator[Part]:
    """Yield what a cluster consists of that a price file may have."""
    if spec.existing is not None:
        return
    if not spec.sku.automatic and (tier := spec.sku.tier or STANDARD) != FREE:
        yield Part(Kind.TIER, tier)
    for pool in spec.node_pools:
        yield from _of_pool(pool)
    if addresses := managed_addresses(completed(spec)):
        yield Part(Kind.ADDRESS, ADDRESS, "", addresses, addresses)


def _of_pool(pool: NodePool) -> Iterator[Part]:
    if pool.stopped:
        return
    for size, least, most in sizes_of(pool):
        yield Part(_node(pool), size, pool.name, least, most)
        disk = os_disk(pool, size)
        if not isinstance(disk, OsDisk):
            yield Part(Kind.DISK, disk, pool.name, least, most)
        if pool.enable_node_public_ip and not pool.node_public_ip_prefix_id:
            yield Part(Kind.ADDRESS, ADDRESS, pool.name, least, most)


def sizes_of(pool: NodePool) -> Iterator[tuple[str, int, int]]:
    """Yield the sizes of a pool that git names, each with the least and the most of its nodes."""
    machines = pool.virtual_machines_profile
    if machines is not None:
        yield from ((part.size, part.count, part.count) for part in machines.scale.manual)
        yield from ((part.size, part.min_count, part.max_count) for part in machines.scale.autoscale)
    elif pool.vm_size:
        least = pool.count if pool.count is not None else pool.min_count or 0
        yield pool.vm_size, least, pool.max_count or least


def _node(pool: NodePool) -> Kind:
    spot = pool.scale_set_priority == "Spot"
    if pool.os_type == "Windows":
        return Kind.WINDOWS_SPOT_NODE if spot else Kind.WINDOWS_NODE
    return Kind.SPOT_NODE if spot else Kind.NODE


def _left_out(spec: ClusterSpec, awake: Decimal) -> Iterator[str]:
    """Yield what of this cluster is not counted, although git asks for it."""
    if spec.sku.automatic:
        yield "the fee of AKS Automatic"
    provisioning = spec.node_provisioning_profile
    if spec.sku.automatic or (provisioning and provisioning.mode == "Auto"):
        yield "nodes of node auto-provisioning"
    if awake < 1:
        yield f"holidays, and what operators order: listed as awake {hours_text(awake)} hours of a week"
    elif spec.sleep and spec.sleep.holidays:
        yield "holidays: listed as awake"
    outbound = spec.network_profile.outbound_type
    if outbound and "NATGateway" in outbound:
        yield "the NAT gateway"
    if spec.sku.automatic and not outbound:
        yield "the NAT gateway of AKS Automatic, with its address"
    for pool in spec.node_pools:
        yield from _of_pool_left_out(pool)


def _of_pool_left_out(pool: NodePool) -> Iterator[str]:
    if pool.stopped:
        yield f"disks of the stopped pool {pool.name}"
        return
    sizes = [size for size, _, _ in sizes_of(pool)]
    if not sizes:
        yield f"the pool {pool.name}, whose size AKS chooses"
    if any(os_disk(pool, size) is OsDisk.UNKNOWN for size in sizes):
        yield f"OS disks of the pool {pool.name}: {OsDisk.UNKNOWN}; osDiskType and osDiskSizeGB say"
    if pool.host_group_id:
        yield f"the dedicated hosts of the pool {pool.name}"


def together(found: Iterable[Monthly]) -> Monthly:
    """Return the list price of several clusters."""
    all_of = list(found)
    return Monthly(
        tuple(line for monthly in all_of for line in monthly.lines),
        tuple(dict.fromkeys(text for monthly in all_of for text in monthly.missing)),
        tuple(dict.fromkeys(text for monthly in all_of for text in monthly.left_out)),
    )
