"""Whether git still removes a cluster whose delete is about to begin.

A tombstone can be old when its delete begins: Azure may have been away, or the tables may have been restored
from an older moment. So the step reads the head of the branch once more, and deletes only if the cluster is
absent there. While the head has it, the delete waits, and its record says that it has not started: only then
can the planner take the tombstone back. As soon as a head lacks the cluster again, the delete begins. So a
stale read of the branch, and a commit that comes and goes, only delay a delete.

A head that asks for a rebuild has the cluster, and wants its delete all the same.

A cluster that another one replaces is deleted while that one is Ready, unless git has removed it, too.

A delete that Azure accepted and did not complete cannot be taken back: nobody knows what is left of the
cluster. While the head has the cluster, no further delete is sent either, and a person completes it.
"""

from __future__ import annotations

from shared.fleet.json_tree import Json
from shared.fleet.resolve.repository_layout import Files
from shared.jobs.messages import PlanRequest
from shared.jobs.outcomes import Fail, Wait
from shared.pipeline.outbox import request_plan
from shared.pipeline.repository.branch_source import require_own
from shared.pipeline.repository.commit_reader import read_files
from shared.pipeline.worker.steps.azure_state import OBSERVE_SECONDS
from shared.pipeline.worker.steps.contests import older_than_azure
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.deletes.still_rebuilt import asked_rebuild, is_rebuilt_already

RECHECK_SECONDS = 15.0
"""The time between two reads of a head that has the cluster again and is not planned yet."""
REPLAN_SECONDS = 20.0
"""By then the record is saved that the requested plan takes back."""
TAKEN_BACK_SECONDS = 60.0
"""By then that plan is complete."""
_RESTORE = "Do what the plan of that commit asks for, or remove the folder again, which {0} the cluster."
_BESIDE = "See `roadstead why {0}`. Or remove the folder of {0}, and the {1} goes on."
_COMPLETE = (
    "Delete what is left with `az aks delete`, and Roadstead creates the cluster again. "
    "Or remove the folder again, and Roadstead deletes it."
)


def not_removed(context: StepContext, existing: Json, *, started: bool) -> Wait | Fail | None:
    """Return the wait of a delete that git no longer asks for, None when it may be sent.

    ``started``: Azure has accepted it before, in this life of the cluster. A cluster that was rebuilt already
    is not deleted for the same rebuild: the tables are older than Azure.

    Costs two calls to GitHub, which it counts only where the head has moved. The tree is read even where the
    record names the head as the commit that removed the cluster: whoever can write the record could have
    written that too. The lease guard knows how old the read of the head is.
    """
    record, ports = context.record, context.ports
    read, fleet = ports.repository.read_head(ports.config.branch), ports.state.fleet()
    require_own(read, fleet, ports)
    head = read.commit
    files = read_files(head, ports)
    if record.name not in files.folders and not files.unreadable:
        return None if started else _lost_replacement(context, files)
    asked = asked_rebuild(context, head, files)
    if asked and not is_rebuilt_already(existing, asked):
        return None
    if asked and not started:
        return older_than_azure(context, f"the cluster {record.name} was rebuilt for {asked} already")
    again = f"commit {head[:8]} has the cluster again"
    if fleet.planning or head != fleet.commit:  # the commit that removed it may be the one in planning
        return Wait(RECHECK_SECONDS, f"{again}, and is not planned yet", restored=not started)
    if started:
        reason = f"{again}, after Azure had accepted its delete, which has not completed"
        return Wait(OBSERVE_SECONDS, reason, action_required=_COMPLETE, open_ended=True)
    newest = ports.state.plan(head)
    items = newest.plan.items if newest else ()
    item = next((item for item in items if item.cluster == record.name), None)
    if item is not None and item.hold is not None and item.needs_action and not item.retained:
        reason = f"{again}, and does not keep it: {item.hold.cause}"
        remedy = _RESTORE.format("releases" if record.desired.is_existing else "deletes")
        return Wait(OBSERVE_SECONDS, reason, action_required=remedy, open_ended=True, restored=True)
    request_plan(
        PlanRequest(again=True, reason="a cluster that git has again"),
        message_id=f"restored:{record.name}:{record.uid}:{record.job.sequence}",
        ports=ports,
        after=REPLAN_SECONDS,
    )
    return Wait(TAKEN_BACK_SECONDS, f"{again}; the next plan takes its removal back", restored=True)


def _lost_replacement(context: StepContext, files: Files) -> Wait | None:
    """Return the wait of a delete whose replacement stopped being Ready since it was accepted."""
    state = context.ports.state
    for name in state.fleet().replacing.get(context.record.name, ()):
        new = state.cluster(name) if name in files.folders else None
        if new is not None and not new.ready:
            reason = f"{name}, which replaces the cluster, is not Ready any more: it is {new.phase.value}"
            remedy = _BESIDE.format(name, "release" if context.desired.is_existing else "delete")
            return Wait(OBSERVE_SECONDS, reason, action_required=remedy, open_ended=True, restored=True)
    return None
