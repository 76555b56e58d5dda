"""What a cluster has of some objects: a list for a kind with several of them, a read for a single one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux.flux_objects import ref_of
from shared.fleet.resource_ids import ObjectRef
from shared.jobs.failures.errors import Dependency
from shared.ports import KubernetesApi

_Place = tuple[str, str, str]
"""The apiVersion and the kind of objects, and their namespace; a kind without namespaces ignores it."""


class LiveObjects:
    """The objects of a cluster that are at these references; each kind is read when it is asked for first.

    What is read may be outdated a moment later. That harms nobody: a write over the version that was read is
    refused then, and a dry run shows the newest one.
    """

    def __init__(self, refs: Collection[ObjectRef], api: KubernetesApi) -> None:
        self._wanted = Counter(map(_place, refs))
        self._api = api
        self._listed: dict[_Place, Sequence[Json]] = {}

    def get(self, ref: ObjectRef) -> Json | None:
        """Return an object as the cluster has it, None when it has none, or does not know the kind."""
        place = _place(ref)
        if place not in self._listed and self._wanted[place] < 2:
            return self._api.get(ref)
        return next((one for one in self._list(place) if one["metadata"]["name"] == ref.name), None)

    def know(self, ref: ObjectRef, kin: Sequence[Json]) -> None:
        """Spare the read of the objects of this one's kind in its namespace: they are among these."""
        self._listed[_place(ref)] = [one for one in kin if _place(ref_of(one)) == _place(ref)]

    def kin(self, ref: ObjectRef) -> Sequence[Json]:
        """Return all objects of this one's kind that are in its namespace, or that have none."""
        return self._list(_place(ref))

    def _list(self, place: _Place) -> Sequence[Json]:
        if place not in self._listed:
            self._listed[place] = self._read(*place)
        return self._listed[place]

    def _read(self, api_version: str, kind: str, namespace: str) -> Sequence[Json]:
        try:
            return self._api.list(api_version, kind, namespace=namespace)
        except Dependency as error:
            if error.code != "NotFound":
                raise
            return ()


def _place(ref: ObjectRef) -> _Place:
    """Return where an object is: one that names no namespace is in "default", if its kind has namespaces."""
    return ref.api_version, ref.kind, ref.namespace or "default"
