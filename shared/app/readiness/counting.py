"""Counts the objects of kinds whose definitions a plan removes: only then, because a plan asked for it."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from shared.app.access.context import StepContext
from shared.cluster.failures.errors import ReconcileError
from shared.kubernetes.readiness.observation import Counted
from shared.platform.changes.counts import DefinedKind

log = logging.getLogger(__name__)

MOST_PAGES = 40
"""So many pages of a kind are counted, with 500 objects each; beyond there are "at least" as many."""


def count(context: StepContext, kinds: Sequence[DefinedKind]) -> dict[str, Counted]:
    """Return how many objects of each kind a cluster has, by the names of the definitions.

    Raise RateLimited where a credential of Azure is not to be had now.
    """
    now = context.ports.clock()
    found = {definition: Counted(now) for definition, _, _ in kinds}
    if not context.enters:
        return found
    try:
        api = context.kubernetes()
        for definition, api_version, kind in kinds:
            after, objects = "", 0
            for _ in range(MOST_PAGES):
                page = api.page(api_version, kind, after=after, metadata_only=True)
                objects, after = objects + len(page.objects), page.after
                if not after:
                    break
            found[definition] = Counted(now, objects, more=bool(after))
    except ReconcileError as error:
        log.info("%s does not count: %s: %s", context.record.name, error.kind, error)
    return found
