"""At which pace jobs start: small changes wait behind no large one, creations start as they can end. Pure.

The jobs of small changes have a queue of their own, and tokens of Azure's limits are set aside for them. Both
are enough for few clusters only, so their number is bounded, whatever is pushed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from shared.azure.rate_limits import AKS_OTHER, Bucket, reserve
from shared.cluster.job import Delay, Job, NextRun
from shared.cluster.queues.continuations import Continuation
from shared.frozen import replace
from shared.language.desired import Desired
from shared.plan.plan import Action, Item

SMALL_CHANGE = 16
"""How many clusters may be in small changes at a time: one instance serves so many sessions of a queue
(``maxConcurrentSessions`` in host.json), so that none of them waits for another."""


def small_change(
    items: Iterable[Item],
    left_over: Collection[str],
    continuations: Iterable[Continuation],
    *,
    most: int,
) -> frozenset[str]:
    """Return the clusters of a plan that are a small change: none when they are too many.

    ``left_over`` are those that an unfinished plan has left to this one. When all are too many, those do not
    count, and neither do retries: what remains is what the commit itself changes. ``continuations`` are those
    of all active jobs.
    """
    running = {continuation.name for continuation in continuations if continuation.small_change}
    acting = [item for item in items if item.acts]
    own = [item for item in acting if item.cluster not in left_over and item.action is not Action.RETRY]
    for some in (acting, own):
        clusters = frozenset(item.cluster for item in some)
        if len(clusters | running) <= most:
            return clusters
    return frozenset()


# When the jobs of new clusters start: at the pace at which Azure lets them end. Pure.
#
# A new cluster needs one call of the narrowest limit, for its credentials. More creations at a time end no
# sooner: their reads would use up the read limit, and those that are ready would wait to be seen.

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
        if desired.is_attached:  # Azure has no part in it
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
