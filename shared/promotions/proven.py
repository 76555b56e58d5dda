"""What is proven in an environment: each of its clusters is Ready now, with the value that git asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.cluster.record import READY, ClusterRecord, Phase
from shared.kubernetes_versions import needs_upgrade, runs_newer
from shared.language.desired import Desired
from shared.promotions.promoted_values import VERSION_PATH, Obstacle, Reason, Value, What, value_of

FOLLOWS = "Flux follows a branch or a range of versions; set flux.tag or flux.commit"
NO_VERSION = "Azure chooses the version of the extension; set flux.extension.version"


@dataclass(frozen=True)
class Proof:
    """A value that every cluster of an environment has, and since when the last one has been Ready."""

    what: What
    value: Value
    clusters: tuple[str, ...]
    since: datetime | None


def of_environment(
    environment: str, desired: Mapping[str, Desired], records: Mapping[str, ClusterRecord]
) -> Sequence[str]:
    """Return the clusters of an environment: those of git, and those that are not deleted yet."""
    names = {name for name, each in desired.items() if each.environment == environment}
    kept = (each for each in records.values() if each.desired.environment == environment)
    return sorted(names | {each.name for each in kept if each.name not in desired and not each.deleting})


def concerns(what: What, cluster: Desired) -> bool:
    """Return whether a cluster can have such a value: one outside Roadstead's AKS has no version of git."""
    return what is not What.VERSION or not cluster.is_existing


def proven(
    what: What, environment: str, desired: Mapping[str, Desired], records: Mapping[str, ClusterRecord]
) -> Proof | Obstacle:
    """Return what is proven in an environment; ``desired`` are the clusters of the newest commit."""
    names = [
        name
        for name in of_environment(environment, desired, records)
        if concerns(what, desired.get(name) or records[name].desired)
    ]
    if not names:
        return Obstacle(Reason.EMPTY, environment)
    found: dict[Value, list[str]] = {}
    since: datetime | None = None
    unready = tuple(name for name in names if not _is_ready(records.get(name)))
    if unready:
        return Obstacle(Reason.NOT_READY, environment, unready)
    pending = tuple(name for name in names if _is_pending(what, desired.get(name), records[name]))
    if pending:
        return Obstacle(Reason.PENDING, environment, pending)
    for name in names:
        record = records[name]
        value = value_of(what, record.document["spec"])
        if value is None:
            detail = FOLLOWS if what is What.PLATFORM else NO_VERSION
            return Obstacle(Reason.NO_VALUE, environment, (name,), detail)
        wrong = _not_as_in_git(environment, value, record)
        if wrong is not None:
            return wrong
        found.setdefault(value, []).append(name)
        ready = record.condition(READY)
        if ready is not None:
            since = ready.since if since is None else max(since, ready.since)
    if len(found) > 1:
        shown = "; ".join(f"{value.value} in {', '.join(own[:3])}" for value, own in sorted(found.items()))
        return Obstacle(Reason.DIFFERENT, environment, tuple(names), shown)
    return Proof(what, next(iter(found)), tuple(names), since)


def _is_ready(record: ClusterRecord | None) -> bool:
    """Return whether a cluster is verified at its newest generation, and nothing was found since."""
    if record is None or record.phase is not Phase.READY or record.job.active or record.recovering:
        return False
    return record.observed_generation == record.generation and not record.lost


def _is_pending(what: What, wanted: Desired | None, record: ClusterRecord) -> bool:
    """Return whether git asks for another value than the cluster has, or no longer has the cluster."""
    if wanted is None:
        return True
    if value_of(what, wanted.document()["spec"]) != value_of(what, record.document["spec"]):
        return True
    return what is What.COMPONENTS and wanted.components != record.document["components"]


def _not_as_in_git(environment: str, value: Value, record: ClusterRecord) -> Obstacle | None:
    """Return what Azure has instead of the value, as far as that is recorded; None for nothing."""
    running = record.running_version
    other = needs_upgrade(value.value, running) or runs_newer(value.value, running)
    if value.path == VERSION_PATH and running and other:
        return Obstacle(Reason.NEWER, environment, (record.name,), running)
    if record.drift and any(each.path == value.path for each in record.drift.fields):
        return Obstacle(Reason.DRIFTED, environment, (record.name,))
    return None
