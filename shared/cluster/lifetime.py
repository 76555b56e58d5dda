"""When a cluster ends, by ``spec.lifetime`` or ``spec.expires``, and who has put that off. Pure.

Nothing ends early: an extension and a hold only move the end on, and so does a later end in git. A cluster
that was never Ready has no end of its lifetime.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import LifetimeState
from shared.frozen import dataclass, replace
from shared.language.model.change_windows import span_of

ENDS = "roadstead/end/"
"""How the names of the branches begin that remove a cluster at its end."""
REQUESTS = "roadstead/request/"
"""How the names of the branches begin that add a cluster by request."""
REQUESTED_BY = "requested-by"
"""The label of such a cluster with who asked for it, as that account was called then."""
REQUESTED_BY_ID = "requested-by-id"
"""The label with the id of that account, by which requests are counted."""
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Lifetime:
    """A lifetime with its end: ``in_git`` is what git says, ``ends`` that with an extension.

    ``held_until`` is until when somebody holds the cluster, None for nobody.
    """

    begins: datetime
    in_git: datetime
    ends: datetime
    held_until: datetime | None
    state: LifetimeState

    @property
    def over(self) -> datetime:
        """From when on the cluster is removed."""
        return max(self.ends, self.held_until or self.ends)

    @property
    def is_proposed(self) -> bool:
        """Whether a pull request was opened for this end.

        One that somebody declined is of this end also while somebody holds the cluster since.
        """
        pull = self.state.pull
        return pull is not None and (pull.end == self.over or (pull.declined and pull.end >= self.ends))

    @property
    def warnings(self) -> tuple[datetime, ...]:
        """When its owner is still to be warned: at a quarter left, and a day before a longer one ends."""
        span, said = self.ends - self.begins, self.state.warned
        moments = sorted({self.ends - span / 4, *([self.ends - DAY] if span > DAY else ())})
        given = said[1] if said and said[0] == self.ends else None
        return tuple(moment for moment in moments if given is None or moment > given)

    def due_warning(self, now: datetime) -> datetime | None:
        """Return the moment of the newest warning that is due, None for none."""
        return max((moment for moment in self.warnings if moment <= now < self.ends), default=None)


def end_in_git(spec: Mapping[str, Any], first_ready: datetime | None) -> datetime | None:
    """Return when the stored form of a spec ends its cluster, None for never, and for not yet known."""
    if spec.get("expires"):
        return datetime.combine(date.fromisoformat(spec["expires"]), time(23, 59, 59), UTC)
    if spec.get("lifetime") and first_ready is not None:
        return first_ready + span_of(spec["lifetime"])
    return None


def lifetime_of(record: ClusterRecord, spec: Mapping[str, Any] | None = None) -> Lifetime | None:
    """Return the lifetime of a cluster, None where it has no end; ``spec`` is a newer one of git."""
    state = record.azure.lifetime
    end = end_in_git(record.document["spec"] if spec is None else spec, state.first_ready)
    if end is None:
        return None
    ends = max(end, state.extension.until) if state.extension else end
    begins = min(state.first_ready or record.created, ends)
    return Lifetime(begins, end, ends, state.hold.until if state.hold else None, state)


def due_at(record: ClusterRecord) -> datetime | None:
    """Return when something is to be done about the lifetime of a cluster, None for never."""
    life, pull = lifetime_of(record), record.azure.lifetime.pull
    if record.deleting or (life is None and pull is None):
        return None
    if life is None or (pull is not None and not life.is_proposed):
        return record.created  # the pull request is closed
    return None if life.is_proposed else min((*life.warnings, life.over))


def ready_at(state: LifetimeState, now: datetime) -> LifetimeState:
    """Return the state of a cluster that was verified Ready now: the first time counts."""
    return state if state.first_ready else replace(state, first_ready=now)


def with_lifetime(record: ClusterRecord, **changes: Any) -> ClusterRecord:
    """Return a record with other values in some fields of its ``LifetimeState``."""
    state = replace(record.azure.lifetime, **changes)
    return replace(record, azure=replace(record.azure, lifetime=state))


def recovering(record: ClusterRecord) -> ClusterRecord:
    """Return a record that only compares from now on: an extension that it lacks may have been lost."""
    unsure = with_lifetime(record, unsure=True)
    return replace(unsure, ownership=replace(record.ownership, recovering=True))


def spared(record: ClusterRecord, now: datetime) -> str:
    """Return why a cluster whose lifetime is over stays, as far as its record shows; "" for nothing.

    A freeze and a pause are the fleet's, and come on top.
    """
    spec = record.document["spec"]
    if record.recovering:
        return "the tables were restored, and the cluster is compared first"
    if spec.get("deletionProtection"):
        return "deletionProtection is on: commit deletionProtection: false, or another end"
    suspended = spec.get("suspend")
    until = datetime.fromisoformat(suspended["until"]) if suspended else now
    return f"it is suspended by {suspended['owner']} until {until:%Y-%m-%d %H:%M} UTC" if until > now else ""
