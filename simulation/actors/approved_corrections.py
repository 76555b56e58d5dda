"""Corrections that destroy: people create node pools with the fleet's tags, and some approve the delete.

Everything is quiet: the faults have ended, and no job runs. A pool that git does not have is deleted where
the policy corrects and somebody approved exactly that, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from localcloud.azure.world.arm_keys import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import approve_correction
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.resource_ids import ClusterId
from simulation.actors.by_hand import ByHand
from simulation.desired_state import CORRECTED
from simulation.event_loop import ActingFunction
from simulation.oracle import POOL_TAG, is_going
from simulation.rule import RuleViolated

RULE = "unapproved correction"
ROUNDS = 2
POOL = "byhand"
PATH = f"nodePools[{POOL}]"


class CorrectionAnswer(StrEnum):
    """What is answered to a correction that waits."""

    NOTHING = "nothing"
    APPROVED = "approved"
    APPROVED_TOO_EARLY = "approved, and the pool changes before the next comparison"
    APPROVED_TOO_LATE = "the pool changes, and what was shown before is approved"


@dataclass(frozen=True)
class PendingCorrection:
    """A pool that somebody created, and what is answered."""

    cloud: MemoryCloud
    cluster: ClusterId
    answer: CorrectionAnswer


class ApprovedCorrections(ByHand):
    """Creates such pools, answers, and checks what a sweep does; ``acts`` counts the pools."""

    def check(self) -> None:
        """Create pools by hand several times; only what was approved is deleted."""
        for _ in range(ROUNDS):
            waiting = [
                waiting
                for cloud in self._loop.clouds
                for record in cloud.state.clusters()
                for waiting in self._create(cloud, record)
            ]
            self.acts += len(waiting)
            self._after_operations()
            for case in waiting:
                self._is_shown_and_exists(case)
            shown = {case.cluster: self._correction(case) for case in waiting}
            for case in waiting:
                self._change_before(case)
            if any(case.answer is CorrectionAnswer.APPROVED_TOO_LATE for case in waiting):
                self._after_operations()
            for case in waiting:
                self._answer(case, shown[case.cluster])
            self._after_operations()
            for case in waiting:
                self._was_deleted_if_approved(case)
                self._remove(case)
            self._after_operations()

    def _create(self, cloud: MemoryCloud, record: ClusterRecord) -> list[PendingCorrection]:
        """Create a pool with the tags of the first one, where its cluster is Ready."""
        cluster = key_of(record.desired.id)
        live = self._owned(cloud, record)
        ready = record.phase is Phase.READY and not record.job.active
        if not ready or live is None:
            return []
        first = live["properties"]["agentPoolProfiles"][0]
        kept = {key: first[key] for key in ("vmSize", "type", "osType") if key in first}
        tags = {**(first.get("tags") or {}), POOL_TAG: POOL}
        body = {**kept, "mode": "User", "count": 1, "tags": tags}
        with self._changing(cluster):
            cloud.azure.put_pool(cluster, POOL, {"properties": body})
            return [PendingCorrection(cloud, cluster, self._chance.choice([*CorrectionAnswer]))]
        return []

    @contextmanager
    def _changing(self, cluster: ClusterId) -> Iterator[None]:
        self._loop.log("somebody changes the pool %s of %s by hand", POOL, cluster.name)
        with super()._changing(cluster):
            yield

    def _is_shown_and_exists(self, case: PendingCorrection) -> None:
        record = case.cloud.state.cluster(case.cluster.name)
        if record is None or record.phase is not Phase.READY:
            return
        what = f"{case.cluster.name} has a pool that git does not have, and"
        if not self._exists(case):
            raise RuleViolated(RULE, f"{what} it is deleted although nobody approved that")
        shown = {field.path for field in record.divergence.drift.fields} if record.divergence.drift else set()
        if PATH not in shown:
            raise RuleViolated(RULE, f"{what} a sweep does not show it")
        if bool(self._correction(case)) is not (case.cluster.name in CORRECTED):
            raise RuleViolated(
                RULE, f"{what} its delete waits for an approval against its policy, or does not"
            )

    def _correction(self, case: PendingCorrection) -> str:
        """Return what identifies the corrections that wait for an approval."""
        record = case.cloud.state.cluster(case.cluster.name)
        return (
            record.divergence.drift.correction
            if record and record.divergence.drift and record.divergence.drift.to_approve
            else ""
        )

    def _change_before(self, case: PendingCorrection) -> None:
        if case.answer is CorrectionAnswer.APPROVED_TOO_LATE:
            self._scale(case)

    def _answer(self, case: PendingCorrection, shown: str) -> None:
        """Approve what was shown, where the answer is an approval; scale the pool where it is too early."""
        if case.answer is CorrectionAnswer.NOTHING or not shown:
            return
        with self._loop.as_actor(ActingFunction(self._loop.clock())):
            result = approve_correction(case.cluster.name, shown, "operator", case.cloud.ports)
        self._loop.log("the correction of %s is approved: %d", case.cluster.name, result.status)
        if result.ok and case.answer is CorrectionAnswer.APPROVED_TOO_LATE:
            raise RuleViolated(RULE, f"{case.cluster.name}: an approval of what is no longer so counts")
        if case.answer is CorrectionAnswer.APPROVED_TOO_EARLY:
            self._scale(case)

    def _scale(self, case: PendingCorrection) -> None:
        if self._exists(case):
            with self._changing(case.cluster):
                case.cloud.azure.interventions.scale(case.cluster, POOL, 2)

    def _was_deleted_if_approved(self, case: PendingCorrection) -> None:
        record = case.cloud.state.cluster(case.cluster.name)
        if record is None or record.phase is not Phase.READY:
            return
        approved = case.answer is CorrectionAnswer.APPROVED and case.cluster.name in CORRECTED
        if self._exists(case) is approved:
            done = "is not deleted" if approved else "is deleted"
            raise RuleViolated(
                RULE, f"{case.cluster.name}: the pool that git does not have {done}: {case.answer}"
            )

    def _exists(self, case: PendingCorrection) -> bool:
        live: Json | None = self._oracle.live(case.cluster)
        pools = live["properties"]["agentPoolProfiles"] if live is not None and not is_going(live) else ()
        return any(pool["name"] == POOL for pool in pools)

    def _remove(self, case: PendingCorrection) -> None:
        if self._exists(case):
            with self._changing(case.cluster):
                case.cloud.azure.delete_pool(case.cluster, POOL)
