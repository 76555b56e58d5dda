"""The holds of a cluster outside Azure, which a takeover ends."""

from __future__ import annotations

from shared.jobs.failures.errors import AnotherCluster
from shared.jobs.job import Contest, ContestKind
from shared.jobs.outcomes import Wait
from shared.pipeline.worker.steps.azure_state import OBSERVE_SECONDS
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.rebuilt import CONFIRM

_PUT_BACK = (
    "Put the kubeconfig of the right cluster into the vault; or, if the cluster was built again, run"
    " `roadstead takeover NAME`."
)


def held_elsewhere(context: StepContext, why: str, life: str = "") -> Wait:
    """Return the wait of a cluster whose record is rebuilt, and that is not as git has it."""
    contest = Contest(ContestKind.REBUILT, life=life)
    what = f"the cluster {context.record.name} is not written to"
    reason = f"{what}: the tables do not know what was written to it last, and {why}"
    return Wait(OBSERVE_SECONDS, reason, action_required=CONFIRM, open_ended=True, contest=contest)


def another_cluster(context: StepContext, error: AnotherCluster) -> Wait:
    """Return the wait of a cluster whose kubeconfig leads to another one; a takeover accepts that one."""
    reason = f"the cluster {context.record.name} is not written to: {error}"
    contest = Contest(ContestKind.IDENTITY)
    return Wait(OBSERVE_SECONDS, reason, action_required=_PUT_BACK, open_ended=True, contest=contest)
