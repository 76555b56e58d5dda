"""The daily purge, as it would be after some weeks, and what it must leave.

"purged": it removed an event of a living cluster, an open plan, or a saved file of the commit planned last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.recovery.housekeeping import purge_expired
from shared.cluster.history import Event
from shared.ports import Ports
from simulation.event_loop import EventLoop
from simulation.rule import RuleViolated

LATER = (0, 8, 40, 400)
"""Days after which the purge runs."""
ALL = 1000


@dataclass(frozen=True)
class _Remainder:
    """What the purge leaves: the events of each life of a cluster, the open plans, the files of a commit."""

    events: dict[tuple[str, str], frozenset[Event]]
    plans: frozenset[str]
    commit: str
    blobs: frozenset[str]


def purge(loop: EventLoop, cloud: MemoryCloud) -> None:
    """Purge what has expired after some days, and check what is left."""
    later = timedelta(days=loop.chance.choice(LATER))
    loop.log("%s: purges as after %d days", cloud.ports.config.fleet, later.days)

    def after_days(ports: Ports) -> None:
        purge_expired(replace(ports, clock=lambda: ports.clock() + later))

    began, before = loop.clock(), _kept(cloud)
    loop.run_function(cloud, after_days)
    if loop.clock() != began:  # it was frozen, and workers have removed events of their own meanwhile
        return
    after = _kept(cloud)
    for life, events in before.events.items():
        if not events <= after.events.get(life, events):
            raise RuleViolated("purged", f"events of {life[0]}, which lives")
    gone = [commit for commit in before.plans if cloud.state.plan(commit) is None]
    if gone:
        raise RuleViolated("purged", f"the open plan of {gone[0][:8]}")
    if before.commit == after.commit and not before.blobs <= after.blobs:
        raise RuleViolated("purged", f"files of {after.commit[:8]}, which was planned last")


def _kept(cloud: MemoryCloud) -> _Remainder:
    state, commit = cloud.state, cloud.state.fleet().commit
    records, files = state.clusters(), cloud.repository.tree(commit) if commit else ()
    events = {
        (record.name, record.uid): frozenset(
            event for event in state.events(record.name, ALL) if event.uid == record.uid
        )
        for record in records
    }
    plans = frozenset(plan_record.plan.commit for plan_record in state.open_plans())
    return _Remainder(events, plans, commit, frozenset(state.blobs({entry.sha for entry in files})))
