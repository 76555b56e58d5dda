"""What Azure's events, and then the activity log, say of what a sweep finds, for its first hours."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from shared.app.access.rate_limiter import RateLimited, RateLimiter
from shared.azure.companions.companion_kinds import kind_of
from shared.azure.drift.activity import Activity, FieldAuthor, changed_by, done_by, writes_in
from shared.cluster.divergence.drift import ASKED_AGAIN, DriftedField
from shared.cluster.failures.errors import (
    ClusterMissing,
    ClusterStopped,
    NoLongerReady,
    ReconcileError,
    Unauthorized,
)
from shared.cluster.findings.conditions import act_known, with_act
from shared.cluster.record import ClusterRecord, finding_of_sweep
from shared.masking import cut
from shared.ports import Ports
from shared.ports.azure.clusters import ListActivity, events_between
from shared.ports.state import Listing
from shared.resource_ids import SubscriptionId

log = logging.getLogger(__name__)

LONGEST = timedelta(days=7)
"""The log is read no further back."""
LATE = timedelta(minutes=2)
"""How much longer than a list a change may be ago that this list did not show."""
DONE: Mapping[type[NoLongerReady], str] = {
    ClusterMissing: "/managedclusters/delete",
    ClusterStopped: "/managedclusters/stop/action",
}
"""The end of the name, in lower case, of the operation that somebody ran where a sweep finds this
(learn.microsoft.com/azure/role-based-access-control/permissions/containers)."""
NOT_PERMITTED = "not permitted to read the activity log"
NO_CALL_LEFT = "Azure's read limit left no call to read the activity log"


@dataclass
class ActivityLog:
    """The activity log, of which the newest page of a subscription is read when it is first asked for.

    A sweep that has nothing to ask reads nothing. That a log cannot be read is no error: ``problems`` says
    why, by subscription, "" where it was read. ``listings`` are the lists of each before.
    Subscriptions are in lower case, as the lists have them.
    """

    ports: Ports
    listings: Mapping[str, Listing]
    problems: dict[str, str] = field(default_factory=dict)
    _read: dict[str, Sequence[Activity]] = field(default_factory=dict)
    _told: dict[str, Sequence[Activity]] = field(default_factory=dict)

    def asked_since(self, subscription: str, now: datetime) -> datetime:
        """Return since when a value has been seen at most about which the log is asked.

        However rare the sweeps are, the next one after the value was seen is among those that ask.
        """
        return min(now - ASKED_AGAIN, self._listing(subscription).at or now)

    def change(
        self, record: ClusterRecord, field: DriftedField, pools: Mapping[str, Sequence[str]], now: datetime
    ) -> FieldAuthor | None:
        """Return who changed a field since the last list that did not show that, or the last job.

        For a value that an earlier sweep saw already, and for a cluster of which the last list decided
        nothing, it is the list before that one, and some hours at least. ``record`` is the one before the
        comparison: a list showed nothing of a cluster that was not Ready, and none has companions.
        No sweep and no check moves the time at which the last job began to verify the cluster.
        """
        cluster, seen = record.desired.id, field.live_since or now
        listing, times = self._listing(cluster.subscription), [now - LONGEST, record.job.step.since]
        before = min(seen - ASKED_AGAIN, (listing.before or seen) - LATE)
        if seen < now:
            times.append(before)
        elif listing.at and not finding_of_sweep(record.finding) and kind_of(field.path) is None:
            times.append(before if record.name in listing.undecided else listing.at - LATE)
        after = max(times)
        told = changed_by(self._events(record.name), cluster.resource, field.path, pools, after, seen)
        if told is not None:
            return told
        writes = self._writes(cluster.subscription.lower())
        return changed_by(writes, cluster.resource, field.path, pools, after, seen)

    def _events(self, name: str) -> Sequence[Activity]:
        """Return what Azure's events said of a cluster: that costs no call to Azure, and is not late."""
        if name not in self._told:
            self._told[name] = self.ports.state.changes_of(name).changes
        return self._told[name]

    def _listing(self, subscription: str) -> Listing:
        return self.listings.get(subscription.lower(), Listing(subscription.lower()))

    def named(self, error: NoLongerReady, record: ClusterRecord, now: datetime) -> NoLongerReady:
        """Return what a sweep found with who deleted or stopped the cluster, as far as the log has that.

        The cluster was there when its last job began to verify it. ``record`` is the one before the finding,
        or it has the same one: the log is some minutes late, and so is asked again for some hours.
        """
        if type(error) not in DONE:
            return error
        loss, seen = record.observation.loss, now
        if loss is not None and loss.kind == error.kind:
            seen = loss.since
        return with_act(error, act_known(record, error) or self._act(record, DONE[type(error)], seen, now))

    def _act(
        self, record: ClusterRecord, operation: str, seen: datetime, now: datetime
    ) -> FieldAuthor | None:
        cluster, after = record.desired.id, max(now - LONGEST, record.job.step.since)
        if seen < self.asked_since(cluster.subscription, now):
            return None
        told = done_by(self._events(record.name), cluster.resource, operation, after, seen)
        writes = self._writes(cluster.subscription.lower()) if told is None else ()
        return told or done_by(writes, cluster.resource, operation, after, seen)

    def _writes(self, subscription: str) -> Sequence[Activity]:
        if subscription not in self._read:
            self.problems[subscription], self._read[subscription] = "", ()
            now = self.ports.clock()
            asked = ListActivity(SubscriptionId(subscription), filter=events_between(now - LONGEST, now))
            try:
                # A limiter of its own: the sweep repeats nothing when the log has to wait.
                azure = RateLimiter(None, self.ports).over(self.ports).azure
                self._read[subscription] = writes_in(azure.call(asked).documents)
            except Unauthorized:
                self.problems[subscription] = NOT_PERMITTED
            except RateLimited:
                self.problems[subscription] = NO_CALL_LEFT
            except ReconcileError as error:
                log.warning("the activity log of %s cannot be read: %s", subscription, error)
                self.problems[subscription] = cut(f"the activity log cannot be read: {error}", 200)
        return self._read[subscription]
