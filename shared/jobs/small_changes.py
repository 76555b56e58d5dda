"""Small changes: a plan of few clusters waits behind no large one. Pure.

The jobs of small changes have a queue of their own, and tokens of Azure's limits are set aside for them. Both
are enough for few clusters only, so their number is bounded, whatever is pushed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from shared.fleet.planning.plan import Action, Item
from shared.jobs.continuations import Continuation

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
    running = {each.name for each in continuations if each.small_change}
    acting = [item for item in items if item.acts]
    own = [item for item in acting if item.cluster not in left_over and item.action is not Action.RETRY]
    for some in (acting, own):
        clusters = frozenset(item.cluster for item in some)
        if len(clusters | running) <= most:
            return clusters
    return frozenset()
