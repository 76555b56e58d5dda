"""What Roadstead itself uses: written now and then by each process, and shown at list prices.

A write takes two operations, for ``FEWEST`` to ``MOST`` counted ones. It is not repeated where its answer is
lost, and what a process that ends had not written is lost: so each count is at least so large.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from shared.app.door import NotReady
from shared.cluster.failures.errors import ReconcileError, Stale
from shared.ports import Ports

log = logging.getLogger(__name__)


@contextmanager
def executed(function: str, ports: Ports) -> Iterator[None]:
    """Count an execution of a function while the context lasts, and then write what is due."""
    try:
        with ports.tally.execution(function):
            yield
    finally:
        _write(ports.tally.due(), ports)


def _write(counts: Mapping[str, float], ports: Ports) -> None:
    if not counts:
        return
    try:
        ports.state.add_used(counts, ports.clock())
    except (Stale, NotReady):  # nothing was written: the next execution tries again
        ports.tally.restore(counts)
    except ReconcileError as error:  # it may have been written
        log.warning("%d own operations are not counted: %s", sum(counts.values()), error.kind)
