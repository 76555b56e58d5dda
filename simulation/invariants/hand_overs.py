"""The rules of the hand-over of a plan: what a planner accepts, and in which part."""

from __future__ import annotations

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record import ClusterRecord
from shared.ports import FleetRecord
from simulation.invariants.context import Context
from simulation.rule import RuleViolated

NONE, ALL = 0, 16
SMALL_CHANGES = (NONE, 1, ALL)
"""How many clusters may be in small changes: none, one, or more than a fleet has."""


class HandOvers:
    """Checks which changes planners accept, against what the record of their fleet says of the hand-over.

    A cluster without a record is not meant: a planner may create it long after its last check, and the next
    plan removes what nothing asks for.
    """

    def __init__(self, context: Context) -> None:
        self._context = context

    def accepted(self, cloud: MemoryCloud, before: ClusterRecord, after: ClusterRecord) -> None:
        """Check a record that got a new generation: the fleet's record names its cluster."""
        if after.generation == before.generation:
            return
        self._context.loop.actor.has_accepted = True
        handover = cloud.state.fleet().handover
        if handover is not None and after.name not in handover.in_flight:
            named = ", ".join(handover.in_flight) or "none"
            raise RuleViolated("hand-over", f"{after.name} is accepted, and those that may be are: {named}")

    def sized(self, cloud: MemoryCloud, before: ClusterRecord | None, after: ClusterRecord) -> None:
        """Check whether a record with a new generation is in a small change, where only the limit decides."""
        limit, new = (
            cloud.ports.config.limits.small_change,
            before is None or before.generation < after.generation,
        )
        if new and limit in (NONE, ALL) and after.job.small_change != (limit == ALL):
            kind = "no small change" if limit == ALL else "a small change"
            raise RuleViolated("small change", f"{after.name} is in {kind} with a limit of {limit} clusters")

    def checked(self, cloud: MemoryCloud, before: FleetRecord, after: FleetRecord) -> None:
        """Check a part that begins with a write of the fleet's record: it is small, and its message has time.

        A write that names the same clusters begins none: it says what prevents the plan.
        """
        names, config = _named(after), cloud.ports.config
        if names == _named(before):
            return
        if len(names) > config.limits.handover_clusters:
            raise RuleViolated("hand-over", f"a part has {len(names)} clusters: {', '.join(names)}")
        if names and not config.limits.handover_seconds and self._context.loop.actor.has_accepted:
            raise RuleViolated(
                "hand-over", f"a message continues with {', '.join(names)}, and its time is over"
            )


def _named(record: FleetRecord) -> tuple[str, ...]:
    return record.handover.in_flight if record.handover is not None else ()
