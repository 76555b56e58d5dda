"""Commits that change what Flux applies: clusters that no job verifies afterwards are checked minutes later.

A timer compares the newest commit that was planned with the last one that was covered, and requests checks of
the clusters whose Flux applies a folder that differs. It covers one commit at a time, and the newest one
after it: so commits that follow each other put nothing off. For a commit that cannot be compared, and for the
first one, every cluster is checked.

A run takes two trees, and the records only if more than manifests of Roadstead changed. It requests
``MOST`` checks; the next run goes on after the last of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence, Set
from datetime import datetime, timedelta

from shared.app.outbox import send_all
from shared.app.repository import read_files
from shared.app.worker.steps.flux.waiting import pulls_the_fleet
from shared.cluster.failures.errors import ReconcileError, Stale
from shared.cluster.findings.conditions import is_at_rest, is_unfinished
from shared.cluster.queues.envelopes import checks_of
from shared.cluster.record import ClusterRecord
from shared.frozen import replace
from shared.language.resolve.repository_layout import Files, cluster_paths, shared_paths
from shared.logs import about
from shared.platform.pins import roots_of
from shared.ports import FleetRecord, Ports
from shared.ports.state import PathsCheck

log = logging.getLogger(__name__)

SETTLED = timedelta(minutes=3)
"""So long after a plan Flux has fetched the commit, as it looks every minute, and has mostly applied it."""
GIVES_UP = timedelta(minutes=30)
"""So long the host is asked again for a commit that it does not show: a forced push may have removed it."""
MOST = 1000
"""How many checks a run of the timer requests: about as many as end before the next run."""


def check_changed_paths(ports: Ports) -> None:
    """Request the checks of the clusters whose Flux applies what commits changed, ``MOST`` at most."""
    before, fleet = ports.state.sweep().paths, ports.state.fleet()
    after = _next(before, fleet, ports.clock())
    if after.commit and _is_settled(after, ports.clock()):
        with about(commit=after.commit):
            after = _next(_advanced(after, fleet, ports), fleet, ports.clock())
    if after != before:
        _save(after, ports)


def _next(paths: PathsCheck, fleet: FleetRecord, now: datetime) -> PathsCheck:
    """Return which commit to cover: the one of an earlier run, or else the newest one that was planned."""
    if paths.commit or fleet.commit in ("", paths.covered):
        return paths
    return replace(paths, commit=fleet.commit, since=fleet.at or now)


def _is_settled(paths: PathsCheck, now: datetime) -> bool:
    """Return whether Flux had the time to apply a commit."""
    return paths.since is None or now - paths.since >= SETTLED


def _advanced(paths: PathsCheck, fleet: FleetRecord, ports: Ports) -> PathsCheck:
    """Return how far a commit is covered, after the checks of this run were requested."""
    problem, changed = "", None
    if paths.covered:
        try:
            changed = _changed(read_files(paths.covered, ports), read_files(paths.commit, ports))
        except ReconcileError as error:
            problem = f"what {paths.commit[:8]} changes is not known: {error.kind}: {error}"
            log.warning("%s", problem)
            if paths.since is not None and ports.clock() - paths.since < GIVES_UP:
                return replace(paths, problem=f"{problem}; the next run asks again")
            problem += "; every cluster is checked instead"
    names = _following(paths, changed, fleet, ports) if changed is None or changed else ()
    send_all(checks_of(names[:MOST], f"paths:{paths.commit}"), ports)
    if len(names) > MOST:
        return replace(paths, after=names[MOST - 1], problem=problem)
    return PathsCheck(paths.commit, problem=problem)


def _following(
    paths: PathsCheck, changed: Set[str] | None, fleet: FleetRecord, ports: Ports
) -> Sequence[str]:
    """Return the clusters at rest whose Flux applies a folder that changed, by name, after earlier runs."""
    unverified = _unverified(paths, fleet)
    return sorted(
        record.name
        for record in ports.state.clusters()
        if record.name > paths.after
        and is_at_rest(record)
        and unverified(record)
        and record.desired.pin is None
        and pulls_the_fleet(record, ports.config)
        and (changed is None or not changed.isdisjoint(roots_of(record.document["spec"]["flux"])))
    )


def _unverified(paths: PathsCheck, fleet: FleetRecord) -> Callable[[ClusterRecord], bool]:
    """Return whether neither a job that ended well nor a check has read how Flux does with a commit."""
    settled = paths.since and paths.since + SETTLED

    def unverified(record: ClusterRecord) -> bool:
        verified = record.commit in (paths.commit, fleet.commit) and not is_unfinished(record)
        return not verified and not (
            record.observation.inside and settled and settled <= record.observation.inside.at
        )

    return unverified


def _save(paths: PathsCheck, ports: Ports) -> None:
    """Write how far the checks have come; sweeps may write their record at the same time."""
    while True:
        try:
            ports.state.save_sweep(replace(ports.state.sweep(), paths=paths))
        except Stale:
            continue
        return


def _changed(before: Files, after: Files) -> frozenset[str]:
    """Return the folders in which a file differs, at any depth; the manifests of Roadstead are none."""
    differing = dict(before.blobs.items() ^ after.blobs.items())
    manifests = {path for files in (before, after) for path in _manifests(files)}
    parts = (path.split("/") for path in differing.keys() - manifests)
    return frozenset("/".join(names[:depth]) for names in parts for depth in range(len(names)))


def _manifests(files: Files) -> Iterable[str]:
    return (*shared_paths(files), *cluster_paths(files, files.folders))
