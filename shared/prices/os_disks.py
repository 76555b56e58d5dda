"""The disk of a node, as AKS chooses it where git does not.

Sources: learn.microsoft.com/azure/aks/concepts-storage, "Default OS disk sizing" (by cores) and "Ephemeral OS
disk" (the default where the size has room for it, and for 128 GiB where git names no size);
learn.microsoft.com/azure/virtual-machines/vm-naming-conventions (what the letters of a size say),
sizes/general-purpose/dsv5-series and ddsv5-series (which have a local disk, of 75 GiB for two cores), and
managed-disks-overview (tiers of premium disks).
"""

from __future__ import annotations

from bisect import bisect_left
from enum import StrEnum

from shared.language.model.node_pool import NodePool
from shared.language.resolve.rules.size_rules import SizeName

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
