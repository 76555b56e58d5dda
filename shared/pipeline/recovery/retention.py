"""Remove expired records once a day, each kind by itself, so that a failure delays no other kind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from operator import attrgetter

from shared.jobs.failures.errors import ReconcileError
from shared.ports import Ports

log = logging.getLogger(__name__)

EVENTS_OF_DELETED = timedelta(days=30)
DELIVERIES = timedelta(days=7)
DEAD_LETTERS = timedelta(days=90)
NOTICES = timedelta(days=7)
"""Facts of a fleet that notifies nobody; the notifier removes those that it takes."""
PLANS = 200
ROLLOUTS = 50


def _prune_blobs(ports: Ports) -> int:
    """Remove the saved blobs that the commit planned last does not have."""
    commit = ports.state.fleet().commit
    if not commit:
        return 0
    return ports.state.prune_blobs({entry.sha for entry in ports.repository.tree(commit)})


def purge_expired(ports: Ports) -> Mapping[str, int]:
    """Remove the expired records; return how many of each kind."""
    now, state = ports.clock(), ports.state
    kinds: Mapping[str, Callable[[], int]] = {
        "events": lambda: state.prune_events_before(
            now - EVENTS_OF_DELETED, living=state.summaries().keyed(attrgetter("name"))
        ),
        "deliveries": lambda: state.prune_deliveries(now - DELIVERIES),
        "rollouts": lambda: state.prune_rollouts(ROLLOUTS),
        "plans": lambda: state.prune_plans(PLANS),
        "blobs": lambda: _prune_blobs(ports),
        "acts": lambda: state.prune_acts(now - timedelta(days=ports.config.acts_days)),
        "notices": lambda: state.prune_notices(now - NOTICES),
        "dead letters": lambda: state.prune_dead_letters(now - DEAD_LETTERS),
    }
    removed: dict[str, int] = {}
    for kind, remove in kinds.items():
        try:
            removed[kind] = remove()
        except ReconcileError:
            log.exception("old %s stay until the next run", kind)
    log.info("removed expired records: %s", ", ".join(f"{count} {kind}" for kind, count in removed.items()))
    return removed
