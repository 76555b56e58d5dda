"""How many commits of the branch follow those that Flux pulls on clusters that get a newer one.

Read once for each such commit of a plan, whatever the number of clusters, and stored in the plan's items.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

from shared.app.followed import host_of
from shared.cluster.failures.errors import Dependency, ReconcileError
from shared.cluster.record import ClusterRecord
from shared.frozen import replace
from shared.language.pin import Pin
from shared.plan.plan import Item, Plan
from shared.ports import GitHost, Ports
from shared.ports.git_host import BranchCommit

log = logging.getLogger(__name__)

AFTER = 250
"""So many commits after one that clusters pull are read."""
MOST = 8
"""For so many commits that clusters pull at most it is read how many follow."""
_COMMIT = "pin.commit"
"""The path of the commit that Flux pulls, in what a job would change."""


def with_distances(
    items: Sequence[Item],
    records: Mapping[str, ClusterRecord],
    earlier: Plan | None,
    heads: Mapping[str, str],
    ports: Ports,
) -> Iterator[Item]:
    """Yield the items with how far their clusters are behind; ``earlier`` is a plan of the same ``heads``.

    These are the newest commits, by the source of pins.
    """
    known = {item.cluster: item for item in earlier.items} if earlier else {}
    read = dict[tuple[str, str], int | None]()
    for item in items:
        record, before = records.get(item.cluster), known.get(item.cluster)
        pin = Pin.of(record.document) if record else None
        moves = item.keeps_pin or item.lags or any(change.path == _COMMIT for change in item.changes)
        if pin is None or pin.source or not moves:  # how far another repository went on, nobody asks
            yield item
        elif before and (before.uid, before.generation) == (item.uid, item.generation) and before.behind:
            yield replace(item, behind=before.behind)
        else:
            key = pin.source, pin.commit
            if key not in read and len(read) < MOST:
                read[key] = _distance(pin, heads.get(pin.source, ""), ports)
            yield replace(item, behind=read.get(key))


def commits_after(commit: str, head: str, host: GitHost) -> Sequence[BranchCommit] | None:
    """Return the commits of the branch after one, newest first; None for too many, or another history."""
    try:
        found = host.changes_since(head, commit, AFTER)
    except Dependency:
        return None
    known, line = {change.commit: change for change in found or ()}, list[BranchCommit]()
    while head in known:
        line.append(known[head])
        head = next(iter(line[-1].parents), "")
    return line if found is not None and head == commit else None


def _distance(pin: Pin, head: str, ports: Ports) -> int | None:
    """Return how many commits follow that of a pin; None where that is not known, which fails no plan."""
    if not head:
        return None
    try:
        found = commits_after(pin.commit, head, host_of(pin, ports))
    except ReconcileError as error:
        log.warning("how far %s is behind could not be read: %s: %s", pin.commit[:8], error.kind, error)
        return None
    return None if found is None else len(found)
