"""What a cluster is listed at for a month: its tier, its nodes and their disks, and its public addresses.

It is a list price of what git asks for, and never what it costs: what is not counted is named. A pool that is
autoscaled is listed from its minimum to its maximum. Of a cluster that sleeps by a schedule, tier and nodes
are listed for the hours in which that has it awake.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType

from shared.azure.availability.offers import managed_addresses
from shared.frozen import dataclass, replace
from shared.language.model.cluster.schedules import Sleep, SleepSchedule, last_moment, next_moment
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.node_pool import NodePool
from shared.language.resolve.rules.refusal import completed
from shared.language.resolve.rules.size_rules import SizeName
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
class PriceLine:
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

    lines: tuple[PriceLine, ...] = ()
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
class PricePart:
    """From ``least`` to ``most`` of one thing that a cluster consists of; ``pool`` as in a ``PriceLine``."""

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


def _priced(spec: ClusterSpec, parts: Iterable[PricePart], prices: Prices, awake: Decimal) -> Monthly:
    lines, missing, region = list[PriceLine](), dict[str, None](), spec.location
    for part in parts:
        price = prices.of(part.kind, part.name, region)
        if price is None:
            missing[f"no price for {of_kind(part.kind)}{part.name} in {region}"] = None
        else:
            month = price.month if part.kind in STAYS else price.month * awake
            lines.append(PriceLine(part.kind, price.name, region, part.pool, part.least, part.most, month))
    return Monthly(tuple(lines), tuple(missing))


def of_kind(kind: Kind) -> str:
    """Return what stands before the name of a thing: nothing for a node, whose name says what it is."""
    return "" if kind is Kind.NODE else f"{kind} "


def parts_of(spec: ClusterSpec) -> Iterator[PricePart]:
    """Yield what a cluster consists of that a price file may have."""
    if spec.existing is not None:
        return
    if not spec.sku.automatic and (tier := spec.sku.tier or STANDARD) != FREE:
        yield PricePart(Kind.TIER, tier)
    for pool in spec.node_pools:
        yield from _of_pool(pool)
    if addresses := managed_addresses(completed(spec)):
        yield PricePart(Kind.ADDRESS, ADDRESS, "", addresses, addresses)


def _of_pool(pool: NodePool) -> Iterator[PricePart]:
    if pool.stopped:
        return
    for size, least, most in sizes_of(pool):
        yield PricePart(_node(pool), size, pool.name, least, most)
        disk = os_disk(pool, size)
        if not isinstance(disk, OsDisk):
            yield PricePart(Kind.DISK, disk, pool.name, least, most)
        if pool.enable_node_public_ip and not pool.node_public_ip_prefix_id:
            yield PricePart(Kind.ADDRESS, ADDRESS, pool.name, least, most)


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


# The disk of a node, as AKS chooses it where git does not.
#
# Sources: learn.microsoft.com/azure/aks/concepts-storage, "Default OS disk sizing" (by cores) and
# "Ephemeral OS disk" (the default where the size has room for it, and for 128 GiB where git names no size);
# learn.microsoft.com/azure/virtual-machines/vm-naming-conventions (what the letters of a size say),
# sizes/general-purpose/dsv5-series and ddsv5-series (which have a local disk, of 75 GiB for two cores), and
# managed-disks-overview (tiers of premium disks).

_PLAIN_FAMILIES = frozenset({"D", "DC", "E", "EC", "F"})
"""Families whose sizes since version 5 have a local disk if, and only if, they have the letter d."""
_FROM_VERSION = 5
_LEAST_ON_HOST = 128
_ON_HOST_OF_A_CORE = 37
"""Gigabytes of local disk that each core of these sizes has at the least."""
_DEFAULTS = ((8, 128), (16, 256), (64, 512))
_LARGEST_DEFAULT = 1024
_TIERS = {32: "P4", 64: "P6", 128: "P10", 256: "P15", 512: "P20", 1024: "P30", 2048: "P40", 4096: "P50"}


class OsDisk(StrEnum):
    """What is known of a node's disk where it is no managed disk with a tier."""

    ON_HOST = "on the node's host"
    UNKNOWN = "AKS chooses it"


