"""Whether a cluster is ready for an upgrade, by what was read of it last. Pure.

Ready means that nothing is known that blocks it. What was not read, or too long ago, is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from shared.azure.availability.upgrade_room import UpgradeRoom, blockers_in_azure, notes_of
from shared.cluster.record import ClusterRecord
from shared.frozen import dataclass
from shared.kubernetes.readiness.blockers import Blocker, blockers_of, minor_of, unknown_of
from shared.kubernetes.readiness.observation import METRIC, Observation
from shared.kubernetes_versions import lags, numbers, runs_newer

NOTHING: Mapping[str, str] = {}
STALE = timedelta(days=1)
"""After so long nobody knows whether a reading is still so."""
METRIC_NOTE = f"{METRIC} is one API server's, since it started: it proves use, and never that there is none"


class ReadinessState(StrEnum):
    """Whether an upgrade can begin."""

    READY = "ready"
    BLOCKED = "blocked"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class UpgradeReadiness:
    """Whether a cluster is ready for an upgrade ``to`` a version, "" for new images of its nodes alone.

    ``unknown`` and ``notes`` are sentences without their ends: a note blocks nothing. ``at`` is when it was
    read, None for never.
    """

    to: str
    blockers: tuple[Blocker, ...] = ()
    unknown: tuple[str, ...] = ()
    at: datetime | None = None
    notes: tuple[str, ...] = ()

    @property
    def state(self) -> ReadinessState:
        """The state: what blocks counts more than what is unknown."""
        if self.blockers:
            return ReadinessState.BLOCKED
        return ReadinessState.UNKNOWN if self.unknown else ReadinessState.READY

    @property
    def first(self) -> str:
        """The first thing that blocks, or is not known, "" for a cluster that is ready."""
        return str(self.blockers[0]) if self.blockers else next(iter(self.unknown), "")


def readiness_of(
    record: ClusterRecord,
    seen: Observation | None,
    room: UpgradeRoom | None,
    to: str,
    now: datetime,
    own: Mapping[str, str] = NOTHING,
) -> UpgradeReadiness:
    """Return whether a cluster is ready; ``seen`` is the last reading of its present life, None for none.

    ``own`` has the versions of their own that the commit gives node pools, "" for that of the control plane.
    """
    if seen is None:
        return UpgradeReadiness(to, unknown=("nobody has read it yet",))
    runs = record.running.kubernetes_version
    unknown = unknown_of(seen, to)
    if now - seen.at > STALE:
        unknown = (f"it was read at {seen.at:%Y-%m-%d %H:%M} UTC, which is too long ago", *unknown)
    if minor_of(to) is not None and runs_newer(to, runs):
        unknown = (f"it runs {runs}, and AKS never goes back to {to}", *unknown)
    blockers = blockers_of(seen, to, upgraded_pools(record, to, own))
    if room is None or record.desired.problem or record.desired.is_attached:
        return UpgradeReadiness(to, blockers, unknown, seen.at)
    spec = record.desired.spec
    in_azure = tuple(blockers_in_azure(spec, room, to, _oldest(record), own))
    unknown += tuple(f"{part.what} could not be read: {part.why}" for part in room.unread)
    notes = tuple(notes_of(spec, room, to, runs))
    return UpgradeReadiness(to, (*in_azure, *blockers), unknown, seen.at, notes)


def _oldest(record: ClusterRecord) -> str:
    """Return the oldest version of a control plane and of the pools that follow it, "" for unknown."""
    running = record.running
    pools = (pool.name for pool in record.desired.spec.node_pools if not pool.orchestrator_version)
    nodes = (running.pools[name].kubernetes for name in pools if name in running.pools)
    return min(filter(None, (running.kubernetes_version, *nodes)), key=numbers, default="")


def upgraded_pools(record: ClusterRecord, to: str, own: Mapping[str, str]) -> frozenset[str]:
    """Return the node pools, by their names in Azure, that do not stay too far behind a version."""
    desired = record.desired
    if desired.problem or desired.is_attached:
        return frozenset()
    versions = {pool.name: pool.orchestrator_version or "" for pool in desired.spec.node_pools}
    upgraded = {name for name, version in {**versions, **own}.items() if not (version and lags(version, to))}
    return frozenset(upgraded | {azure for azure, name in record.running.renamed.items() if name in upgraded})


def wanted_version(record: ClusterRecord) -> str:
    """Return the version that git has for a cluster, "" for none."""
    if record.desired.problem or record.desired.is_attached:
        return ""
    return record.desired.spec.kubernetes_version or ""
