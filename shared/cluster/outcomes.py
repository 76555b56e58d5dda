"""What a step returns; a pure function applies it to the record."""

from __future__ import annotations

from collections.abc import Mapping

from shared.azure.differences import Difference
from shared.azure.running_versions import RunningVersions
from shared.cluster.divergence.verification import Verification
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.job import AcceptedWrite, Contest, WaitingOn
from shared.cluster.recipes import Step
from shared.frozen import dataclass, field
from shared.language.pin import Pin

OBSERVE_SECONDS = 300.0
"""The time between two reads of what only a person continues, such as an adoption."""


@dataclass(frozen=True)
class Done:
    """The step has reached its state; ``note`` describes what it did, "" for nothing.

    ``retained``: the step of a deletion left its resource in Azure, and ``note`` says why. ``life`` is the
    life of the cluster as its tag says it, "" for that of the record. ``running`` is what a verification saw.
    ``verified`` is how Azure shows the cluster after the last step of a job, None where no step has compared
    it. ``in_sync``: it differs from git in nothing but the fields that the job leaves as they are. ``added``
    are the differences that no job ends and no exemption ignores. ``facts``
    are those of the cluster, None where the step has not read them. ``cluster_uid`` is the
    identity of a cluster that exists outside Roadstead, "" where the step has not read it. ``pins`` are those
    that Flux has and the record takes over, by the names of systems, as "" that of the cluster.
    """

    note: str = ""
    retained: bool = False
    life: str = ""
    running: RunningVersions | None = None
    verified: Verification | None = None
    in_sync: bool = False
    added: tuple[Difference, ...] = ()
    facts: Mapping[str, str] | None = None
    cluster_uid: str = ""
    pins: Mapping[str, Pin] = field(default_factory=dict)


@dataclass(frozen=True)
class Wait:
    """Run the step again in ``seconds``; ``reason`` is a sentence for an operator.

    ``write`` is the write that was just accepted: a step that needs the same write again after it succeeded
    knows that it had no effect. ``waiting_on`` is a part of the step with its own time limit.
    ``action_required`` is what an operator has to do, "" when the job continues without one. ``open_ended``:
    the wait may last indefinitely, so it never becomes Stalled. ``suspended``: a manifest asks for it.
    ``sleeping``: the cluster is stopped, as it is to be now.
    ``contest`` is what a takeover decides. ``restored``: the delete has not started, and git has the cluster.
    """

    seconds: float
    reason: str
    write: AcceptedWrite | None = None
    waiting_on: WaitingOn | None = None
    action_required: str = ""
    open_ended: bool = False
    suspended: bool = False
    sleeping: bool = False
    contest: Contest | None = None
    restored: bool = False

    @classmethod
    def for_person(
        cls, reason: str, action: str, *, contest: Contest | None = None, restored: bool = False
    ) -> Wait:
        """Return the wait for what a person alone continues, however long that takes."""
        return cls(
            OBSERVE_SECONDS,
            reason,
            action_required=action,
            open_ended=True,
            contest=contest,
            restored=restored,
        )


@dataclass(frozen=True)
class Retry:
    """An error that may pass."""

    error: ReconcileError


@dataclass(frozen=True)
class Fail:
    """An error that only a commit or an operator can resolve."""

    error: ReconcileError


@dataclass(frozen=True)
class Restart:
    """Something of an earlier step is no longer so, such as a resource that has vanished; begin again."""

    reason: str


@dataclass(frozen=True)
class GoToStep:
    """The step is done, and an earlier one has more to do; ``reason`` says what."""

    step: Step
    reason: str


Outcome = Done | Wait | Retry | Fail | Restart | GoToStep
