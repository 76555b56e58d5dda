"""Small changes: a plan of few clusters waits behind no large one. Pure.

The jobs of small changes have a queue of their own, and tokens of Azure's limits are set aside for them. Both
are enough for few clusters only, so their number is bounded, whatever is pushed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from shared.fleet.planning.plan import Action, Item
from shared.jobs.record import ClusterRecord, Phase

SMALL_CHANGE = 16
"""How many clusters may be in small changes at a time: one instance serves so many sessions of a queue
(``maxConcurrentSessions`` in host.json), so that none of them waits for another."""
_RESTING = (Phase.STALLED, Phase.SUSPENDED)


def small_change(
    items: Iterable[Item],
    left_over: Collection[str],
    records: Mapping[str, ClusterRecord],
    *,
    most: int,
) -> frozenset[str]:
    """Return the clusters of a plan that are a small change: none when they are too many.

    ``left_over`` are those that an unfinished plan has left to this one. When all are too many, those do not
    count, and neither do retries: what remains is what the commit itself changes.
    """
    running = {record.name for record in records.values() if _runs(record)}
    acting = [item for item in items if item.acts]
    own = [item for item in acting if item.cluster not in left_over and item.action is not Action.RETRY]
    for some in (acting, own):
        clusters = frozenset(item.cluster for item in some)
        if len(clusters | running) <= most:
            return clusters
    return frozenset()


def _runs(record: ClusterRecord) -> bool:
    """Return whether a cluster is in a small change; one that only waits for a person takes no session."""
    job = record.job
    return job.active and job.small_change and not record.needs_action and record.phase not in _RESTING
