"""The objects on a cluster that Roadstead has applied for systems: their labels are the inventory.

A label can be copied, so an object counts only if Roadstead is among the managers that apply it.
"""

from __future__ import annotations

from collections.abc import Iterator

from shared.cluster.failures.errors import Dependency
from shared.json_tree import Json
from shared.kubernetes.field_ownership import MANAGER, is_applied_by_us, managers_besides
from shared.kubernetes.flux_objects import ref_of
from shared.kubernetes.system_objects import KINDS, SYSTEM, system_of
from shared.ports import KubernetesApi
from shared.resource_ids import ObjectRef


class LabelledLists:
    """What one run of a step finds: one list for each kind, whatever the number of systems."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._found: dict[tuple[str, str], dict[ObjectRef, Json]] = {}
        self._unknown: set[tuple[str, str]] = set()
        for kind in KINDS:
            try:
                listed = api.list(*kind, labels=SYSTEM)
            except Dependency as error:
                if error.code != "NotFound":
                    raise
                listed = ()
                self._unknown.add(kind)
            self._found[kind] = {ref_of(document): document for document in listed}

    def knows(self, api_version: str, kind: str) -> bool:
        """Return whether the cluster serves a kind."""
        return (api_version, kind) not in self._unknown

    def get(self, ref: ObjectRef) -> Json | None:
        """Return an object, None also of a kind that the cluster does not serve."""
        if not self.knows(ref.api_version, ref.kind):
            return None
        found = self._found[(ref.api_version, ref.kind)].get(ref)
        return found if found is not None else self._api.get(ref)

    def namespace(self, name: str) -> Json | None:
        """Return a namespace."""
        return self.get(ObjectRef("v1", "Namespace", name, ""))

    def applied(self) -> Iterator[tuple[ObjectRef, str, Json]]:
        """Yield the objects that we applied, with their systems, in the order in which they are removed."""
        for found in self._found.values():
            for ref, live in found.items():
                if is_applied_by_us(live):
                    yield ref, system_of(live), live


def is_bare(namespace: Json) -> bool:
    """Return whether nobody set anything of it but its name: so it is created for a bootstrap secret."""
    return not managers_besides(namespace, MANAGER, whole=True)
