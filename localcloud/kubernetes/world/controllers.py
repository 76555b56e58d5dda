"""The built-in controllers of a cluster: CRDs, deletes, Deployments, pods on nodes, disruption budgets.

Level-triggered: ``run`` reads the objects of a controller after a write of a kind that it watches, and when
something is due by the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from localcloud.common.clock import in_seconds
from localcloud.kubernetes.world.deletion.eviction import budget_status
from localcloud.kubernetes.world.deletion.garbage_collector import CollectorApi, collect
from localcloud.kubernetes.world.deletion.namespace_conditions import terminating_status
from localcloud.kubernetes.world.kinds import (
    BUDGET,
    CRD,
    DEPLOYMENT,
    NAMESPACE,
    NODE,
    POD,
    REPLICA_SET,
    SERVICE_ACCOUNT,
    STATEFUL_SET,
    ResourceKind,
    kinds_of,
)
from localcloud.kubernetes.world.managed_by_arm import NAMESPACE_CONTROLLER
from localcloud.kubernetes.world.object_store import At, Deletion, Object, WriteMode
from localcloud.kubernetes.world.refusals import RefusedWrites
from localcloud.kubernetes.world.rollouts import lacks_image, rolled_out, shows_same, stuck, without_pods
from localcloud.kubernetes.world.writes.patches import MERGE

_CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_MANAGER = "kube-controller-manager"
_PROGRESS_SECONDS = 600


@dataclass(frozen=True)
class Delays:
    """Seconds until a CRD is established, a Deployment's new spec available, and a deleted pod ended."""

    crd: float = 0.2
    rollout: float = 0.0
    termination: float = 0.0


class ControllerApi(CollectorApi, Protocol):
    """What the controllers need of the API that they work on, besides what the collector needs."""

    clock: Callable[[], datetime]
    missing_images: set[str]
    refused: list[RefusedWrites]

    @property
    def version(self) -> int:
        """Return the version of the newest write."""
        ...

    def written(self, kind: ResourceKind) -> int:
        """Return the version of the newest write of a kind, 0 for none."""
        ...

    def find(self, at: At) -> Object | None:
        """Return an object, or None."""
        ...

    def create(self, kind: ResourceKind, namespace: str, body: Any, write: WriteMode) -> Object:
        """Create an object."""
        ...

    def set_status(self, at: At, status: Mapping[str, Any], *, manager: str) -> None:
        """Write a status."""
        ...

    def drop(self, at: At) -> None:
        """Remove an object whatever its finalizers."""
        ...


