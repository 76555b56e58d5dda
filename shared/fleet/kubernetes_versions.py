"""Kubernetes versions: "1.33" asks for a minor, "1.33.2" for a patch, and nothing is ever taken back.

And versions of node images, which end with a date: learn.microsoft.com/azure/aks/node-image-upgrade.
"""

from __future__ import annotations

import re
from functools import lru_cache

POOL_LAG = 3
"""How many minors a node pool may follow: learn.microsoft.com/azure/aks/supported-kubernetes-versions."""


@lru_cache(maxsize=1024)
def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, () when it is none."""
    parts = version.removeprefix("v").split(".")
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else ()


def needs_upgrade(wanted: str, current: str) -> bool:
    """Return whether what runs is older than what is asked for; a minor alone is met by all its patches."""
    asked, runs = numbers(wanted), numbers(current)
    return bool(asked) and runs[: len(asked)] < asked[: len(runs) or None]


def lags(pool: str, control_plane: str) -> bool:
    """Return whether a node pool's version would be too many minors behind the control plane's for AKS."""
    follows, leads = numbers(pool), numbers(control_plane)
    return len(follows) > 1 and len(leads) > 1 and leads[1] - follows[1] > POOL_LAG


def runs_newer(wanted: str, current: str) -> bool:
    """Return whether what runs is newer than what is asked for; AKS has no way back."""
    asked = numbers(wanted)
    return bool(asked) and numbers(current)[: len(asked)] > asked


_LINUX_IMAGE = re.compile(r"AKS(?!Windows)[A-Za-z0-9.-]*-([0-9]{6}\.[0-9]{1,2}(\.[0-9]{1,3})?)")


def image_older(node_image_version: str, minimum: str) -> bool:
    """Return whether a pool's image is older than "202511.01" or "202511.01.0" asks for.

    ``node_image_version`` is as AKS writes it, such as "AKSUbuntu-2204gen2containerd-202511.01.0". Of any
    other form, and of Windows images, whose dates are other ones, nothing is known: they are not older.
    """
    found = _LINUX_IMAGE.fullmatch(node_image_version)
    return found is not None and _three(numbers(found[1])) < _three(numbers(minimum))


def _three(version: tuple[int, ...]) -> tuple[int, ...]:
    return (*version, 0, 0, 0)[:3]