def os_disk(pool: NodePool, size: str) -> str | OsDisk:
    """Return the name of the disk of a node, such as "P10 LRS", or what is known instead."""
    if pool.os_disk_type == "Ephemeral":
        return OsDisk.ON_HOST
    name = SizeName.of(size)
    plain = name.family in _PLAIN_FAMILIES and name.version >= _FROM_VERSION
    if pool.os_disk_type is None and not plain:
        return OsDisk.UNKNOWN  # older sizes may have room for it in their cache
    if pool.os_disk_type is None and "d" in name.features:
        fits = (pool.os_disk_size_gb or _LEAST_ON_HOST) <= name.cores * _ON_HOST_OF_A_CORE
        return OsDisk.ON_HOST if fits else OsDisk.UNKNOWN
    premium = "s" in name.features or name.family in ("DS", "GS", "FS")
    gigabytes = pool.os_disk_size_gb or (_default(name.cores) if plain else 0)
    return f"{_tier(gigabytes)} LRS" if premium and gigabytes else OsDisk.UNKNOWN


def _default(cores: int) -> int:
    return next((size for below, size in _DEFAULTS if cores < below), _LARGEST_DEFAULT)


def _tier(gigabytes: int) -> str:
    sizes = [*_TIERS]
    return _TIERS[sizes[bisect_left(sizes, gigabytes)]]


# What is left of a list price while a cluster sleeps, and for how much of the time it is awake.
#
# A stopped cluster accrues no charges itself: no tier and no nodes (learn.microsoft.com/rest/api/aks/
# managed-clusters/stop). What is around it stays: its load balancer with the public addresses
# (github.com/Azure/AKS/issues/3749), and volumes. A stop deletes the nodes
# (github.com/MicrosoftDocs/azure-docs/issues/80093), and what becomes of the disks and addresses of nodes
# Azure does not say, so these count from none to all.

WEEK_HOURS = 168
_SPAN = timedelta(days=28)
_MOST = 500
"""Moments of a schedule that are looked at: one that turns more often is listed as always awake."""


def awake_share(sleep: Sleep | None, labels: Mapping[str, str], day: date) -> Decimal:
    """Return for which part of four weeks from a day the schedules have a cluster awake; 1 is always.

    Holidays and what operators order are left out.
    """
    if sleep is None or not sleep.schedules:
        return Decimal(1)
    if sleep.keep_awake and sleep.keep_awake.items() <= labels.items():
        return Decimal(1)
    return _share(sleep.schedules, sleep.early, day)


@lru_cache(maxsize=256)
def _share(schedules: tuple[SleepSchedule, ...], early: timedelta, day: date) -> Decimal:
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    turns = [(begin, _awake(schedules, early, begin))]
    for schedule in schedules:
        stops = [(at, False) for at in _moments(schedule.stop, schedule.time_zone, begin, begin + _SPAN)]
        starts = _moments(schedule.start, schedule.time_zone, begin + early, begin + early + _SPAN)
        turns += [*stops, *((at - early, True) for at in starts)]
        if len(stops) >= _MOST:
            return Decimal(1)
    turns = [*sorted(turns), (begin + _SPAN, True)]
    awake = sum(
        ((until - at) for (at, is_awake), (until, _) in pairwise(turns) if is_awake),
        timedelta(),
    )
    return Decimal(int(awake.total_seconds())) / Decimal(int(_SPAN.total_seconds()))


def _awake(schedules: tuple[SleepSchedule, ...], early: timedelta, at: datetime) -> bool:
    stopped = max(last_moment(schedule.stop, schedule.time_zone, at) for schedule in schedules)
    started = max(
        last_moment(schedule.start, schedule.time_zone, at + early) - early for schedule in schedules
    )
    return started >= stopped


def _moments(cron: str, zone: str, after: datetime, until: datetime) -> Iterator[datetime]:
    at = after
    for _ in range(_MOST):
        at = next_moment(cron, zone, at)
        if at >= until:
            return
        yield at


def hours_text(share: Decimal) -> str:
    """Return how many hours of a week a share is: 60 of 168."""
    return f"{share * WEEK_HOURS:.0f} of {WEEK_HOURS}"
