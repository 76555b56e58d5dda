"""The rules of rollbacks of node pools: one for each upgrade that git asks to undo, where Azure allows it.

The conditions are those of docs/how-to/roll-back-a-node-pool.md, and what a pool runs is read from Azure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from localcloud.azure.world.arm_keys import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record import ClusterRecord
from shared.resource_ids import ClusterId
from simulation.desired_state import Pool
from simulation.history import FleetHistory
from simulation.invariants.context import Context
from simulation.operators import NOT_ROLLED_BACK
from simulation.oracle import serves
from simulation.rule import RuleViolated

RULE = "rollback"
REFUSED = "The rollback of the agent pool is not allowed"
"""What Azure answers to a rollback whose conditions are not met."""


@dataclass
class PoolLife:
    """What was seen of a node pool: since when it exists, and what it runs.

    ``done`` is until when it had run, by git, what its last rollback brought back, "" for none; ``place`` is
    that of the head then.
    """

    since: datetime
    version: str
    done: str = ""
    place: int = 0


@dataclass
class RollbackInvariant:
    """Checks every change of a version, every Ready cluster, and every wait; ``pools`` are of each life."""

    context: Context
    pools: dict[tuple[ClusterId, int, str], PoolLife] = field(default_factory=dict)

    def after_event(self) -> None:
        """Compare what the node pools run with what they ran."""
        for key, pools in self.context.loop.azure.peek_pools().items():
            life = self.context.azure.lives[key]
            for pool in pools:
                version, place = pool["currentOrchestratorVersion"], (key, life, str(pool["name"]))
                seen = self.pools.get(place)
                if seen is None:
                    self.pools[place] = PoolLife(self.context.loop.clock(), version)
                elif seen.version != version:
                    self._runs(seen, key, serves(pool), version)

    def _runs(self, seen: PoolLife, key: ClusterId, pool: str, version: str) -> None:
        before, seen.version = seen.version, version
        if _numbers(version) < _numbers(before):
            self._went_back(seen, key.name, pool, before)
        elif seen.done:
            self._went_on(seen, key.name, pool, before)

    def _went_back(self, seen: PoolLife, name: str, pool: str, before: str) -> None:
        """Check that git asks for that, with a time for which the pool did not go back already."""
        for history in self.context.histories.values():
            for commit in reversed(history.head_line):
                found = _pool(history, commit, name, pool)
                back = found.rollback if found and found.version == seen.version else None
                if back is not None and back.last_used > seen.done:
                    seen.done, seen.place = back.last_used, len(history.head_line)
                    return
        what = f"{name}/{pool} goes from {before} back to {seen.version}"
        raise RuleViolated(RULE, f"{what}, and git does not ask for that, or did so once")

    def _went_on(self, seen: PoolLife, name: str, pool: str, before: str) -> None:
        """Check that a commit took the version back which git asked for."""
        for history in self.context.histories.values():
            since = history.head_line[seen.place - 1 :]
            asked = [_pool(history, commit, name, pool) for commit in since]
            if asked and all(wanted is not None and wanted.version == before for wanted in asked):
                what = f"{name}/{pool} was rolled back to {before}, and goes to {seen.version}"
                raise RuleViolated(RULE, f"{what} although every commit since asks for {before}")

    def saved(self, cloud: MemoryCloud, before: ClusterRecord | None, after: ClusterRecord) -> None:
        """Check what a job says that rolls a pool back, and a cluster that is Ready.

        Restored tables may not know that it was done: the job waits as for one that Azure does not allow.
        """
        asked = self.context.history(cloud).desired(after.commit).clusters.get(after.name)
        if asked is None or not any(pool.rollback for pool in asked.pools):
            return
        self.after_event()  # an operation of Azure may have ended since
        failure = after.job.step.failure if after.failed else None
        actor = self.context.loop.actor
        if failure and REFUSED in failure.message and not actor.faulty:
            raise RuleViolated(RULE, f"{after.name} fails, because its job did not wait: {failure.message}")
        for pool, name, seen in self._asking(after, asked.pools):
            if pool.rollback is None:
                continue
            done = pool.rollback.last_used <= seen.done
            waits = after.job.active and f"{name} {NOT_ROLLED_BACK}" in after.job.reason
            if done and waits and not self.context.history(cloud).restored:
                raise RuleViolated(RULE, f"{after.name}/{pool.name} is to be rolled back a second time")
            ready = before is not None and after.observed_generation > before.observed_generation
            runs = seen.version == pool.version
            if ready and not (done or runs) and seen.since < self._asked_since(cloud, after.name, pool):
                what = f"{after.name} is Ready, {pool.name} runs {seen.version}"
                raise RuleViolated(RULE, f"{what}, and is to be rolled back to {pool.version}")

    def _asking(self, record: ClusterRecord, pools: tuple[Pool, ...]) -> Iterator[tuple[Pool, str, PoolLife]]:
        """Yield each pool with the name of what serves it in Azure, and what was seen of that."""
        key = key_of(record.desired.id)
        live = self.context.oracle.live(key)
        for profile in live["properties"]["agentPoolProfiles"] if live else ():
            seen = self.pools.get((key, self.context.azure.lives[key], str(profile["name"])))
            pool = next((pool for pool in pools if pool.name == serves(profile)), None)
            if seen is not None and pool is not None:
                yield pool, str(profile["name"]), seen

    def _asked_since(self, cloud: MemoryCloud, name: str, pool: Pool) -> datetime:
        """Return when a commit was the head first that asks for the rollback of a pool."""
        history = self.context.history(cloud)
        found = (
            commit
            for commit in history.head_line
            if (candidate := _pool(history, commit, name, pool.name)) and candidate.rollback == pool.rollback
        )
        return history.first_moved_at(next(found))


def _pool(history: FleetHistory, commit: str, name: str, pool: str) -> Pool | None:
    cluster = history.desired(commit).clusters.get(name)
    return (
        next((candidate for candidate in cluster.pools if candidate.name == pool), None) if cluster else None
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
