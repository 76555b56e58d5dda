"""Kubernetes versions: "1.36" requests a minor, "1.36.2" a patch; AKS never downgrades.

Versions of node images end with a date: learn.microsoft.com/azure/aks/node-image-upgrade.
"""

from __future__ import annotations

import re
from functools import lru_cache

POOL_LAG = 3
"""How many minors a node pool may be behind: learn.microsoft.com/azure/aks/supported-kubernetes-versions."""
_NEWEST_OF_REVISIONS = {23: 32, 24: 33, 25: 33, 26: 34, 27: 35, 28: 35, 29: 36, 30: 36}
"""The newest minor of Kubernetes 1 for each revision asm-1-N of AKS's Istio: "Compatible AKS versions" of
learn.microsoft.com/azure/aks/istio-support-policy."""
_TOO_LONG = 10
"""Digits that no number of a version has; Python reads no more than 4,300 as an integer."""


@lru_cache(maxsize=1024)
def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, () for a string that is none."""
    parts = version.removeprefix("v").split(".")
    is_version = all(part.isdecimal() and len(part) < _TOO_LONG for part in parts)
    return tuple(int(part) for part in parts) if is_version else ()


def needs_upgrade(wanted: str, current: str) -> bool:
    """Return whether the running version is older than the requested one; any patch satisfies a minor."""
    target, running = numbers(wanted), numbers(current)
    return bool(target) and running[: len(target)] < target[: len(running) or None]


def lags(pool: str, control_plane: str) -> bool:
    """Return whether a node pool's version would be too many minors behind the control plane's for AKS."""
    follows, leads = numbers(pool), numbers(control_plane)
    return len(follows) > 1 and len(leads) > 1 and leads[1] - follows[1] > POOL_LAG


def runs_newer(wanted: str, current: str) -> bool:
    """Return whether the running version is newer than the requested one; AKS cannot downgrade."""
    target = numbers(wanted)
    return bool(target) and numbers(current)[: len(target)] > target


def never_back(runs: str, git: str) -> str:
    """Return the sentence for a version that git has below the one that runs."""
    return f"runs {runs}, git has {git}: AKS never goes back"


def is_version(path: str) -> bool:
    """Return whether a field, by its path in a manifest, is the version of a cluster or of a node pool."""
    return path.rpartition(".")[2] in ("kubernetesVersion", "orchestratorVersion")


def stays_newer(wanted: str, before: str, runs: str) -> bool:
    """Return whether ``wanted`` asks a version to go down, which never happens.

    ``before`` was requested until now, and ``runs`` was running when somebody looked last, "" if nobody did:
    since then an upgrade may have brought ``before``.
    """
    if runs and needs_upgrade(wanted, runs):
        return False
    return runs_newer(wanted, runs) or runs_newer(wanted, before)


_LINUX_IMAGE = re.compile(r"AKS(?!Windows)[A-Za-z0-9.-]*-([0-9]{6}\.[0-9]{1,2}(\.[0-9]{1,3})?)")


def image_older(node_image_version: str, minimum: str) -> bool:
    """Return whether a pool's image is older than a minimum such as "202511.01" or "202511.01.0".

    ``node_image_version`` is as AKS writes it, such as "AKSUbuntu-2204gen2containerd-202511.01.0". Images of
    any other form never count as older; nor do Windows images, which have other dates.
    """
    image = image_version(node_image_version)
    return bool(image) and lower_image(image, minimum)


def image_version(node_image_version: str) -> str:
    """Return the version of a Linux image, such as "202511.01.0", "" for any other image."""
    image = _LINUX_IMAGE.fullmatch(node_image_version)
    return image[1] if image else ""


def lower_image(image: str, other: str) -> bool:
    """Return whether the version of an image is lower than another one."""
    return _three(numbers(image)) < _three(numbers(other))


def _three(version: tuple[int, ...]) -> tuple[int, ...]:
    return (*version, 0, 0, 0)[:3]


def newest_for_revision(revision: str) -> tuple[int, int] | None:
    """Return the newest version of Kubernetes for a revision such as "asm-1-27", None where nobody says."""
    found = re.fullmatch(r"asm-1-(\d+)", revision)
    minor = _NEWEST_OF_REVISIONS.get(max(int(found[1]), min(_NEWEST_OF_REVISIONS))) if found else None
    return None if minor is None else (1, minor)
