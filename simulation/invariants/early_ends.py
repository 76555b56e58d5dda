"""The rule of lifetimes: the end of a cluster is proposed when it has come, and not before.

"early end": the branch of a pull request that removes a cluster is written before the lifetime that git gives
the cluster is over since it was Ready first, before what people put off is over, while git protects it, or in
a freeze of deletes; or it changes anything but the cluster's folder.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from simulation.event_loop import MAX_SKEW
from simulation.invariants.context import CLOCKS, Context
from simulation.rule import RuleViolated
from simulation.staging import stage_of

RULE = "early end"
SKEW = timedelta(seconds=2 * MAX_SKEW)
BRANCH = "roadstead/end/"


class LifetimeInvariant:
    """Notes when clusters are Ready first, and judges each branch that removes one.

    ``put_off`` is until when people extended or hold a cluster, by fleet and name.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._ready: dict[tuple[str, str, str], datetime] = {}
        self.put_off: dict[tuple[str, str], datetime] = {}

    def saved(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Note that a cluster is Ready."""
        if record.phase is Phase.READY:
            place = (cloud.ports.config.fleet, record.name, record.uid)
            self._ready.setdefault(place, self._context.loop.clock())

    def proposed(self, cloud: MemoryCloud, branch: str, commit: str) -> None:
        """Judge a branch that is about to point to a commit."""
        fleet, history = cloud.ports.config.fleet, self._context.history(cloud)
        if not branch.startswith(f"{BRANCH}{fleet}/"):
            return
        name = branch.removeprefix(f"{BRANCH}{fleet}/").rpartition("-")[0]
        left, folder = cloud.repository.files(commit), f"clusters/{name}/"
        for head in reversed(history.head_line):
            before = cloud.repository.files(head)
            kept = {path: text for path, text in before.items() if not path.startswith(folder)}
            if left == kept != before:
                break
        else:
            raise RuleViolated(RULE, f"{branch} changes more than the folder of {name}")
        self._not_frozen(cloud, name)
        wanted, record = history.desired(head).clusters[name], cloud.state.cluster(name)
        now = self._context.loop.clock() + SKEW
        first = self._ready.get((fleet, name, record.uid)) if record else None
        if not wanted.lasts or wanted.protected or first is None:
            raise RuleViolated(RULE, f"{name} has no end that has come in {head[:8]}")
        ends = first + timedelta(minutes=wanted.lasts)
        if not self._context.replaced[fleet]:
            ends = max(ends, self.put_off.get((fleet, name), ends))
        if now < ends:
            raise RuleViolated(RULE, f"the end of {name} is proposed {ends - now} before it comes")

    def _not_frozen(self, cloud: MemoryCloud, name: str) -> None:
        """Check that no freeze of the commit that was planned last holds the delete of a cluster."""
        fleet = cloud.state.fleet()
        staging = self._context.history(cloud).desired(fleet.commit).in_force if fleet.commit else None
        shut = stage_of(staging, name).shut_for("deletes") if staging else None
        first, last = self._context.loop.actor.since - CLOCKS, self._context.loop.clock() + CLOCKS
        if shut is not None and fleet.closed.override is None and shut.covers(first, last):
            raise RuleViolated(RULE, f"the end of {name} is proposed in {shut}")
