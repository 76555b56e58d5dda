"""The local Flux: it fetches the sources of a cluster, applies its Kustomization objects, carries out its
HelmRelease objects, and posts what it did to the Providers of ``generic-hmac``. The Flux Operator installs it
where a FluxInstance asks for that.

An object is reconciled when it, a request or its source changed, and after its interval. A controller runs
only while its Deployment (``source-controller``, ``kustomize-controller``, ``helm-controller``) is available
in the namespace ``flux-system``: without the components, nothing is applied, as in a real cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from localcloud.flux.helm.helm_charts import HelmChartController
from localcloud.flux.helm.helm_controller import HelmController
from localcloud.flux.kustomize.kustomize_controller import KustomizeController
from localcloud.flux.notification_controller import NotificationController, Post, nowhere
from localcloud.flux.operator_controller import OperatorController
from localcloud.flux.schedule import ReconcileSchedule
from localcloud.flux.source_controller import GitRef, ReadSource, SourceController, SourceRevision, Stores
from localcloud.kubernetes.world.kinds import DEPLOYMENT
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At

__all__ = ["FluxControllers", "FluxOfClusters", "GitRef", "ReadSource", "SourceRevision", "Stores"]

_NAMESPACE = "flux-system"
_COMMITS = 16
"""So many commits have their files in memory: those that stages of a rollout have at one time."""


class _Controller(Protocol):
    schedule: ReconcileSchedule

    def reconcile(self) -> None: ...


class FluxControllers:
    """The Flux controllers of one cluster; ``read_source`` reads git, ``stores`` everything else."""

    def __init__(
        self,
        world: KubernetesWorld,
        read_source: ReadSource,
        clock: Callable[[], datetime],
        post: Post = nowhere,
        stores: Stores = Stores(),  # noqa: B008 - frozen
    ) -> None:
        self._world = world
        self._notifications = NotificationController(world, post, clock)
        tell = self._notifications.take
        self._operator = OperatorController(world, clock)
        self._sources = SourceController(world, read_source, clock, tell, stores)
        self._charts = HelmChartController(world, self._sources.artifact, clock)
        self._kustomizations = KustomizeController(world, self._sources.artifact, clock, tell)
        self._releases = HelmController(world, self._charts, clock, tell)

    def reconcile(self) -> None:
        """Reconcile every object of Flux that is due."""
        for controller, name in self._controllers():
            if self._runs(name):
                controller.reconcile()
            else:
                controller.schedule.restart()
        if not self._runs("source-controller"):
            self._sources.lose_storage()
        self._notifications.reconcile(runs=self._runs("notification-controller"))

    def due(self) -> datetime | None:
        """Return when the next object is due, None when nothing is."""
        times = [controller.schedule.next() for controller, _ in self._controllers()]
        return min((time for time in times if time is not None), default=None)

    def _controllers(self) -> Iterator[tuple[_Controller, str]]:
        yield self._operator, "flux-operator"
        yield self._sources, "source-controller"
        yield self._charts, "source-controller"
        yield self._kustomizations, "kustomize-controller"
        yield self._releases, "helm-controller"

    def _runs(self, name: str) -> bool:
        found = self._world.find(At(DEPLOYMENT, name, _NAMESPACE))
        return found is not None and bool((found.get("status") or {}).get("availableReplicas"))


class FluxOfClusters:
    """Flux in every cluster: it reads a ref once a round, and the files of a commit once."""

    def __init__(
        self,
        read_source: ReadSource,
        clock: Callable[[], datetime],
        post: Post = nowhere,
        stores: Stores = Stores(),  # noqa: B008 - frozen
    ) -> None:
        self._read, self._clock, self._post, self._stores = read_source, clock, post, stores
        self._round: dict[tuple[str, GitRef], SourceRevision | None] = {}
        self._files: dict[tuple[str, str], Mapping[str, bytes]] = {}

    def install(self, world: KubernetesWorld) -> FluxControllers:
        """Return the controllers of a cluster."""
        return FluxControllers(world, self.source, self._clock, self._post, self._stores)

    def refresh(self) -> None:
        """Begin a round, in which every ref is read again."""
        self._round = {}

    def source(self, url: str, ref: GitRef) -> SourceRevision | None:
        """Return what a ref led to when this round first read it."""
        key = (url, ref)
        if key not in self._round:
            self._round[key] = self._cached(url, self._read(url, ref))
        return self._round[key]

    def _cached(self, url: str, source: SourceRevision | None) -> SourceRevision | None:
        if source is None:
            return None

        def files() -> Mapping[str, bytes]:
            key = (url, source.revision)
            content = self._files.pop(key, None)
            if content is None:
                content = source.files()
            self._files[key] = content  # as the newest
            for old in list(self._files)[:-_COMMITS]:
                del self._files[old]
            return content

        return replace(source, files=files)
