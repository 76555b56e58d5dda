"""People who change what git owns of clusters by hand while faults happen, jobs run and commits come.

The rules of sweeps, of records and of the end hold as without them: a change by hand excuses nothing but that
its cluster differs until a sweep, a job or its author has undone it. A cluster that is suspended is changed
more often than others, because nothing may be corrected there; they also have one suspended for that.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from localcloud.azure.world.arm_keys import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.resource_ids import ClusterId
from simulation.actors.by_hand import ByHand
from simulation.actors.drift import first_pool, value_of
from simulation.desired_state import CORRECTED
from simulation.event_loop import EventLoop
from simulation.history import AzureHistory
from simulation.operators import Operators
from simulation.oracle import Oracle, is_going, serves

ACTS = (1, 5)
COST, COUNT, OWN, POOL = "tags.cost", "count", "tags.among", "pool"
STOP, DELETE = "stop", "delete"
KINDS = (COST, COST, COUNT, COUNT, OWN, POOL, STOP, DELETE)
SUSPENDED = 0.7
"""The part of the changes that are of a suspended cluster, where there is one."""
AUDITS = 0.8
"""In so many seeds they have a cluster suspended whose policy corrects, and change it then."""
AUDIT, LOOK, LOOKS = timedelta(hours=1), 60.0, 20
"""How long such a suspension lasts, and after which seconds, and how often, they look for its beginning."""
UNTIL_SWEEP = (130.0, 600.0)
"""After so many seconds a sweep begins: the record has settled by then."""
_OF_POOL = ("count", "vmSize", "mode", "osType", "type", "nodeLabels", "tags")


class DriftAmongFaults(ByHand):
    """They change tags, counts and pools, and stop and delete clusters; ``acts`` counts the changes."""

    def __init__(
        self,
        seed: int,
        everybody: Sequence[Operators],
        loop: EventLoop,
        oracle: Oracle,
        history: AzureHistory,
        sweep: Callable[[], None],
    ) -> None:
        chance = random.Random(f"{seed} drift among faults")  # noqa: S311
        super().__init__(chance, loop, oracle, history, sweep)
        self._everybody = everybody
        self._changed: dict[tuple[MemoryCloud, ClusterId, str], tuple[object, object]] = {}
        """Of each field what it was before they changed it, once or more often, and what it became."""
        self._deleted: dict[tuple[MemoryCloud, ClusterId, str], Json] = {}
        """Each node pool that they deleted, as it was, by the name in the manifest."""

    def schedule(self, seconds: float) -> None:
        """Let them act at some moments of so many seconds, and a sweep begin after each."""
        for _ in range(self._chance.randint(*ACTS)):
            at = self._chance.uniform(0, seconds)
            self._loop.schedule(at, self._act)
            self._loop.schedule(at + self._chance.uniform(*UNTIL_SWEEP), self._sweep)
        if self._chance.random() < AUDITS:
            self._loop.schedule(self._chance.uniform(seconds / 3, seconds), self._audit)

    def _audit(self) -> None:
        """Have a cluster suspended whose policy corrects drift, and change it by hand meanwhile."""
        operators = self._chance.choice(self._everybody)
        some = [
            cluster
            for cluster in operators.now.clusters.values()
            if cluster.name in CORRECTED and not cluster.suspended
        ]
        if not some or operators.now.invalid:
            return
        cluster, until = self._chance.choice(some), self._loop.clock() + AUDIT
        suspended = replace(cluster, suspended=until.strftime("%Y-%m-%dT%H:%M:%SZ"))
        operators.push(operators.now.with_cluster(suspended))
        self._wait(operators, cluster.name, LOOKS)

    def _wait(self, operators: Operators, name: str, looks: int) -> None:
        """Change a cluster once its job says that it is suspended; its webhook may be late, or lost."""
        record = operators.cloud.state.cluster(name)
        if record is not None and record.phase is Phase.SUSPENDED:
            self._act_on(operators, record, self._chance.choice((COST, COUNT, COUNT)))
            for _ in range(2):
                self._loop.schedule(self._chance.uniform(*UNTIL_SWEEP), self._sweep)
        elif looks:
            self._loop.schedule(LOOK, lambda: self._wait(operators, name, looks - 1))

    def _act(self) -> None:
        operators = self._chance.choice(self._everybody)
        records = operators.cloud.state.clusters()
        ready = [record for record in records if record.phase is Phase.READY]
        suspended = [record for record in records if record.phase is Phase.SUSPENDED]
        some = suspended if suspended and self._chance.random() < SUSPENDED else ready
        if not some:
            return
        self._act_on(operators, self._chance.choice(some), self._chance.choice(KINDS))

    def _act_on(self, operators: Operators, record: ClusterRecord, kind: str) -> None:
        live = self._owned(operators.cloud, record)
        if live is None or (kind == COST and not live["tags"].get("cost")):
            return
        self.acts += 1
        what = "the faults" if record.phase is Phase.READY else "the faults, in its suspension"
        self._loop.log("somebody changes %s of %s by hand, among %s", kind, record.name, what)
        self._change(operators, record, kind, live)

    def _change(self, operators: Operators, record: ClusterRecord, kind: str, live: Json) -> None:
        cloud, cluster = operators.cloud, key_of(record.desired.id)
        if kind == STOP:
            operators.stop(cluster)
        elif kind == DELETE:
            operators.remove(cluster)
        elif kind == POOL:
            self._delete_pool(cloud, cluster, live)
        else:
            before = value_of(live, kind)
            after: object = before + 1 if isinstance(before, int) else f"{before or ''}y"
            first, last = self._changed.get((cloud, cluster, kind), (before, before))
            self._changed[cloud, cluster, kind] = (first if last == before else before, after)
            self._write(cloud, cluster, live, kind, after)

    def _delete_pool(self, cloud: MemoryCloud, cluster: ClusterId, live: Json) -> None:
        """Delete a node pool that Azure lets somebody delete, where there is one."""
        pools = [pool for pool in live["properties"]["agentPoolProfiles"] if pool["mode"] == "User"]
        if not pools:
            return
        pool = self._chance.choice(pools)
        self._deleted.setdefault((cloud, cluster, serves(pool)), pool)
        with self._changing(cluster):
            cloud.azure.delete_pool(cluster, pool["name"])

    def undo(self) -> None:
        """Undo what is still as they left it: nobody has corrected it, and no commit has asked for more."""
        for (cloud, cluster, field), (before, after) in self._changed.items():
            live = self._oracle.live(cluster)
            if live is not None and not is_going(live) and value_of(live, field) == after:
                self._write(cloud, cluster, live, field, before)
        for (cloud, cluster, _), pool in self._deleted.items():
            self._create_pool(cloud, cluster, pool)
        self._changed.clear()
        self._deleted.clear()

    def _create_pool(self, cloud: MemoryCloud, cluster: ClusterId, pool: Json) -> None:
        """Create a deleted pool again that git has, and that Azure still lacks."""
        live, record = self._oracle.live(cluster), cloud.state.cluster(cluster.name)
        if live is None or is_going(live) or record is None:
            return
        wanted = {document["name"] for document in record.document["spec"]["nodePools"]}
        served = {serves(document) for document in live["properties"]["agentPoolProfiles"]}
        if serves(pool) not in wanted - served:
            return
        body: dict[str, Any] = {key: pool[key] for key in _OF_POOL if key in pool}
        with self._changing(cluster):
            cloud.azure.put_pool(cluster, pool["name"], {"properties": body})

    def _write(self, cloud: MemoryCloud, cluster: ClusterId, live: Json, field: str, value: object) -> None:
        with self._changing(cluster):
            if field == COUNT:
                cloud.azure.interventions.scale(cluster, first_pool(live)["name"], int(str(value)))
                return
            name = field.removeprefix("tags.")
            tags = {key: text for key, text in live["tags"].items() if key != name}
            own = {} if value is None else {name: str(value)}
            cloud.azure.patch_cluster(cluster, {"tags": {**tags, **own}})
