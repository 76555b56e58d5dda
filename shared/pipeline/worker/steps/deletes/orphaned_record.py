"""An orphaned record: a new one that the newest plan does not know, saved by a superseded planner.

A planner that was frozen can save its records late. A new version of an existing record makes that save
fail; a record that does not exist yet has no version. So the first step of a new record checks that the
newest plan knows its cluster.
"""

from __future__ import annotations

from shared.jobs.messages import PlanRequest
from shared.jobs.outcomes import Wait
from shared.jobs.recipes import STEPS
from shared.pipeline.outbox import request_plan
from shared.pipeline.worker.steps.context import StepContext

RECHECK_SECONDS = 30.0


def orphaned(context: StepContext) -> Wait | None:
    """Return the wait of a record that has to be planned again, None for any other; one small read."""
    record, ports = context.record, context.ports
    begun = record.creation_requested or record.was_tagged
    if record.deleting or begun or record.job.step.name is not STEPS[record.job.recipe][0]:
        return None
    fleet = ports.state.fleet()
    if record.generation > max(fleet.first_generation, 1):
        return None
    if record.commit in (fleet.commit, fleet.planning):
        return None
    if fleet.planning not in ("", fleet.commit):
        return Wait(RECHECK_SECONDS, f"commit {fleet.planning[:8]} is being planned")
    newest = ports.state.plan(fleet.commit)
    if newest is None or any(item.uid == record.uid for item in newest.plan.items):
        return None
    request = PlanRequest(again=True, reason="a cluster that the plan does not know")
    message_id = f"orphan:{record.name}:{record.uid}:{record.job.sequence}"
    request_plan(request, message_id=message_id, ports=ports)
    return Wait(RECHECK_SECONDS, f"the plan of {fleet.commit[:8]} does not know this cluster; planning again")
