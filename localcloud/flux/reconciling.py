"""What every controller of the local Flux does: it takes the objects that are due, and keeps a finalizer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from localcloud.flux.schedule import ReconcileSchedule
from localcloud.kubernetes.world.api_errors import StatusError
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, Object, WriteMode
from localcloud.kubernetes.world.writes.patches import MERGE

FINALIZER = "finalizers.fluxcd.io"
"""That of Flux's own controllers (``fluxcd/pkg``, ``apis/meta``)."""


def reconcile_due(
    world: KubernetesWorld,
    kind: tuple[str, str],
    schedule: ReconcileSchedule,
    handle: Callable[[At, Object], None],
    watched: Callable[[At, Object], object] = lambda _at, _value: None,
) -> None:
    """Call ``handle`` with each object of a kind that is due, or whose ``watched`` changed."""
    found = world.kind(*kind)
    if found is None or not world.written(found):
        return
    for value in world.list(found)[0]:
        at = At(found, value["metadata"]["name"], value["metadata"]["namespace"])
        if schedule.is_due(value, watched(at, value)):
            with suppress(StatusError):  # another writer was faster: the next round continues
                handle(at, value)


def with_finalizer(
    world: KubernetesWorld, at: At, value: Object, manager: str, finalizer: str = FINALIZER
) -> Object:
    """Return the object with the finalizer, which is written if it is missing."""
    present = value["metadata"].get("finalizers") or []
    if finalizer in present:
        return value
    return world.patch(
        at, {"metadata": {"finalizers": [*present, finalizer]}}, MERGE, WriteMode(manager=manager)
    )


def without_finalizer(
    world: KubernetesWorld, at: At, value: Object, manager: str, finalizer: str = FINALIZER
) -> None:
    """Remove the finalizer, so that the deletion of the object ends."""
    present = value["metadata"].get("finalizers") or []
    left = [name for name in present if name != finalizer]
    if left != present:
        world.patch(at, {"metadata": {"finalizers": left}}, MERGE, WriteMode(manager=manager))


class Waits:
    """Since when objects wait for others, each in one state."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._since: dict[str, tuple[object, datetime]] = {}

    def is_over(self, value: Object, state: object, seconds: float) -> bool:
        """Return whether the object has waited that long in this state; it can begin again then."""
        uid = value["metadata"]["uid"]
        known, since = self._since.get(uid, (None, self._clock()))
        if known != state:
            since = self._clock()
            self._since[uid] = (state, since)
        if (self._clock() - since).total_seconds() < seconds:
            return False
        del self._since[uid]
        return True

    def end(self, value: Object) -> None:
        """Drop the wait of an object."""
        self._since.pop(value["metadata"]["uid"], None)
