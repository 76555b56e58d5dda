"""What the workspace of Azure Monitor answers to the gates of stages: whether all is well, or nothing of use.

Only ``WELL`` opens a gate. Everything else is too many errors, or does not cover the time of the check.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.memory.memory_monitor import constant
from shared.cluster.failures.errors import Unavailable
from shared.rollouts.monitored import Series
from simulation.staging import QUERY, WORKSPACE, Staging

WELL, STALE = 0.001, 0.002
"""The values of answers that pass, and of such that would if they were of the time of the check."""
MEASURED = 0.5
"""How many of the stages that ask somebody else ask a workspace."""
KINDS = ("well", "well", "errors", "nan", "nothing", "several", "old", "away")


def measured(staging: Staging, chance: random.Random) -> Staging:
    """Return stages of which some that wait for an endpoint wait for a workspace instead."""
    drawn = ((stage, stage.asked and chance.random() < MEASURED) for stage in staging or ())
    return staging and tuple(
        replace(stage, asked=stage.asked and not asks, measured=asks) for stage, asks in drawn
    )


def answer(cloud: MemoryCloud, kind: str) -> None:
    """Let the workspace answer so from now on."""
    cloud.monitor.workspaces.add(WORKSPACE)
    cloud.monitor.values.pop(QUERY, None)
    now, hour = cloud.clock(), timedelta(hours=1)
    fine = constant(STALE, now - hour, now)
    values = {"well": WELL, "errors": 0.5, "nan": float("nan")}
    if kind in values:
        cloud.monitor.values[QUERY] = values[kind]
    elif kind == "away":
        cloud.monitor.answers[QUERY] = Unavailable("the workspace does not answer")
    else:
        old = constant(STALE, now - 3 * hour, now - 2 * hour)
        cloud.monitor.answers[QUERY] = {"nothing": [], "several": [fine, fine], "old": [old]}[kind]


def opened_by(answers: Sequence[Sequence[Series] | None]) -> bool:
    """Return whether a workspace said twice, and last, that all is well."""
    well = [_is_well(found) for found in answers]
    return well.count(True) >= 2 and well[-1]


def _is_well(found: Sequence[Series] | None) -> bool:
    return bool(found) and all(sample.value == WELL for series in found or () for sample in series.samples)
