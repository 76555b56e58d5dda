"""What a step says when it returns; a pure function turns it into the next row."""

from __future__ import annotations

from dataclasses import dataclass

from shared.jobs.errors import ReconcileError
from shared.jobs.recipes import Step


@dataclass(frozen=True)
class Done:
    """The step's part of the world is as it should be; ``note`` tells what was done, "" for nothing."""

    note: str = ""


@dataclass(frozen=True)
class Wait:
    """Look again in so many seconds; ``reason`` is a sentence for a person.

    ``wrote`` names the write that was just sent, "" for none: a look that finds the same write still
    needed after it has succeeded knows that Azure does not keep it. ``request_id`` is the service's own
    for that write. ``part`` names the part of the step that is being waited for, where a part has a time
    limit of its own. ``person`` is what a person can do about it, "" when it goes on by itself.
    ``open_ended``: it lasts as long as people like, so it is never called stalled. ``suspended``: a manifest
    asks for it.
    """

    seconds: float
    reason: str
    wrote: str = ""
    request_id: str = ""
    part: str = ""
    person: str = ""
    open_ended: bool = False
    suspended: bool = False


@dataclass(frozen=True)
class Retry:
    """Something went wrong that may pass."""

    error: ReconcileError


@dataclass(frozen=True)
class Fail:
    """Something is wrong that only a commit or a person can mend."""

    error: ReconcileError


@dataclass(frozen=True)
class Restart:
    """What an earlier step had made is gone; begin the recipe again."""

    reason: str


@dataclass(frozen=True)
class GoToStep:
    """The step is done, and an earlier one has more to do; ``reason`` says what."""

    step: Step
    reason: str


Outcome = Done | Wait | Retry | Fail | Restart | GoToStep
