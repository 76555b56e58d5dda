"""Commits that change what Flux applies: clusters that no job verifies afterwards are checked minutes later.

A timer compares the commit that was planned last with the one that was compared before. That takes two trees
of GitHub, and the records only if more than manifests of Roadstead changed.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from shared.fleet.manifests.cluster.flux.source import MAIN
from shared.fleet.resolve.repository_layout import Files, cluster_paths, shared_paths
from shared.jobs.failures.errors import ReconcileError, Stale
from shared.jobs.findings.at_rest import is_at_rest, is_unfinished
from shared.jobs.record import ClusterRecord
from shared.logs import about
from shared.pipeline.outbox import request_checks
from shared.pipeline.repository.commit_reader import read_files
from shared.pipeline.worker.steps.flux.wanted_commit import pulls_the_fleet
from shared.ports import FleetRecord, Ports

log = logging.getLogger(__name__)

SETTLED = timedelta(minutes=3)
"""So long after a plan Flux has fetched the commit, as it looks every minute, and has mostly applied it."""
GIVES_UP = timedelta(minutes=30)
"""So long GitHub is asked again for a commit that it does not show: a forced push may have removed it."""
MOST = 100
"""How many clusters are checked because of one commit: each path has one before another has its second."""


def check_changed_paths(ports: Ports) -> None:
    """Ask that clusters are checked whose Flux applies what the newest commit changed; once for a commit."""
    fleet = ports.state.fleet()
    if fleet.planning or fleet.commit in ("", fleet.flux_checked):
        return
    with about(commit=fleet.commit):
        _check_changed(fleet, ports)


def _check_changed(fleet: FleetRecord, ports: Ports) -> None:
    plan_record = ports.state.plan(fleet.commit)
    # A plan of the future is one of a wrong clock.
    age = abs(ports.clock() - plan_record.at) if plan_record else timedelta()
    if age < SETTLED:
        return
    try:
        names = _following(fleet.flux_checked, fleet.commit, ports) if fleet.flux_checked else ()
    except ReconcileError as error:
        log.warning("what %s changes is not known: %s: %s", fleet.commit[:8], error.kind, error)
        if age < GIVES_UP:
            return
        names = ()
    request_checks(names, f"paths:{fleet.commit}", ports)
    try:
        ports.state.save_fleet(replace(fleet, flux_checked=fleet.commit))
    except Stale:
        log.info(
            "the planner has saved the fleet's record meanwhile; the next run of the timer compares again"
        )


def _following(before: str, commit: str, ports: Ports) -> Sequence[str]:
    """Return the clusters at rest whose Flux applies what changed between two commits, ``MOST`` at most.

    A job of the newer commit that has ended well has verified that.
    """
    changed = _changed(read_files(before, ports), read_files(commit, ports))
    if not changed:
        return ()
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for record in ports.state.clusters():
        unverified = record.commit != commit or is_unfinished(record)
        if is_at_rest(record) and unverified and pulls_the_fleet(record, ports.config):
            for path in _paths(record):
                groups[path].append(record.name)
    ranked: dict[str, int] = {}
    for path, names in groups.items():
        if _covers(path, changed):
            for rank, name in enumerate(names):
                ranked[name] = min(rank, ranked.get(name, rank))
    return sorted(ranked, key=lambda name: (ranked[name], name))[:MOST]


def _paths(record: ClusterRecord) -> frozenset[str]:
    """Return the folders of its first source that Flux applies to a cluster."""
    flux = record.document["spec"]["flux"]
    others = (one for one in flux.get("kustomizations") or () if one.get("source") in (None, MAIN))
    return frozenset({flux["path"], *(one.get("path") or "./" for one in others if one["name"] != MAIN)})


def _changed(before: Files, after: Files) -> frozenset[str]:
    """Return the paths that differ, without the manifests of Roadstead."""
    differing = dict(before.blobs.items() ^ after.blobs.items())
    manifests = {path for files in (before, after) for path in _manifests(files)}
    return frozenset(differing) - manifests


def _manifests(files: Files) -> Iterable[str]:
    return (*shared_paths(files), *cluster_paths(files, files.folders))


def _covers(path: str, changed: Iterable[str]) -> bool:
    folder = path.removeprefix("./").strip("/")
    return any(not folder or each.startswith(f"{folder}/") for each in changed)
