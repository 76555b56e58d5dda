"""What the activity log says of the differences that a sweep finds, for the first hours of each."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from shared.fleet.drift.activity import Activity, Change, changed_by, done_by, is_of_window, writes_in
from shared.fleet.resource_ids import SubscriptionId
from shared.jobs.drift import ASKED_AGAIN, DriftedField, moment
from shared.jobs.failures.errors import (
    ClusterMissing,
    ClusterStopped,
    NoLongerReady,
    ReconcileError,
    Unauthorized,
)
from shared.jobs.record import ClusterRecord, finding_of_sweep
from shared.pipeline.worker.rate_limiter import RateLimited, RateLimiter
from shared.ports import Ports
from shared.ports.azure.activity_log import ListActivity, events_between
from shared.ports.state import Listing

log = logging.getLogger(__name__)

LONGEST = timedelta(days=7)
"""The log is read no further back."""
LATE = timedelta(minutes=2)
"""How much longer than a list a change may be ago that this list did not show."""
DONE: Mapping[type[NoLongerReady], tuple[str, str]] = {
    ClusterMissing: ("deleted", "/managedclusters/delete"),
    ClusterStopped: ("stopped", "/managedclusters/stop/action"),
}
"""What somebody did where a sweep finds this, and the end of its operation's name in lower case
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

    def asked_since(self, record: ClusterRecord, now: datetime) -> datetime:
        """Return since when a value has been seen at most about which the log is asked.

        However rare the sweeps are, the next one after the value was seen is among those that ask.
        """
        return min(now - ASKED_AGAIN, self._listing(record).at or now)

    def change(
        self, record: ClusterRecord, field: DriftedField, pools: Mapping[str, Sequence[str]], now: datetime
    ) -> Change | None:
        """Return who changed a field since the last list that did not show that, or the last job.

        For a value that an earlier sweep saw already, and for a cluster of which the last list decided
        nothing, it is the list before that one, and some hours at least. ``record`` is the one before the
        comparison: a list showed nothing of a cluster that was not Ready, and none has maintenance windows.
        No sweep and no check moves the time at which the last job began to verify the cluster.
        """
        cluster, seen = record.desired.id, field.live_since or now
        listing, times = self._listing(record), [now - LONGEST, record.job.step.since]
        before = min(seen - ASKED_AGAIN, (listing.before or seen) - LATE)
        if seen < now:
            times.append(before)
        elif listing.at and not finding_of_sweep(record.finding) and not is_of_window(field.path):
            times.append(before if record.name in listing.undecided else listing.at - LATE)
        writes, after = self._writes(cluster.subscription.lower()), max(times)
        return changed_by(writes, cluster.resource, field.path, pools, after, seen)

    def _listing(self, record: ClusterRecord) -> Listing:
        subscription = record.desired.id.subscription.lower()
        return self.listings.get(subscription, Listing(subscription))

    def named(self, error: NoLongerReady, record: ClusterRecord, now: datetime) -> NoLongerReady:
        """Return what a sweep found with who deleted or stopped the cluster, as far as the log has that.

        The cluster was there when its last job began to verify it; ``record`` is the one before the finding.
        """
        if type(error) not in DONE:
            return error
        done, operation = DONE[type(error)]
        cluster, after = record.desired.id, max(now - LONGEST, record.job.step.since)
        change = done_by(self._writes(cluster.subscription.lower()), cluster.resource, operation, after, now)
        return type(error)(f"{error}; {done} {moment(change.at)} by {change.by}") if change else error

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
                self.problems[subscription] = f"the activity log cannot be read: {error}"[:200]
        return self._read[subscription]
