"""What a step says when it returns; a pure function turns it into the next row."""

from __future__ import annotations

from dataclasses import dataclass

from shared.jobs.errors import ReconcileError


@dataclass(frozen=True)
class Done:
    """The step's part of the world is as it should be; ``note`` tells what was done, "" for nothing."""

    note: str = ""


@dataclass(frozen=True)
class Wait:
    """Look again in so many seconds; ``reason`` is a sentence for a person."""

    seconds: float
    reason: str


@dataclass(frozen=True)
class Retry:
    """Something went wrong that may pass."""

    error: ReconcileError


@dataclass(frozen=True)
class Fail:
    """Something is wrong that only a commit or a person can mend."""

    error: ReconcileError


Outcome = Done | Wait | Retry | Fail
