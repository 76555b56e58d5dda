"""The Kubernetes port of ``shared.ports`` on a world in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from localcloud.kubernetes.world.api_errors import StatusError
from localcloud.kubernetes.world.kinds import NODE
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, Deletion, WriteMode
from localcloud.kubernetes.world.writes.patches import MERGE
from shared.cluster.failures.errors import (
    Blocked,
    Dependency,
    ReconcileError,
)
from shared.cluster.failures.kubernetes_status import ApiRefusal, error_of
from shared.frozen import replace
from shared.json_tree import Json
from shared.kubernetes.flux_objects import ref_of
from shared.kubernetes.kubeconfig import ApiServer, Certificate
from shared.ports.kubernetes import ObjectListPage, cordon_patch
from shared.resource_ids import ObjectRef

_WRITE = WriteMode(manager="roadstead", force=True)
PAGE = 500
"""How many objects a page has."""


class WorldKubernetes:
    """A KubernetesApi on one cluster in memory."""

    def __init__(self, world: KubernetesWorld, server: ApiServer | None = None) -> None:
        self._world, self._server = world, server

    def with_token(self, server: ApiServer) -> WorldKubernetes:
        """Return the API for somebody who entered with a token."""
        return WorldKubernetes(self._world, server)

    def server(self) -> ApiServer | None:
        """Return where the API is when a token is the credential."""
        return self._server

    def certificates(self) -> Sequence[Certificate]:
        """Return the certificates that the world was given: in memory, there is no handshake."""
        return self._world.certificates

    def check(self) -> None:
        """Do nothing: a world always answers."""

    def get(self, ref: ObjectRef) -> Json | None:
        """Return the object, or None."""
        at = self._at(ref)
        return None if at is None else self._world.find(at)

    def apply(self, manifest: Json, *, dry_run: bool = False) -> Json:
        """Apply as field manager "roadstead", taking over conflicting fields."""
        write = replace(_WRITE, dry_run=dry_run)
        return self._write(manifest, lambda at: self._world.apply(at, manifest, write))

    def create(self, manifest: Json) -> Json:
        """Create an object that does not exist."""
        return self._write(
            manifest,
            lambda at: self._world.create(at.kind, at.namespace, manifest, WriteMode(manager="roadstead")),
        )

    def replace(self, live: Json, *, status: bool = False) -> Json:
        """Write an object, or its status, over the version that was read."""
        write = replace(_WRITE, subresource="status" if status else "")
        return self._write(live, lambda at: self._world.replace(at, live, write))

    def delete(self, live: Json) -> None:
        """Delete an object that was read; one that does not exist is success."""
        at = self._at(ref_of(live))
        metadata = live["metadata"]
        read = Deletion(uid=metadata["uid"], version=metadata["resourceVersion"], policy="Background")
        if at is None or self._world.find(at) is None:
            return
        try:
            self._world.delete(at, read)
        except StatusError as error:
            raise _translated_about(ref_of(live), error) from error

    def _write(self, value: Json, write: Callable[[At], Json]) -> Json:
        ref = ref_of(value)
        at = self._at(ref)
        if at is None:
            raise Dependency(
                f"{ref}: the cluster does not serve {ref.api_version} {ref.kind}", code="NotFound"
            )
        try:
            return write(at)
        except StatusError as error:
            raise _translated_about(ref, error) from error

    def list(
        self, api_version: str, kind: str, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Sequence[Json]:
        """Return all objects of a kind."""
        served = self._world.kind(api_version, kind)
        if served is None:
            raise Dependency(f"the cluster does not serve {api_version} {kind}", code="NotFound")
        self._world.requested(served)
        try:
            where = namespace if served.namespaced else ""
            return self._world.list(served, where, labels=labels, fields=fields)[0]
        except StatusError as error:
            raise _translated(error, f"the list of {api_version} {kind}") from error

    def page(
        self,
        api_version: str,
        kind: str,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        after: str = "",
        metadata_only: bool = False,
    ) -> ObjectListPage:
        """Return a page of the objects of a kind; ``after`` is how many were before it."""
        found = self.list(api_version, kind, namespace=namespace, labels=labels, fields=fields)
        begins = int(after or 0)
        ends = begins + PAGE
        shown = found[begins:ends]
        if metadata_only:
            shown = [
                {"apiVersion": api_version, "kind": kind, "metadata": value["metadata"]} for value in shown
            ]
        return ObjectListPage(shown, str(ends) if len(found) > ends else "")

    def metric(self, name: str) -> Sequence[str]:
        """Return the samples of a metric of the world."""
        return [line for line in self._world.metrics if line.startswith(f"{name}{{")]

    def cordon(self, node: str, at: datetime) -> None:
        """Cordon a node; one that does not exist is success."""
        self._patch_node(node, cordon_patch(at))

    def uncordon(self, node: str) -> None:
        """Uncordon a node; one that does not exist is success."""
        self._patch_node(node, cordon_patch(None))

    def _patch_node(self, node: str, patch: Json) -> None:
        at = At(NODE, node)
        if self._world.find(at) is not None:
            self._world.patch(at, patch, MERGE, _WRITE)

    def evict(self, namespace: str, pod: str) -> None:
        """Evict a pod; a pod that does not exist is success."""
        try:
            self._world.evict(namespace, pod)
        except StatusError as error:
            if error.code == 404:
                return
            causes = [str(cause["message"]) for cause in error.details.get("causes") or ()]
            message = " ".join([f"pod {pod} in {namespace}: {error.message}", *causes])
            if causes or "more than one PodDisruptionBudget" in error.message:
                raise Blocked(message, code=error.reason) from error
            raise _translated(error, f"pod {pod} in {namespace}") from error

    def _at(self, ref: ObjectRef) -> At | None:
        kind = self._world.kind(ref.api_version, ref.kind)
        if kind is None:
            return None
        return At(kind, ref.name, (ref.namespace or "default") if kind.namespaced else "")


def _translated_about(ref: ObjectRef, error: StatusError) -> ReconcileError:
    return _translated(error, str(ref), secret=ref.kind == "Secret")


def _translated(error: StatusError, subject: str, *, secret: bool = False) -> ReconcileError:
    refusal = ApiRefusal.of(error.code, error.status(), retry_after=error.retry_after or None)
    return error_of(refusal, subject, secret=secret)
