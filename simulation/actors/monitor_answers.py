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
MEASURED = 0.2
"""How many stages wait for a workspace."""
KINDS = ("well", "well", "errors", "nan", "nothing", "several", "old", "away")


def measured(staging: Staging, chance: random.Random) -> Staging:
    """Return stages of which some wait for a workspace."""
    return staging and tuple(replace(stage, measured=chance.random() < MEASURED) for stage in staging)


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
