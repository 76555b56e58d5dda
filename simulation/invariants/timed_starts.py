"""The rule of windows and freezes for all but changes: creations, deletes, retries, corrections.

The times are those that the operators wrote. What they override, and what goes on, is no start.
"""

from __future__ import annotations

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record import ClusterRecord
from simulation.invariants.context import CLOCKS, Context
from simulation.rule import RuleViolated
from simulation.staging import stage_of

WHOLE_CLUSTER = "the cluster"
"""What is corrected where a cluster is missing."""


class TimedStarts:
    """Checks every job that starts in a fleet with a strategy."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def saved(self, cloud: MemoryCloud, before: ClusterRecord | None, after: ClusterRecord) -> None:
        """Check a record with a job that the record before did not have."""
        fleet, actor = cloud.ports.config.fleet, self._context.loop.actor
        start = _start(before, after)
        if not start or self._context.replaced[fleet] or self._is_overridden(cloud, after):
            return
        history = self._context.history(cloud)
        staging = history.desired(after.commit).in_force
        if staging is None:
            return
        shut = stage_of(staging, after.name).shut_for(start)
        first, last = actor.since - CLOCKS, self._context.loop.clock() + CLOCKS
        if shut is not None and shut.covers(first, last):
            what = f"one of the {start} of {after.name} starts between {first} and {last}: {shut}"
            raise RuleViolated("timed start", what)

    def _is_overridden(self, cloud: MemoryCloud, after: ClusterRecord) -> bool:
        """Return whether somebody lets the commit that is planned, or the cluster, start nevertheless."""
        if self._context.history(cloud).overridden == after.name:
            return True
        fleet = cloud.state.fleet()
        commits = (fleet.planning, fleet.commit, after.commit)
        return fleet.closed.override is not None and fleet.closed.override.commit in commits


def _start(before: ClusterRecord | None, after: ClusterRecord) -> str:
    """Return what starts with a record, "" for nothing, and for a change of a commit.

    The creation that ends a rebuild starts nothing, and neither does a job that goes on: after a takeover, or
    because Azure shows its cluster again.
    """
    if before is None or before.uid != after.uid:
        return "" if after.rebuilt_for else "creations"
    if after.deleting and not before.deleting:
        return "deletes"
    if before.generation != after.generation or before.job.active or not after.job.active:
        return ""
    if before.contested:
        return ""
    if after.divergence.corrections != before.divergence.corrections:
        started = {
            correction.path
            for correction in after.divergence.corrections
            if correction not in before.divergence.corrections
        }
        return "creations" if WHOLE_CLUSTER in started else "corrections"
    if before.finding or not before.failed:
        return ""
    if after.deleting:
        return "deletes"
    return "changes" if before.running.kubernetes_version else "creations"
