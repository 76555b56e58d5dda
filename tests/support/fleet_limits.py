"""Fleets that are resolved with clusters that are known already, and their problems."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.resolver import resolve
from shared.language.resolve.reuse import KnownCluster
from tests.support import fleet_files
from tests.support.resolved_fleets import files_of


def fleet(clusters: Mapping[str, str], known: Collection[str] = (), head: bytes = b"") -> DesiredFleet:
    """Return a fleet of clusters with more in their specs; those that are known are recorded as they are."""
    files = fleet_files.fleet() | {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra=extra)
        for name, extra in clusters.items()
    }
    if head:
        files["fleet.yaml"] = files["fleet.yaml"].replace(b"spec:\n", head, 1)
    of_others = {f"clusters/{name}/cluster.yaml" for name in set(clusters) - set(known)}
    before = {path: content for path, content in files.items() if path not in of_others}
    found = resolve("example", files_of(before), before).clusters
    recorded = {name: KnownCluster(desired.document(), desired.digest) for name, desired in found.items()}
    return resolve("example", files_of(files), files, known=recorded)


def messages(resolved: DesiredFleet) -> list[str]:
    return [f"{problem.file} {problem.field}: {problem.message}" for problem in resolved.problems]
