"""People whose pods keep a node from an upgrade, in fleets whose stages wait for clusters that are ready.

When the faults have ended, a pod without a controller is put on a cluster of a stage, in some seeds with a
budget that allows no eviction, and a commit upgrades every cluster and gives that stage the gate. While the
pod is there, no cluster of the stage may begin; once it is away, all must have the commit, without another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from shared.cluster.failures.errors import ReconcileError
from shared.cluster.record import ClusterRecord
from shared.json_tree import Json
from simulation.actors.once_more import OnceMore
from simulation.desired_state import VERSIONS
from simulation.event_loop import EventLoop
from simulation.operators import Operators
from simulation.rule import RuleViolated
from simulation.staging import StagedGroup, StagedStage

SHARE, BUDGETS = 0.6, 0.5
ROUNDS = 3
NAME, NAMESPACE = "in-the-way", "default"


class BlockedUpgrades(OnceMore):
    """They act on one fleet, with a random stream of their own; ``acts`` counts the pods."""

    def __init__(
        self, seed: int, everybody: Sequence[Operators], loop: EventLoop, replaced: Mapping[str, int]
    ) -> None:
        super().__init__(f"{seed} blocked upgrades", SHARE, everybody, loop, replaced)

    def check(self, resolve: Callable[[], None]) -> None:
        """Put a pod in the way of an upgrade, and take it away; raise RuleViolated."""
        operators = self._chance.choice(self._everybody)
        records = [*operators.cloud.state.clusters()]
        settled = records and all(self._is_as_asked(operators, record) for record in records)
        stage = self._stage(records)
        if not self._acting or self._replaced[operators.fleet] or not settled or stage is None:
            return
        blocked = next(record for record in records if record.name in stage.clusters)
        with suppress(ReconcileError):  # a cluster that nobody enters
            for record in records:
                self._tidy(operators, record)
            self._put_in_the_way(operators, blocked)
            self.acts += 1
            self._upgrade_all(operators, stage)
            self._stays(operators, records, stage, resolve)
            self._tidy(operators, blocked)
            self._let_go_on(resolve, lambda: not self._waiting(operators, records))
            if self._waiting(operators, records) and not self._has_failed(operators):
                what = f"{blocked.name} has nothing in its way any more, and the upgrade does not go on"
                raise RuleViolated("rollout readiness", f"{operators.fleet}: {what}")

    def _stage(self, records: Sequence[ClusterRecord]) -> StagedStage | None:
        """Return a stage of one or two clusters that can be upgraded, None where there is none."""
        able = [record.name for record in records if _newer(record.document["spec"]) is not None]
        self._chance.shuffle(able)
        own = able[: self._chance.randint(1, 2)]
        return StagedStage("first", tuple(own), (StagedGroup(0, 1, 1),), ready=True) if own else None

    def _put_in_the_way(self, operators: Operators, record: ClusterRecord) -> None:
        api = operators.cloud.kubernetes.connect(record.desired.id)
        node = str(api.list("v1", "Node")[0]["metadata"]["name"])
        labels = {"labels": {"app": NAME}}
        container = {"name": "web", "image": "web:1"}
        api.apply(_object("v1", "Pod", labels, {"nodeName": node, "containers": [container]}))
        if self._chance.random() < BUDGETS:
            selector = {"matchLabels": {"app": NAME}}
            api.apply(
                _object("policy/v1", "PodDisruptionBudget", {}, {"selector": selector, "minAvailable": 1})
            )
        self._loop.log("%s: a pod is in the way of an upgrade of %s", operators.fleet, record.name)

    def _tidy(self, operators: Operators, record: ClusterRecord) -> None:
        """Delete the pods and budgets that people run on a cluster."""
        api = operators.cloud.kubernetes.connect(record.desired.id)
        for kind in (("v1", "Pod"), ("policy/v1", "PodDisruptionBudget")):
            for found in api.list(*kind):
                if found["metadata"]["namespace"] == NAMESPACE:
                    api.delete(found)
        self._loop.log("%s: nothing is in the way of an upgrade of %s", operators.fleet, record.name)

    def _upgrade_all(self, operators: Operators, waiting: StagedStage) -> None:
        desired = operators.now
        for cluster in desired.clusters.values():
            newer = _newer({"kubernetesVersion": cluster.version})
            desired = desired.with_cluster(cluster.without_rollbacks(newer) if newer else cluster)
        operators.push(replace(desired, staging=(waiting,), selectable=(), final=None, trailer=""))

    def _stays(
        self,
        operators: Operators,
        before: Sequence[ClusterRecord],
        stage: StagedStage,
        resolve: Callable[[], None],
    ) -> None:
        """Let the fleet go on for hours, and check that no cluster of the stage begins."""
        own = [record for record in before if record.name in stage.clusters]
        for _ in range(ROUNDS):
            self._idle()
            rollout = operators.cloud.state.rollout(operators.history.head_line[-1])
            if rollout is not None and rollout.people.overridden:
                return
            for record in own:
                now = operators.cloud.state.cluster(record.name)
                if now is not None and now.generation > record.generation:
                    what = f"{record.name} is upgraded, and a pod is in the way in its stage {stage.name}"
                    raise RuleViolated("rollout readiness", f"{operators.fleet}: {what}")
            resolve()


def _newer(spec: Json) -> str | None:
    version = str(spec.get("kubernetesVersion"))
    return next((newer for newer in VERSIONS if newer > version), None)


def _object(api_version: str, kind: str, metadata: Json, spec: dict[str, Any]) -> Json:
    metadata = {"name": NAME, "namespace": NAMESPACE, **metadata}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
