"""The wait for what Flux has not reconciled: one, for the likeliest cause, with what an operator can do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shared.fleet.kubernetes.flux.flux_objects import NAMESPACE
from shared.fleet.kubernetes.flux.flux_readiness import (
    WAITS_FOR_ANOTHER,
    Failed,
    Progressing,
    Readiness,
    Ready,
    Suspended,
    advice,
)
from shared.fleet.resource_ids import ObjectRef
from shared.jobs.findings.flux_correction import corrects_flux
from shared.jobs.outcomes import Outcome, Restart, Wait
from shared.pipeline.worker.steps.azure_state import OBSERVE_SECONDS
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.flux.commits_behind import commits_behind

_OF_EXTENSION = "A commit that changes the cluster then gives it to its Flux extension."
"""Azure shows no credentials, so that no step sees that there are others."""


@dataclass(frozen=True)
class Seen:
    """An object of Flux and how far it is; a state of None: it no longer exists.

    ``place`` is the field of the manifest that asks for it, "" for what Flux itself applied; ``resume`` the
    command that ends its suspension.
    """

    ref: ObjectRef
    state: Readiness | None
    place: str
    resume: str


def first_wait(context: StepContext, seen: Iterable[Seen], seconds: float) -> Outcome | None:
    """Return the wait for the likeliest cause among what is not reconciled, None when everything is.

    What waits for others comes last. ``seconds`` is the time until the next read where nobody has to act.
    """
    waiting = [one for one in seen if not isinstance(one.state, Ready)]
    if not waiting:
        return None
    more = len(waiting) - 1
    wait = "object of Flux waits" if more == 1 else "objects of Flux wait"
    others = f" ({more} more {wait})" if more else ""
    return _wait(context, min(waiting, key=_rank), seconds, others)


def _rank(seen: Seen) -> int:
    if isinstance(seen.state, Failed):
        return 2 if seen.state.reason == WAITS_FOR_ANOTHER else 0
    return 1 if isinstance(seen.state, Progressing) else 0


def _wait(context: StepContext, first: Seen, seconds: float, others: str) -> Outcome:
    ref = first.ref
    name = f"Flux: {ref.kind} {'' if ref.namespace == NAMESPACE else f'{ref.namespace}/'}{ref.name}"
    match first.state:
        case None:
            return Restart(f"the {ref} no longer exists in the cluster")
        case Suspended() if corrects_flux(context.record):
            return Restart(f"somebody suspended the {ref}, and the policy resumes it")
        case Suspended():
            reason, required = f"{name}: somebody suspended it{others}", f"`{first.resume}` resumes it."
            return Wait(OBSERVE_SECONDS, reason, action_required=required, open_ended=True)
        case Failed(reason, message) as failed:
            required = advice(failed, first.place, ref.kind)
            if context.desired.has_extension and "FLUX_GIT_PASSWORD" in required:
                required = f"{required} {_OF_EXTENSION}"
            behind = commits_behind(failed.attempt, context.record, context.ports)
            return Wait(seconds, f"{name}: {reason}: {message}{behind}{others}", action_required=required)
        case Progressing(message):
            return Wait(seconds, f"{name}: {message}{others}")
        case Ready():
            raise AssertionError("a Ready object is not waited for")
