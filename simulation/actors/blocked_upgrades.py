"""People who keep a cluster from an upgrade, in fleets whose stages wait for clusters that are ready.

When the faults have ended, a cluster of a stage gets what stands in the way: a pod without a controller, in
some seeds with a budget that allows no eviction, a client of an API that the next version does not have, or a
Kustomization that has applied one. A commit upgrades every cluster and gives that stage the gate. While it is
there, no cluster of the stage may begin; once it is away, all must have the commit, without another.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from localcloud.kubernetes.world.object_store import At
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.record import ClusterRecord
from shared.json_tree import Json
from shared.kubernetes.flux_objects import KUSTOMIZATION
from shared.kubernetes.readiness.observation import METRIC
from shared.kubernetes_versions import runs_newer
from simulation.actors.once_more import OnceMore
from simulation.desired_state import VERSIONS
from simulation.event_loop import EventLoop
from simulation.operators import Operators
from simulation.rule import RuleViolated
from simulation.staging import StagedGroup, StagedStage

SHARE, BUDGETS = 0.6, 0.5
ROUNDS = 3
NAME, NAMESPACE = "in-the-way", "default"
POD, CLIENT, APPLIED = "a pod", "a client of a removed API", "an object of a removed API"
ENTRY = {"id": f"_{NAME}_storage.k8s.io_VolumeAttributesClass", "v": "v1alpha1"}
"""The entry of an inventory in a version that no version of the simulation serves."""


class BlockedUpgrades(OnceMore):
    """They act on one fleet, with random streams of their own; ``acts`` counts what was in the way."""

    def __init__(
        self, seed: int, everybody: Sequence[Operators], loop: EventLoop, replaced: Mapping[str, int]
    ) -> None:
        super().__init__(f"{seed} blocked upgrades", SHARE, everybody, loop, replaced)
        self.what = random.Random(f"{seed} what is in the way").choice((POD, CLIENT, APPLIED))  # noqa: S311

    def check(self, resolve: Callable[[], None]) -> None:
        """Put something in the way of an upgrade, and take it away; raise RuleViolated."""
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
        """Return a stage of one or two clusters that can be upgraded, None where there is none.

        One that runs more than git has already is not upgraded.
        """
        able = [
            record.name
            for record in records
            if _newer(spec := record.document["spec"]) is not None
            and not runs_newer(spec["kubernetesVersion"], record.running.kubernetes_version)
        ]
        self._chance.shuffle(able)
        own = able[: self._chance.randint(1, 2)]
        return StagedStage("first", tuple(own), (StagedGroup(0, 1, 1),), ready=True) if own else None

    def _put_in_the_way(self, operators: Operators, record: ClusterRecord) -> None:
        self._loop.log("%s: %s is in the way of an upgrade of %s", operators.fleet, self.what, record.name)
        if self.what == POD:
            self._put_pod(operators, record)
            return
        world = operators.cloud.kubernetes.world(record.desired.id)
        if world is None:
            return
        if self.what == CLIENT:
            release = f'removed_release="{_newer(record.document["spec"])}"'
            labels = f'group="{NAME}",{release},resource="things",subresource="",version="v1beta1"'
            world.metrics.append(f"{METRIC}{{{labels}}} 1")
            return
        kind = world.kind(KUSTOMIZATION.api_version, KUSTOMIZATION.kind)
        if kind is not None:  # a cluster that Flux was not installed on yet has nothing in the way
            spec = {"interval": "1h", "prune": False, "suspend": True, "path": "./"}
            source = {"kind": "GitRepository", "name": NAME}
            body = _object(KUSTOMIZATION.api_version, KUSTOMIZATION.kind, {}, {**spec, "sourceRef": source})
            operators.cloud.kubernetes.connect(record.desired.id).apply(body)
            status = {"inventory": {"entries": [ENTRY]}}
            world.set_status(At(kind, NAME, NAMESPACE), status, manager=NAME)

    def _put_pod(self, operators: Operators, record: ClusterRecord) -> None:
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

    def _tidy(self, operators: Operators, record: ClusterRecord) -> None:
        """Delete what people run on a cluster; its API server starts again, and has counted nothing since."""
        api = operators.cloud.kubernetes.connect(record.desired.id)
        world = operators.cloud.kubernetes.world(record.desired.id)
        if world is not None:
            world.metrics.clear()
        flux = (KUSTOMIZATION.api_version, KUSTOMIZATION.kind)
        for kind in (("v1", "Pod"), ("policy/v1", "PodDisruptionBudget"), flux):
            if world is None or world.kind(*kind) is None:
                continue
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
                    what = (
                        f"{record.name} is upgraded, and {self.what} is in the way in its stage {stage.name}"
                    )
                    raise RuleViolated("rollout readiness", f"{operators.fleet}: {what}")
            resolve()


def _newer(spec: Json) -> str | None:
    version = str(spec.get("kubernetesVersion"))
    return next((newer for newer in VERSIONS if newer > version), None)


def _object(api_version: str, kind: str, metadata: Json, spec: dict[str, Any]) -> Json:
    metadata = {"name": NAME, "namespace": NAMESPACE, **metadata}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
