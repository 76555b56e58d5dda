"""The disk of a node, as AKS chooses it where git does not.

Sources: learn.microsoft.com/azure/aks/concepts-storage, "Default OS disk sizing" (by cores) and "Ephemeral OS
disk" (the default where the size has room for it); learn.microsoft.com/azure/virtual-machines/
vm-naming-conventions (what the letters of a size say), sizes/general-purpose/dsv5-series and ddsv5-series
(which have a local disk), and managed-disks-overview (tiers of premium disks).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from enum import StrEnum

from shared.language.model.node_pool import NodePool

_SIZE = re.compile(r"standard_([a-z]+?)(\d+)(?:-\d+)?([a-z]*)((?:_[a-z0-9]+)*?)(?:_v(\d+))?", re.IGNORECASE)
_PLAIN_FAMILIES = frozenset({"b", "d", "dc", "e", "ec", "f"})
"""Families whose sizes since version 5 have a local disk if, and only if, they have the letter d."""
_FROM_VERSION = 5
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
    found = _SIZE.fullmatch(size)
    if found is None:
        return OsDisk.UNKNOWN
    family, number, letters, version = found[1].lower(), int(found[2]), found[3].lower(), int(found[5] or 1)
    plain = family in _PLAIN_FAMILIES and version >= _FROM_VERSION
    if pool.os_disk_type is None and not plain:
        return OsDisk.UNKNOWN  # older sizes may have room for it in their cache
    if pool.os_disk_type is None and "d" in letters:
        return OsDisk.ON_HOST
    premium = "s" in letters or family in ("ds", "gs", "fs")
    gigabytes = pool.os_disk_size_gb or (_default(number) if plain else 0)
    return f"{_tier(gigabytes)} LRS" if premium and gigabytes else OsDisk.UNKNOWN


def _default(cores: int) -> int:
    return next((size for below, size in _DEFAULTS if cores < below), _LARGEST_DEFAULT)


def _tier(gigabytes: int) -> str:
    sizes = [*_TIERS]
    return _TIERS[sizes[bisect_left(sizes, gigabytes)]]
