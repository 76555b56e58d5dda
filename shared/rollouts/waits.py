"""Why a cluster waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from shared.rollouts.calendar import Closed, closed
from shared.rollouts.rollout import Decided, Refused, Rollout
from shared.rollouts.standing import Standing


class Reason(StrEnum):
    """Why a cluster waits."""

    STAGE = "stage"
    """An earlier group has clusters that have not ended, or not succeeded."""
    SOAK = "soak"
    """An earlier group has succeeded, and is watched for a time."""
    APPROVAL = "approval"
    TIME = "time"
    """The gate of its stage opens later."""
    CONCURRENCY = "concurrency"
    """As many clusters of its group change as may at a time."""
    BUDGET = "budget"
    """So many clusters of a group have failed that the rollout is paused."""
    STRATEGY = "strategy"
    """The commit names a strategy that it may not select."""
    PAUSED = "paused"
    ABORTED = "aborted"
    ASIDE = "aside"
    """The cluster itself cannot take part: it is suspended, stopped, missing or contested."""
    WINDOW = "window"
    """None of its change windows is open, or one is and others start first."""
    FREEZE = "freeze"
    SKIPPED = "skipped"
    NEXT = "next"
    """Nothing holds it back: it starts with the next message of the planner."""


@dataclass(frozen=True)
class Wait:
    """Why a cluster does not start: the reason, and the stage and group that it is about.

    ``clusters`` are those that it waits for, or that have failed; ``until`` is when a soak or a freeze ends,
    a window opens or the time of a stage has come, ``since`` when the wait began, where that is known.
    ``by`` is who paused or skipped, or answers for a gate or for a freeze, whose name is its subject.
    ``window`` is the name of one, ``missing`` how many people have not approved yet, and ``refused`` what the
    commit selects and may not.
    """

    reason: Reason
    stage: str = ""
    group: int = 0
    clusters: tuple[str, ...] = ()
    until: datetime | None = None
    by: Decided | None = None
    window: str = ""
    missing: int = 0
    refused: Refused | None = None
    since: datetime | None = None


def gate_wait(rollout: Rollout, stage: int, reached: datetime, now: datetime) -> Wait | None:
    """Return what a stage waits for that was ``reached`` at a time, None if nothing keeps it from beginning.

    Who lets a rollout start outside its windows opens the gates that wait for a time, and no other ones.
    """
    one = rollout.stages[stage]
    gate, opens = one.gate, one.gate.opens(reached)
    by = Decided(gate.owner, reached, gate.reason, one.name) if gate.owner else None
    missing = rollout.missing_approvals(stage, now)
    if missing:
        return Wait(Reason.APPROVAL, one.name, missing=missing, by=by, since=reached)
    if now < opens and not rollout.overridden and stage not in rollout.entered:
        return Wait(Reason.TIME, one.name, until=opens, by=by, since=reached)
    return None


def shut_members(rollout: Rollout, standings: Mapping[str, Standing], now: datetime) -> Mapping[str, Closed]:
    """Return the clusters that could start, if it were not for a window or a freeze."""
    windows = {each.name: each for each in rollout.windows}
    freezes = {each.name: each for each in rollout.freezes}
    found = dict[str, Closed]()
    for each in rollout.members:
        waits = standings[each.cluster] in (Standing.WAITING, Standing.BUSY) and not each.at_once
        if rollout.overridden or not waits or not (each.windows or each.freezes):
            continue
        own = [windows[name] for name in each.windows]
        reason = closed(own, [freezes[name] for name in each.freezes], each.uid, now)
        if reason is not None:
            found[each.cluster] = reason
    return found


def shut_wait(stage: str, group: int, shut: Closed) -> Wait:
    """Return the wait of a cluster for a window or the end of a freeze."""
    freeze = shut.freeze
    if freeze is None:
        return Wait(Reason.WINDOW, stage, group, until=shut.until, window=shut.window)
    by = Decided(freeze.owner, freeze.starts, freeze.reason, freeze.name)
    return Wait(Reason.FREEZE, stage, group, until=shut.until, by=by)
