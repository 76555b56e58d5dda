"""What a scheduler, kubelets and the pod garbage collector would do, for a real API server.

- A pod without a node is bound to one that is not cordoned, and reports no other state than
  Ready. Taints and resources do not count.
- A pod on a node is Running and Ready when its images exist, and when the program that it stands for is
  ready; an image whose tag ends with ``-missing`` does not exist.
- A pod that is deleted ends at once, and so do the pods of a node that no longer exists.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import UTC
from typing import Any, Protocol

import httpx

from localcloud.common.control_plane import KubernetesNode
from localcloud.kubernetes.world.kinds import NODE, POD
from localcloud.kubernetes.world.node_objects import mirror_nodes
from localcloud.kubernetes.world.object_store import At, Object, WriteMode
from tests.authority.real_world import RealWorld, Refused

_logger = logging.getLogger(__name__)
_INTERVAL_SECONDS = 0.1
_STATUS = WriteMode(manager="kubelet", subresource="status")


class Program(Protocol):
    """What runs in a pod."""

    def ready(self) -> bool:
        """Return whether the pod's readiness probe succeeds; raise when the program ended."""
        ...

    def stop(self) -> None:
        """End the program."""
        ...


def no_program(_pod: Object) -> Program | None:
    """Return nothing: the pod is Ready once it is bound."""
    return None


class NodeAgent:
    """Runs the pods of one cluster in a thread; ``program`` returns what a pod stands for."""

    def __init__(self, world: RealWorld, *, program: Callable[[Object], Program | None] = no_program) -> None:
        self._world, self._program = world, program
        self._running: dict[str, Program] = {}
        self._nodes: Sequence[KubernetesNode] = ()
        self._mirrored: Sequence[KubernetesNode] = self._nodes
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="node-agent")
        self._thread.start()

    def set_nodes(self, nodes: Sequence[KubernetesNode]) -> None:
        """Set the nodes that the cluster has from now on; without a call, nodes are as others make them."""
        self._nodes = list(nodes)

    def close(self) -> None:
        """Stop the thread and the programs."""
        self._closing.set()
        self._thread.join(10)
        for program in self._running.values():
            program.stop()

    def _run(self) -> None:
        while not self._closing.wait(_INTERVAL_SECONDS):
            try:
                self._round()
            except (Refused, httpx.HTTPError) as error:  # the API server is stopped, or was faster
                _logger.info("a round of the nodes failed, and is tried again: %s", error)
            except Exception:
                _logger.exception("a round of the nodes failed")

    def _round(self) -> None:
        wanted = self._nodes
        if wanted is not self._mirrored:
            mirror_nodes(self._world, wanted)
            self._mirrored = wanted
        pods = self._world.list(POD)[0]  # first, so that the node of every pod is in the other list
        nodes = {node["metadata"]["name"]: node for node in self._world.list(NODE)[0]}
        gone = set(self._running) - {pod["metadata"]["uid"] for pod in pods}
        for uid in gone:
            self._running.pop(uid).stop()
        for pod in pods:
            try:
                self._one(pod, nodes)
            except Refused as error:
                if error.status not in (404, 409):
                    raise

    def _one(self, pod: Object, nodes: dict[str, Object]) -> None:
        metadata, on = pod["metadata"], pod["spec"].get("nodeName")
        if "deletionTimestamp" in metadata or (on and on not in nodes):
            self._end(pod)
        elif on:
            self._keep(pod)
        else:
            free = [name for name, node in nodes.items() if _accepts_pods(node)]
            if free:
                self._bind(pod, free[0])

    def _end(self, pod: Object) -> None:
        program = self._running.pop(pod["metadata"]["uid"], None)
        if program is not None:
            program.stop()
        self._world.delete(_at(pod), grace_seconds=0)

    def _bind(self, pod: Object, node: str) -> None:
        metadata = pod["metadata"]
        where = {"name": metadata["name"], "namespace": metadata["namespace"]}
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": where, "target": target}
        path = f"/api/v1/namespaces/{where['namespace']}/pods/{where['name']}/binding"
        self._world.call("POST", path, binding)

    def _keep(self, pod: Object) -> None:
        """Start what a new pod stands for, and report a change of its readiness."""
        missing = [c["image"] for c in pod["spec"]["containers"] if c["image"].endswith("-missing")]
        status = pod.get("status") or {}
        if missing:
            if not status.get("containerStatuses"):
                self._report(pod, _waiting(pod, missing[0], self._now()))
            return
        uid = pod["metadata"]["uid"]
        if status.get("phase") == "Pending" and uid not in self._running:
            program = self._program(pod)
            if program is None:
                self._report(pod, _running(pod, self._now(), ready=True))
                return
            self._running[uid] = program
        if uid in self._running:
            ready = self._running[uid].ready()
            if status.get("phase") == "Pending" or ready != _is_ready(pod):
                self._report(pod, _running(pod, self._now(), ready=ready))

    def _report(self, pod: Object, status: dict[str, Any]) -> None:
        self._world.replace(_at(pod), {**pod, "status": {**(pod.get("status") or {}), **status}}, _STATUS)

    def _now(self) -> str:
        return self._world.clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _at(pod: Object) -> At:
    return At(POD, pod["metadata"]["name"], pod["metadata"]["namespace"])


def _accepts_pods(node: Object) -> bool:
    reported = (node.get("status") or {}).get("conditions")
    return not node["spec"].get("unschedulable") and (not reported or _is_ready(node))


def _is_ready(found: Object) -> bool:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def _running(pod: Object, now: str, *, ready: bool) -> dict[str, Any]:
    container = {"ready": ready, "started": True, "restartCount": 0, "state": {"running": {"startedAt": now}}}
    return _status(pod, now, "Running", container, ready=ready)


def _waiting(pod: Object, image: str, now: str) -> dict[str, Any]:
    reason = {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{image}"'}
    container = {"ready": False, "started": False, "restartCount": 0, "state": {"waiting": reason}}
    return _status(pod, now, "Pending", container, ready=False)


def _status(pod: Object, now: str, phase: str, container: dict[str, Any], *, ready: bool) -> dict[str, Any]:
    state = "True" if ready else "False"
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": now},
        {"type": "Initialized", "status": "True", "lastTransitionTime": now},
        {"type": "ContainersReady", "status": state, "lastTransitionTime": now},
        {"type": "Ready", "status": state, "lastTransitionTime": now},
    ]
    containers = [
        {"name": c["name"], "image": c["image"], "imageID": "", **container}
        for c in pod["spec"]["containers"]
    ]
    return {"phase": phase, "conditions": conditions, "containerStatuses": containers, "startTime": now}
