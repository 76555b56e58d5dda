"""Sequences of requests to an API server whose later answers depend on what controllers did; data.

The garbage collector, the grace of pods on nodes, defaults and quantities, and reads of versions that are no
longer stored. The answers of a real server are recorded as those of ``requests`` are. No node of the
cluster has a kubelet: a deleted pod stays until somebody ends it.
"""

from __future__ import annotations

from tests.support.api_server import collection, defaults, grace
from tests.support.api_server.steps import Step


def steps() -> tuple[Step, ...]:
    """Return every step in order."""
    groups = (
        collection.foreground,
        collection.shared_dependents,
        collection.orphans,
        collection.background,
        collection.held,
        grace.pods,
        defaults.defaults,
        defaults.quantities,
    )
    return tuple(step for group in groups for step in group())