class Controllers:
    """The controllers of one world; called only under its lock."""

    def __init__(self, world: ControllerApi, delays: Delays) -> None:
        self._world, self._delays = world, delays
        self._seen = 0
        self._next: datetime | None = None
        self._since: dict[tuple[str, int], datetime] = {}
        self._served: dict[str, Any] = {}
        self._failing: tuple[set[str], list[RefusedWrites]] = (set(), [])
        self._busy = self._unsettled = False
        self._watching: Sequence[tuple[Sequence[ResourceKind], Callable[[], None]]] = (
            ((CRD,), self._crds),
            ((NAMESPACE, SERVICE_ACCOUNT), self._namespaces),
            ((DEPLOYMENT,), self._deployments),
            ((POD, NODE), self._pods),
            ((BUDGET, POD, DEPLOYMENT, REPLICA_SET, STATEFUL_SET), self._budgets),
        )

    def run(self) -> None:
        """Run the controllers until nothing changes any more."""
        if self._busy:
            return
        failing = (set(self._world.missing_images), list(self._world.refused))
        due = (self._next is not None and self._world.clock() >= self._next) or self._failing != failing
        if not due and self._seen == self._world.version:
            return
        self._busy, self._failing = True, failing
        try:
            while due or self._seen != self._world.version:
                self._run_once(everything=due or self._unsettled)
                due = False
                collect(self._world)
        finally:
            self._busy = False

    def _run_once(self, *, everything: bool) -> None:
        """Run the controllers that watch a kind that was written since, or all of them.

        ``_unsettled`` is set again by what waits for the objects of any kind.
        """
        since, self._seen = self._seen, self._world.version
        if everything:
            self._next, self._unsettled = None, False
        for kinds, run in self._watching:
            if everything or any(self._world.written(kind) > since for kind in kinds):
                run()

    def due(self) -> datetime | None:
        """Return when to run again although nothing is written, None: only after a write."""
        return self._next

    def _waited(self, value: Object, seconds: float) -> bool:
        """Return whether so many seconds went by since this generation of the object was first seen."""
        metadata, now = value["metadata"], self._world.clock()
        since = self._since.setdefault((metadata["uid"], metadata.get("generation", 0)), now)
        due = since + timedelta(seconds=seconds)
        if now >= due:
            return True
        self._next = due if self._next is None else min(due, self._next)
        return False

    def _crds(self) -> None:
        crds = {crd["metadata"]["name"]: crd for crd in self._all(CRD)}
        for name in self._served.keys() - crds.keys():
            del self._served[name]
            self._world.kinds.withdraw(name)
        for name, crd in crds.items():
            if "deletionTimestamp" in crd["metadata"]:
                self._unsettled = True
                self._empty_crd(crd)
            elif not _has_condition(crd, "Established"):
                self._establish(crd)
            elif self._served.get(name) is not crd["spec"]:
                self._served[name] = crd["spec"]
                self._world.kinds.serve(crd)
                self._remember_storage(crd)

    def _remember_storage(self, crd: Object) -> None:
        """Add the storage version to those in which objects may be stored."""
        stored = list(crd["status"].get("storedVersions") or ())
        new = [version["name"] for version in crd["spec"]["versions"] if version.get("storage")]
        missing = [name for name in new if name not in stored]
        if missing:
            status = {**crd["status"], "storedVersions": [*stored, *missing]}
            self._world.set_status(At(CRD, crd["metadata"]["name"]), status, manager="kube-apiserver")

    def _establish(self, crd: Object) -> None:
        if not self._waited(crd, self._delays.crd):
            return
        at = At(CRD, crd["metadata"]["name"])
        finalizers = [*(crd["metadata"].get("finalizers") or ()), _CLEANUP]
        patch = {"metadata": {"finalizers": finalizers}}
        self._world.patch(at, patch, MERGE, WriteMode(manager="kube-apiserver"))
        spec = crd["spec"]
        status = {
            "acceptedNames": spec["names"],
            "storedVersions": [version["name"] for version in spec["versions"] if version.get("storage")],
            "conditions": [
                self._condition("NamesAccepted", "NoConflicts", "no conflicts found"),
                self._condition(
                    "Established", "InitialNamesAccepted", "the initial names have been accepted"
                ),
            ],
        }
        self._world.set_status(at, status, manager="kube-apiserver")

    def _empty_crd(self, crd: Object) -> None:
        kinds = kinds_of(crd)
        left = self._deleted(kinds[:1])
        if not left:
            remaining = [item for item in crd["metadata"].get("finalizers") or () if item != _CLEANUP]
            patch = {"metadata": {"finalizers": remaining}}
            self._world.patch(At(CRD, crd["metadata"]["name"]), patch, MERGE, WriteMode(manager=_MANAGER))

    def _namespaces(self) -> None:
        for namespace in self._all(NAMESPACE):
            name = namespace["metadata"]["name"]
            at = At(NAMESPACE, name)
            if "deletionTimestamp" not in namespace["metadata"]:
                if not namespace.get("status"):
                    self._world.set_status(at, {"phase": "Active"}, manager=_MANAGER)
                if self._world.find(At(SERVICE_ACCOUNT, "default", name)) is None:
                    body = {"metadata": {"name": "default"}}
                    self._world.create(SERVICE_ACCOUNT, name, body, WriteMode(manager=_MANAGER))
                continue
            self._unsettled = True
            kinds = {kind.storage: kind for kind in self._world.kinds.all() if kind.namespaced}
            if self._deleted(tuple(kinds.values()), name):
                left = [(kind, value) for kind in kinds.values() for value in self._all(kind, name)]
                status = terminating_status(namespace["metadata"]["deletionTimestamp"], left)
                self._world.set_status(at, status, manager=_MANAGER)
            else:
                self._world.drop(at)

    def _deleted(self, kinds: tuple[ResourceKind, ...], namespace: str = "") -> bool:
        """Delete the objects of these kinds; return whether some still exist."""
        for kind in kinds:
            for value in self._all(kind, namespace):
                metadata = value["metadata"]
                at = At(kind, metadata["name"], metadata.get("namespace", ""))
                self._world.delete(at, Deletion(manager=NAMESPACE_CONTROLLER))
        return any(self._all(kind, namespace) for kind in kinds)

    def _deployments(self) -> None:
        for value in self._all(DEPLOYMENT):
            if not self._waited(value, self._delays.rollout):
                continue
            pod = At(POD, f"{value['metadata']['name']}-x", value["metadata"]["namespace"])
            refused = next((rule for rule in self._world.refused if rule.refuses(pod)), None)
            if refused is not None:
                status = without_pods(value, self._now(), str(refused.error(pod)))
            elif lacks_image(value, self._world.missing_images):
                deadline = float(value["spec"].get("progressDeadlineSeconds") or _PROGRESS_SECONDS)
                status = stuck(value, self._now(), late=self._waited(value, deadline))
            else:
                status = rolled_out(value, self._now())
            if not shows_same(value, status):
                at = At(DEPLOYMENT, value["metadata"]["name"], value["metadata"]["namespace"])
                self._world.set_status(at, status, manager=_MANAGER)

    def _pods(self) -> None:
        """Run the pods that are bound to a node; remove those whose node no longer exists."""
        pods = [pod for pod in self._all(POD) if (pod.get("spec") or {}).get("nodeName")]
        nodes = {node["metadata"]["name"] for node in self._all(NODE)} if pods else set()
        for pod in pods:
            at = At(POD, pod["metadata"]["name"], pod["metadata"]["namespace"])
            if pod["spec"]["nodeName"] not in nodes or self._has_ended(pod):
                self._world.delete(at, Deletion(grace=0))
            elif pod["status"].get("phase") == "Pending":
                ready = self._condition("Ready", "PodReady", "the pod is ready")
                self._world.set_status(at, {"phase": "Running", "conditions": [ready]}, manager="kubelet")

    def _has_ended(self, pod: Object) -> bool:
        """Return whether a deleted pod has used its grace."""
        return "deletionTimestamp" in pod["metadata"] and self._waited(pod, self._delays.termination)

    def _budgets(self) -> None:
        for budget in self._all(BUDGET):
            name, namespace = budget["metadata"]["name"], budget["metadata"]["namespace"]
            status = budget_status(budget, self._all(POD, namespace), self._scale_of)
            self._world.set_status(At(BUDGET, name, namespace), status, manager=_MANAGER)

    def _scale_of(self, owner: Mapping[str, Any], namespace: str) -> int | None:
        """Return the replicas of a pod's controller, or of the Deployment above it."""
        kind = {kind.kind: kind for kind in (REPLICA_SET, STATEFUL_SET, DEPLOYMENT)}.get(owner["kind"])
        found = None if kind is None else self._world.find(At(kind, owner["name"], namespace))
        if found is None:
            return None
        for above in found["metadata"].get("ownerReferences") or ():
            if above.get("controller"):
                return self._scale_of(above, namespace)
        return int((found.get("spec") or {}).get("replicas", 1))

    def _condition(self, sort: str, reason: str, message: str) -> dict[str, str]:
        found = {"type": sort, "status": "True", "reason": reason, "message": message}
        return {**found, "lastTransitionTime": self._now()}

    def _now(self) -> str:
        return in_seconds(self._world.clock())

    def _all(self, kind: ResourceKind, namespace: str = "") -> list[Object]:
        return list(self._world.list(kind, namespace)[0])


def _has_condition(value: Object, sort: str) -> bool:
    conditions = (value.get("status") or {}).get("conditions") or ()
    return any(item["type"] == sort and item["status"] == "True" for item in conditions)
