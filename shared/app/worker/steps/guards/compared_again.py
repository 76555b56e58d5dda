"""What early steps of a job have written, compared once more before the cluster is Ready.

They come early, and the last ones may wait for Flux. If tables were restored meanwhile, the record says that
those steps are done, and a job that it does not know may have taken back what they wrote: such a job leaves
no tag on the cluster. So what was read longer ago than clocks may differ is read again. In most jobs nothing
differs. What does is written once the head of the branch is planned, because the record may be older than
that; the lease guard knows how old the read of the head is.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.app.access.contests import SKEW
from shared.app.access.context import StepContext
from shared.app.access.lease_guard import WriteHeld, without_writes
from shared.app.worker.steps.bootstrap_secrets import ensure_secrets
from shared.app.worker.steps.companions import ENSURES, StepFunction
from shared.cluster.outcomes import Done, Outcome, Wait
from shared.cluster.recipes import CONDITIONS, Step
from shared.frozen import replace

PLANNED_SECONDS = 60.0
"""The time between two reads of a head that is not planned yet; that takes seconds, unless it is invalid."""
_STEPS: Mapping[Step, StepFunction] = {**ENSURES, Step.BOOTSTRAP_SECRETS: ensure_secrets}
"""Those that the last steps do not look at. None deletes what a team has."""


def verify_all(context: StepContext, verify: StepFunction) -> Outcome:
    """Run the last step of a job, and where it is done compare what the early ones wrote.

    A cluster without entries costs no call, and nor does what was read a moment ago.
    """
    verified = verify(context)
    if not isinstance(verified, Done):
        return verified
    notes = [verified.note]
    for step, ensure in _STEPS.items():
        outcome = _ensured_again(context, ensure) if _is_old(context, step) else Done()
        if not isinstance(outcome, Done):
            return outcome
        notes.append(outcome.note)
    return replace(verified, note="; ".join(filter(None, notes)))


def _is_old(context: StepContext, step: Step) -> bool:
    """Return whether a step ended so long ago that the tables may have been restored since."""
    ended = context.record.condition(CONDITIONS[step])
    return ended is None or abs(context.ports.clock() - ended.verified) > SKEW


def _ensured_again(context: StepContext, ensure: StepFunction) -> Outcome:
    """Compare what a step has written, and write it again where it differs; a note says what was written."""
    try:
        compared = ensure(replace(context, ports=without_writes(context.ports)))
    except WriteHeld as write:
        return _unplanned(context, str(write)) or ensure(context)
    return Done() if isinstance(compared, Done) else compared


def _unplanned(context: StepContext, would: str) -> Wait | None:
    """Return the wait for the plan of the head, None once it is planned: git may want what differs.

    It ends the message, unlike one for Flux, so that the branch is not read every few seconds.
    """
    ports = context.ports
    head, fleet = ports.git_host.read_head(ports.config.branch).commit, ports.state.fleet()
    if head == fleet.commit and not fleet.planning:
        return None
    reason = f"what an earlier step had written differs, and the job would {would}"
    return Wait(PLANNED_SECONDS, f"{reason}; commit {head[:8]} is planned first", open_ended=True)
