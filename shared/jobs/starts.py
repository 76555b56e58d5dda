"""When the jobs of new clusters start: at the pace at which Azure lets them end. Pure.

A new cluster needs one call of the narrowest limit, for its credentials. More creations at a time end no
sooner: their reads would use up the read limit, and those that are ready would wait to be seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from shared.fleet.desired import Desired
from shared.fleet.planning.plan import Action, Item
from shared.frozen import replace
from shared.jobs.job import Delay, Job, NextRun
from shared.jobs.rate_limits import AKS_OTHER, Bucket, reserve

PACE = AKS_OTHER.common


def starts(
    items: Iterable[Item], clusters: Mapping[str, Desired], small: Collection[str], at: datetime
) -> Mapping[str, datetime]:
    """Return when the new clusters of a plan start that do not start at once, by name.

    ``at`` is the time of the plan. Those of ``small``, the clusters of a small change, wait for nobody.
    """
    buckets: dict[str, Bucket] = {}
    found: dict[str, datetime] = {}
    for item in items:
        desired = clusters.get(item.cluster)
        if item.action is not Action.CREATE or item.cluster in small or desired is None:
            continue
        if desired.is_existing:  # Azure has no part in it
            continue
        subscription = desired.id.subscription.lower()
        bucket, start = reserve(buckets.get(subscription, Bucket(at)), PACE, now=at)
        buckets[subscription] = bucket
        if start > at:
            found[item.cluster] = start
    return found


def starting(job: Job, at: datetime) -> Job:
    """Return a new job that starts later; until then it makes no progress, and is not late."""
    pace = f"Azure lets {60 * PACE.per_second:.0f} clusters of a subscription a minute be completed"
    next_run = NextRun(at, Delay.WAIT, f"starts at {at:%Y-%m-%d %H:%M:%S} UTC: {pace}")
    return replace(job, next_run=next_run, step=replace(job.step, last_progress=at))
