"""The checks of gates: check runs on GitHub, read when a stage is reached, and again later and later.

Only what was read and has succeeded passes. What cannot be read holds the stage, and says why.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from shared.jobs.failures.errors import ReconcileError
from shared.ports import CheckRun, Ports
from shared.rollouts.rollout import Checked, CheckState, Rollout
from shared.rollouts.waits import check_again_at, unpassed

log = logging.getLogger(__name__)

MAX_DETAIL = 200


def with_checks(rollout: Rollout, stage: int, ports: Ports) -> Rollout:
    """Return a rollout with what the checks of a stage say that are due; one call to GitHub for each."""
    now, name = ports.clock(), rollout.stages[stage].name
    said, reached = rollout.said(name), rollout.reached(stage) or now
    due = [
        each
        for each in unpassed(rollout, stage)
        if each not in said or check_again_at(said[each], reached, now) <= now
    ]
    read = [_read(rollout.commit, name, each, ports) for each in due]
    others = (each for each in rollout.checked if each.stage != name or each.check not in due)
    return replace(rollout, checked=(*others, *read)) if read else rollout


def _read(commit: str, stage: str, check: str, ports: Ports) -> Checked:
    now = ports.clock()
    try:
        runs = ports.pulls.check_runs(commit, check)
    except ReconcileError as error:
        log.warning("the check run %s of %s could not be read: %s", check, commit[:8], error)
        return Checked(stage, check, CheckState.UNKNOWN, now, f"{error.kind}: {error}"[:MAX_DETAIL])
    return Checked(
        stage, check, _state(runs), now, ", ".join(each.conclusion for each in runs if each.conclusion)
    )


def _state(runs: Sequence[CheckRun]) -> CheckState:
    """Return what the check runs of a name say together: several apps can have one of the same name."""
    if not runs:
        return CheckState.MISSING
    if any(each.status != "completed" for each in runs):
        return CheckState.RUNNING
    passed = all(each.conclusion == "success" for each in runs)
    return CheckState.PASSED if passed else CheckState.FAILED
