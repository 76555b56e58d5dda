"""What Azure Monitor says to the gates of stages: a workspace whether all is well, and which alerts fire.

Only ``WELL`` opens a gate of the workspace. Everything else is too many errors, or does not cover the time of
the check. A severe alert keeps a gate shut, and no other one does.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from localcloud.azure.world.offers import alert_name
from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.memory.memory_monitor import constant
from shared.cluster.failures.errors import Unavailable
from shared.rollouts.monitored import Series
from simulation.staging import QUERY, SHOP, WORKSPACE, Staging

WELL, STALE = 0.001, 0.002
"""The values of answers that pass, and of such that would if they were of the time of the check."""
MEASURED = 0.2
"""How many stages wait for a workspace."""
WITH_ALERTS, ALERTED, ALARMS = 0.12, 0.7, (*("severe",) * 5, *("other",) * 2, "quiet")
"""How many fleets have stages that wait for alerts, how many of these, and what fires."""
SITE = f"{SHOP}/providers/Microsoft.Web/sites/shop"
KINDS = ("well", "well", "errors", "nan", "nothing", "several", "old", "away")


def measured(staging: Staging, chance: random.Random) -> Staging:
    """Return stages of which some wait for a workspace."""
    return staging and tuple(replace(stage, measured=chance.random() < MEASURED) for stage in staging)


def alerted(staging: Staging, chance: random.Random) -> Staging:
    """Return stages of which some wait for alerts, in a few fleets."""
    share = ALERTED if chance.random() < WITH_ALERTS else 0
    return staging and tuple(replace(stage, alerted=chance.random() < share) for stage in staging)


def alarm(cloud: MemoryCloud, kind: str) -> None:
    """Let an alert fire from now on, a severe one or another, or no severe one."""
    offers = cloud.azure.offers
    if kind == "quiet":
        if severe_since(cloud) is not None:
            offers.resolve(offers.fire(SITE, "latency"))
    else:
        offers.fire(SITE, *{"severe": ("latency", "Sev0"), "other": ("disk", "Sev3")}[kind])


def severe_since(cloud: MemoryCloud) -> datetime | None:
    """Return since when a severe alert fires, None for none."""
    since = cloud.azure.offers.fires_since(alert_name(SITE, "latency"))
    return datetime.fromisoformat(since) if since else None


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
