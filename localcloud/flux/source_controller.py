"""The source-controller of the local Flux: its sources, and what was fetched for them.

Source of conditions: ``internal/reconcile`` of ``fluxcd/source-controller`` v1.7.3. What each kind fetches,
and its messages, are in ``sources``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from localcloud.common.clock import in_seconds
from localcloud.flux.flux_conditions import (
    FluxCondition,
    ObjectNotReady,
    condition,
    handled,
    kept,
    with_conditions,
)
from localcloud.flux.notification_controller import ControllerEvent
from localcloud.flux.reconciling import reconcile_due, with_finalizer, without_finalizer
from localcloud.flux.schedule import ReconcileSchedule, seconds_of
from localcloud.flux.sources.bucket_source import BlobError, ListBlobs, fetch_bucket
from localcloud.flux.sources.distribution_client import DistributionClient, Reply
from localcloud.flux.sources.fetched import SourceArtifact, SourceRevision
from localcloud.flux.sources.git_source import GitRef, ReadSource, fetch_repository
from localcloud.flux.sources.oci_source import fetch_artifact
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, Object

__all__ = ["API", "GitRef", "ReadSource", "SourceController", "SourceRevision", "Stores"]

_GROUP = "source.toolkit.fluxcd.io"
API = f"{_GROUP}/v1"
_MANAGER = "source-controller"
_STORED = "ArtifactInStorage"
STORAGE = "http://source-controller.flux-system.svc.cluster.local."


def _no_registry(_host: str, _path: str, _headers: Mapping[str, str]) -> Reply:
    return Reply(404, {}, b"")


def _no_account(endpoint: str, *_: object) -> Mapping[str, Any]:
    raise BlobError(f"there is no storage account {endpoint}")


@dataclass(frozen=True)
class Stores:
    """What is pulled besides git: registries, and the containers of storage accounts."""

    registries: DistributionClient = DistributionClient(_no_registry)  # noqa: RUF009 - it has no state
    blobs: ListBlobs = _no_account


class SourceController:
    """Fetches the GitRepository, OCIRepository and Bucket objects of one cluster."""

    def __init__(
        self,
        world: KubernetesWorld,
        read_source: ReadSource,
        clock: Callable[[], datetime],
        tell: Callable[[ControllerEvent], None] = lambda _: None,
        stores: Stores = Stores(),
    ) -> None:
        self._world, self._clock, self._tell = world, clock, tell
        self._kinds: Mapping[str, Callable[[Object], SourceArtifact]] = {
            "GitRepository": partial(fetch_repository, world, read_source),
            "OCIRepository": partial(fetch_artifact, world, stores.registries),
            "Bucket": partial(fetch_bucket, world, stores.blobs),
        }
        self._artifacts: dict[str, SourceRevision] = {}
        self.schedule = ReconcileSchedule(clock)

    def artifact(self, source: Object) -> SourceRevision | None:
        """Return what was last fetched for a source."""
        return self._artifacts.get(source["metadata"]["uid"])

    def lose_storage(self) -> None:
        """Drop what was fetched: the storage of a controller is an emptyDir of its pod."""
        self._artifacts.clear()

    def reconcile(self) -> None:
        """Reconcile every source that is due."""
        for name in self._kinds:
            reconcile_due(self._world, (API, name), self.schedule, self._one)

    def _one(self, at: At, repository: Object) -> None:
        metadata = repository["metadata"]
        if "deletionTimestamp" in metadata:
            self._artifacts.pop(metadata["uid"], None)
            self.schedule.forget(metadata["uid"])
            without_finalizer(self._world, at, repository, _MANAGER)
            return
        repository = with_finalizer(self._world, at, repository, _MANAGER)
        spec = repository.get("spec") or {}
        interval = seconds_of(spec, "interval", 60.0)
        status = dict(repository.get("status") or {})
        if spec.get("suspend"):
            self.schedule.ran(repository, interval)
            self._world.set_status(at, handled(repository, status), manager=_MANAGER)
            return
        known = (status.get("artifact") or {}).get("revision")
        if metadata["uid"] not in self._artifacts:
            status = _without_artifact(status)
            repository = {**repository, "status": status}
        try:
            found = self._fetched(repository, status, known)
            self.schedule.ran(repository, interval)
        except ObjectNotReady as problem:
            self.schedule.failed(repository)
            found = self._failed(repository, problem)
            self._tell(ControllerEvent(repository, "error", problem.reason, problem.message, _MANAGER))
        whole = with_conditions(repository, status, found, self._clock())
        self._world.set_status(at, whole, manager=_MANAGER)

    def _fetched(self, source: Object, status: dict[str, Any], known: str | None) -> Sequence[FluxCondition]:
        """Fetch a source into its status; ``known`` is the revision of the artifact that it had."""
        fetched = self._kinds[source["kind"]](source)
        metadata = source["metadata"]
        self._artifacts[metadata["uid"]] = fetched.source
        if (status.get("artifact") or {}).get("revision") != fetched.revision:
            path = (
                f"{source['kind'].lower()}/{metadata['namespace']}/{metadata['name']}/{fetched.stem}.tar.gz"
            )
            status["artifact"] = {
                "digest": f"sha256:{hashlib.sha256(fetched.source.revision.encode()).hexdigest()}",
                "lastUpdateTime": in_seconds(self._clock()),
                "path": path,
                "revision": fetched.revision,
                "size": sum(len(content) for content in fetched.source.files().values()),
                "url": f"{STORAGE}/{path}",
                **({"metadata": dict(fetched.metadata)} if fetched.metadata else {}),
            }
        if fetched.revision != known:
            about = {f"{_GROUP}/revision": fetched.revision}
            self._tell(ControllerEvent(source, "info", "NewArtifact", fetched.event, _MANAGER, about))
        return [
            FluxCondition("Ready", "True", "Succeeded", fetched.stored),
            FluxCondition(_STORED, "True", "Succeeded", fetched.stored),
        ]

    def _failed(self, repository: Object, problem: ObjectNotReady) -> Sequence[FluxCondition]:
        stored = condition(repository, _STORED)
        observed = (repository.get("status") or {}).get("observedGeneration", -1)
        generation = repository["metadata"]["generation"]
        progress = "reconciliation in progress" if stored else "building artifact"
        if stored and observed != generation:
            progress = f"processing object: new generation {observed} -> {generation}"
        last = [FluxCondition("FetchFailed", "True", problem.reason, problem.message)]
        if stored:  # conditions of the newest generation first, and in the order of their types
            last.insert(int(stored["observedGeneration"] != generation), kept(stored))
        return [
            FluxCondition("Reconciling", "True", "ProgressingWithRetry", progress),
            FluxCondition("Ready", "False", problem.reason, problem.message),
            *last,
        ]


def _without_artifact(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a source whose artifact is not in the storage (``reconcileStorage``)."""
    conditions = [item for item in status.get("conditions") or () if item["type"] != _STORED]
    return {**{key: status[key] for key in status if key != "artifact"}, "conditions": conditions}
