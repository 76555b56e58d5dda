"""Commits that change what Flux applies: clusters that no job verifies afterwards are checked minutes later.

A timer compares the newest commit that was planned with the one that it compared last, and requests checks of
the clusters whose Flux applies a folder that differs, for when Flux has had the time to do that. Where that
cannot be compared for long, and with the first commit, every cluster is checked.

A run takes two trees, and the records only if more than manifests of Roadstead changed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence, Set
from datetime import timedelta

from shared.app.outbox import send_all
from shared.app.records import again
from shared.app.repository import read_files
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.findings.conditions import is_unfinished
from shared.cluster.queues.envelopes import checks_of
from shared.cluster.record import ClusterRecord
from shared.frozen import replace
from shared.language.cluster_systems import systems_in
from shared.language.resolve.repository_layout import Files, cluster_paths, shared_paths
from shared.logs import about
from shared.platform.pins import FleetSource, is_followed, roots_of, roots_of_system
from shared.ports import FleetRecord, Ports
from shared.ports.state import PathsCheck

log = logging.getLogger(__name__)

SETTLED = timedelta(minutes=3)
"""So long after a plan Flux has fetched the commit, as it looks every minute, and has mostly applied it."""
GIVES_UP = timedelta(minutes=30)
"""So long after a plan the host is asked again for a commit that it does not show."""


def check_changed_paths(ports: Ports) -> None:
    """Request the checks of the clusters whose Flux applies what the newest commits changed."""
    before, fleet = ports.state.sweep().paths, ports.state.fleet()
    if fleet.commit in ("", before.covered):
        return
    with about(commit=fleet.commit):
        after = _compared(before.covered, fleet, ports)
    if after != before:
        _save(after, ports)


def _compared(covered: str, fleet: FleetRecord, ports: Ports) -> PathsCheck:
    """Return how far commits are compared, after the checks were requested that follow from that."""
    commit, problem, changed = fleet.commit, "", None
    try:
        if covered:
            changed = _changed(read_files(covered, ports), read_files(commit, ports))
    except ReconcileError as error:
        why = f"what {commit[:8]} changes is not known: {error.kind}: {error}"
        log.warning("%s", why)
        if fleet.at is not None and ports.clock() - fleet.at < GIVES_UP:
            return PathsCheck(covered, f"{why}; the next run asks again")
        problem = f"{why}; every cluster is checked instead"
    names = _following(changed, commit, ports) if changed is None or changed else ()
    send_all(checks_of(names, f"paths:{commit}", SETTLED.total_seconds()), ports)
    return PathsCheck(commit, problem)


def _following(changed: Set[str] | None, commit: str, ports: Ports) -> Sequence[str]:
    """Return the clusters whose Flux applies a folder that changed, without those of the commit's jobs."""
    return sorted(
        record.name
        for record in ports.state.clusters()
        if (record.commit != commit or is_unfinished(record))
        and (folders := {*_folders_of(record, ports.config.source)})
        and (changed is None or not changed.isdisjoint(folders))
    )


def _folders_of(record: ClusterRecord, source: FleetSource) -> Iterator[str]:
    """Yield the folders of the tracked branch that Flux follows by itself, of a cluster and its systems."""
    flux = record.document["spec"]["flux"]
    if record.desired.pin is None and source.serves(flux):
        yield from roots_of(flux)
    for system in systems_in(record.document):
        if not is_followed(system) and source.serves(system["source"]):
            yield from roots_of_system(system)


@again
def _save(paths: PathsCheck, ports: Ports) -> None:
    """Write how far the checks have come; sweeps may write their record at the same time."""
    ports.state.save_sweep(replace(ports.state.sweep(), paths=paths))


def _changed(before: Files, after: Files) -> frozenset[str]:
    """Return the folders in which a file differs, at any depth; the manifests of Roadstead are none."""
    differing = dict(before.blobs.items() ^ after.blobs.items())
    manifests = {path for files in (before, after) for path in _manifests(files)}
    parts = (path.split("/") for path in differing.keys() - manifests)
    return frozenset("/".join(names[:depth]) for names in parts for depth in range(len(names)))


def _manifests(files: Files) -> Iterable[str]:
    return (*shared_paths(files), *cluster_paths(files, files.folders))
