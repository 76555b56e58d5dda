"""A new row that the newest plan does not know: a planner made it that was overtaken while it stood still.

A row that is there can be given another version, so that a late save fails; one that is not there yet cannot.
So the first step of a new row asks whether the plan behind it still counts.
"""

from __future__ import annotations

from shared.jobs.messages import PlanRequest
from shared.jobs.outcomes import Wait
from shared.jobs.recipes import Step
from shared.jobs.record import ClusterRecord
from shared.pipeline.outbox import request_plan
from shared.ports import Ports

RECHECK_SECONDS = 30.0


def stray(record: ClusterRecord, ports: Ports) -> Wait | None:
    """Return the wait of a row that has to be planned again, None for all others; one small read."""
    if record.deleting or record.begun or record.generation > 1 or record.job.step is not Step.RESOURCE_GROUP:
        return None
    fleet = ports.state.fleet()
    if record.commit in (fleet.commit, fleet.planning):
        return None
    if fleet.planning not in ("", fleet.commit):
        return Wait(RECHECK_SECONDS, f"commit {fleet.planning[:8]} is being planned")
    newest = ports.state.plan(fleet.commit)
    if newest is None or any(item.cluster == record.name for item in newest.plan.items):
        return None
    request = PlanRequest(again=True, reason="a cluster that the plan does not know")
    message_id = f"stray:{record.name}:{record.uid}:{record.job.sequence}"
    request_plan(request, message_id=message_id, ports=ports)
    return Wait(
        RECHECK_SECONDS, f"the plan of {fleet.commit[:8]} does not know this cluster; it is made again"
    )
