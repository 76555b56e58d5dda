"""A small Flux: it fetches GitRepository objects and applies Kustomization objects of one cluster.

Level-triggered: every ``reconcile`` looks at all of them, and an unchanged one costs nothing. Nothing
happens unless the Deployments ``source-controller`` and ``kustomize-controller`` are available in the
namespace ``flux-system``, so that installing the components matters here as it does in a real cluster.
Unlike Flux it looks at the repository on every call, whatever ``spec.interval`` says.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from localcloud.flux.kustomize_controller import KustomizeController
from localcloud.flux.source_controller import ReadSource, Source, SourceController
from localcloud.kubernetes.world.kinds import DEPLOYMENT
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_requests import At

__all__ = ["Flux", "ReadSource", "Source"]

_NAMESPACE = "flux-system"


class Flux:
    """The Flux controllers of one cluster; ``read_source`` reads the git repository."""

    def __init__(
        self, world: KubernetesWorld, read_source: ReadSource, clock: Callable[[], datetime]
    ) -> None:
        self._world = world
        self._sources = SourceController(world, read_source, clock)
        self._kustomizations = KustomizeController(world, self._sources.artifact, clock)

    def reconcile(self) -> None:
        """Bring every GitRepository and Kustomization one round further; call it again for more."""
        if self._runs("source-controller"):
            self._sources.reconcile()
        if self._runs("kustomize-controller"):
            self._kustomizations.reconcile()

    def _runs(self, name: str) -> bool:
        found = self._world.find(At(DEPLOYMENT, name, _NAMESPACE))
        return found is not None and bool((found.get("status") or {}).get("availableReplicas"))
