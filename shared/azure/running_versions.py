"""What a cluster runs, as it was read last, against the versions that git asks for. Pure.

AKS lowers no version of a control plane (learn.microsoft.com/azure/aks/upgrade-aks-cluster), and a node pool
goes back only by a rollback, which git asks for with a field of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from shared.frozen import dataclass, field
from shared.json_tree import Json
from shared.kubernetes_versions import image_older, needs_upgrade, numbers, runs_newer

CONTROL_PLANE = "kubernetesVersion"


@dataclass(frozen=True)
class PoolVersions:
    """What the nodes of a pool run: the version of Kubernetes and of the image; "" for what is not known."""

    kubernetes: str = ""
    image: str = ""


@dataclass(frozen=True)
class AppliedRevision:
    """The revision that the first Kustomization said it applied last, "" for none, and when that was read."""

    revision: str
    read_at: datetime

    def __str__(self) -> str:
        return f"Flux applied {self.revision or 'nothing'}, read at {self.read_at:%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True)
class RunningVersions:
    """What ran when a cluster was verified or compared last: the version of its control plane, and its nodes;
    "" and 0 for what is not known.

    ``pools`` has the oldest versions of each node pool by its name in the manifest. ``flux`` is what a job or
    a check read last of Flux, None where neither could read it. ``renamed`` has the manifest's name of each
    node pool that has another one in Azure, because it replaced one; also once somebody has deleted it.
    """

    kubernetes_version: str = ""
    nodes: int = 0
    flux: AppliedRevision | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)
    pools: Mapping[str, PoolVersions] = field(default_factory=dict)

    def has_version(self, path: str, wanted: str, before: Json, after: Json) -> bool:
        """Return whether a version runs already, or a newer one: a change to it upgrades nothing.

        ``path`` is below ``spec``; ``before`` and ``after`` are specs. The version of the control plane is
        that of the pools that name none. What is not known counts as not running.
        """
        if path != CONTROL_PLANE:
            return self._pool_has(_pool_of(path), wanted)
        had = {pool.get("name") for pool in before.get("nodePools") or ()}
        following = (
            str(pool["name"])
            for pool in after.get("nodePools") or ()
            if pool.get("name") in had and not pool.get("orchestratorVersion")
        )
        return _has(self.kubernetes_version, wanted) and all(
            self._pool_has(name, wanted) for name in following
        )

    def has_image(self, oldest: str, after: Json) -> bool:
        """Return whether no pool of a spec has an image that is older, as far as images have such dates."""
        linux = [pool for pool in after.get("nodePools") or () if pool.get("osType") != "Windows"]
        images = [self.pools.get(str(pool.get("name")), PoolVersions()).image for pool in linux]
        return all(image and not image_older(image, oldest) for image in images)

    def version_at(self, path: str) -> str:
        """Return the version that runs where a field of versions is, "" if unknown."""
        if path == CONTROL_PLANE:
            return self.kubernetes_version
        return self.pools.get(_pool_of(path), PoolVersions()).kubernetes

    def _pool_has(self, name: str, wanted: str) -> bool:
        return _has(self.pools.get(name, PoolVersions()).kubernetes, wanted)


UNKNOWN = RunningVersions()


def _has(runs: str, wanted: str) -> bool:
    return bool(numbers(runs) and numbers(wanted)) and not needs_upgrade(wanted, runs)


def _pool_of(path: str) -> str:
    return path.partition("[")[2].partition("]")[0]


def lowered_versions(before: Json, after: Json, earlier: Mapping[str, str]) -> dict[str, str]:
    """Return the versions that git had and has lowered since, by their paths below ``spec``.

    ``before`` and ``after`` are specs; ``earlier`` is what git had lowered until then. A version is no longer
    lowered once git has it again. A pool that names none has that of the control plane.
    """
    had, has = dict(_versions(before)), dict(_versions(after))
    highest = {path: _newer(had.get(path, ""), earlier.get(path, "")) for path in has}
    return {path: version for path, version in highest.items() if runs_newer(has[path], version)}


def run_lowered(spec: Json, lowered: Mapping[str, str], running: RunningVersions) -> bool:
    """Return whether a version still runs that git has ``lowered``, or may: what is not known counts."""
    has = dict(_versions(spec))
    now = ((has.get(path, ""), running.version_at(path)) for path in lowered)
    return any(not runs or runs_newer(wanted, runs) for wanted, runs in now)


def _newer(version: str, other: str) -> str:
    return max((version, other), key=numbers)


def _versions(spec: Json) -> Iterator[tuple[str, str]]:
    control_plane = str(spec.get("kubernetesVersion") or "")
    yield CONTROL_PLANE, control_plane
    for pool in spec.get("nodePools") or ():
        yield (
            f"nodePools[{pool['name']}].orchestratorVersion",
            pool.get("orchestratorVersion") or control_plane,
        )
