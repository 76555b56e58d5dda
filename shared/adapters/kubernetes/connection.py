"""The API of one cluster: raw JSON calls with server-side apply, over the official client."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any
from urllib.parse import quote, urlencode

import urllib3

from shared.adapters.kubernetes.answers import (
    ApiAnswer,
    Discovery,
    Object,
    ObjectPage,
    refusal,
    refused_eviction,
    samples,
)
from shared.adapters.kubernetes.kubeconfig import SeenCertificates
from shared.cluster.failures.errors import (
    Blocked,
    Dependency,
    ReconcileError,
    Unauthorized,
    Unavailable,
)
from shared.cluster.failures.kubernetes_status import is_denied
from shared.json_tree import Json
from shared.kubernetes.field_ownership import MANAGER
from shared.kubernetes.flux_objects import ref_of
from shared.kubernetes.kubeconfig import ApiServer, Certificate
from shared.ports.kubernetes import REQUIRED_ACCESS, ObjectListPage, cordon_patch
from shared.resource_ids import ClusterId, ObjectRef

_CONNECT_READ_SECONDS = (5.0, 20.0)
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_JSON = "application/json"
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""What asks for the metadata of objects alone: kubernetes.io/docs/reference/using-api/api-concepts."""
_PAGE = 500
_CHUNK, _SAMPLES = 1 << 16, 1000
"""Bytes of ``/metrics`` at a time, and the most samples of one metric that are taken."""
_REVIEWS = "authorization.k8s.io/v1"


class ClientConnection:
    """A KubernetesApi over the official client."""

    def __init__(
        self,
        cluster: ClusterId,
        client: Any,
        discard: Callable[[ClusterId, ClientConnection], None],
        *,
        server: ApiServer | None,
        seen: SeenCertificates,
    ) -> None:
        self._cluster, self._client, self._discard, self._server = cluster, client, discard, server
        self._seen = seen
        self._resources: dict[tuple[str, str], tuple[str, bool]] = {}
        self._accepted = False

    def server(self) -> ApiServer | None:
        """Return where the API is when a token of the app is the credential."""
        return self._server

    def certificates(self) -> Sequence[Certificate]:
        """Return the certificates that the connections have seen."""
        return self._seen.all()

    def check(self) -> None:
        """Ask the API server for our own access; ``/readyz`` would answer anybody."""
        for access in REQUIRED_ACCESS:
            attributes = {"verb": access.verb, "group": access.group, "resource": access.resource}
            review = {"apiVersion": _REVIEWS, "kind": "SelfSubjectAccessReview"}
            body = {**review, "spec": {"resourceAttributes": attributes}}
            answer = self._call("POST", f"/apis/{_REVIEWS}/selfsubjectaccessreviews", body, _JSON)
            if answer.status >= 300:
                raise self._error(answer, f"the API server of {self._cluster.name}")
            status = answer.body.get("status")
            if not isinstance(status, dict) or status.get("allowed") is not True:
                resource = f"{access.resource}.{access.group}" if access.group else access.resource
                missing = f"the identity may not {access.verb} {resource} in the cluster {self._cluster.name}"
                raise Unauthorized(f"{missing}; it has to be an administrator there", code="Forbidden")

    def get(self, ref: ObjectRef) -> Json | None:
        """Return the object, or None."""
        path = self._path(ref)
        answer = None if path is None else self._call("GET", path)
        if answer is None or answer.status == 404:
            return None
        if answer.status >= 300:
            raise self._error(answer, str(ref), secret=ref.kind == "Secret")
        return answer.read_as(Object, str(ref))

    def apply(self, manifest: Json, *, dry_run: bool = False) -> Json:
        """Apply as field manager "roadstead", taking over conflicting fields."""
        options = f"fieldManager={MANAGER}&force=true{'&dryRun=All' if dry_run else ''}"
        return self._write("PATCH", manifest, f"?{options}", _APPLY)

    def create(self, manifest: Json) -> Json:
        """Create an object that does not exist."""
        ref = ref_of(manifest)
        collection = self._collection(ref.api_version, ref.kind, ref.namespace or "default")
        if collection is None:
            message = f"{ref}: the cluster does not serve {ref.api_version} {ref.kind}"
            raise Dependency(message, code="NotFound")
        answer = self._call("POST", f"{collection}?fieldManager={MANAGER}", manifest, _JSON)
        if answer.status >= 300:
            raise self._error(answer, str(ref), secret=ref.kind == "Secret")
        return answer.read_as(Object, str(ref))

    def replace(self, live: Json, *, status: bool = False) -> Json:
        """Write an object, or its status, over the version that was read."""
        return self._write("PUT", live, f"{'/status' if status else ''}?fieldManager={MANAGER}", _JSON)

    def delete(self, live: Json) -> None:
        """Delete the version of an object that was read; the API server deletes its dependents."""
        ref, metadata = ref_of(live), live["metadata"]
        path = self._path(ref)
        preconditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        kind = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if path is not None:
            answer = self._call("DELETE", path, {**kind, "preconditions": preconditions}, _JSON)
            if answer.status >= 300 and answer.status != 404:
                raise self._error(answer, str(ref), secret=ref.kind == "Secret")

    def _write(self, method: str, manifest: Json, suffix: str, media_type: str) -> Json:
        """Write an object at its path with this suffix; return the object as the API server has it."""
        ref = ref_of(manifest)
        path = self._path(ref)
        if path is None:
            message = f"{ref}: the cluster does not serve {ref.api_version} {ref.kind}"
            raise Dependency(message, code="NotFound")
        answer = self._call(method, f"{path}{suffix}", manifest, media_type)
        if answer.status >= 300:
            if answer.status == 404:
                self._resources.clear()
            raise self._error(answer, str(ref), secret=ref.kind == "Secret")
        return answer.read_as(Object, str(ref))

    def list(
        self, api_version: str, kind: str, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Sequence[Json]:
        """Return all objects of a kind, page by page."""
        objects, pages, after = list[Json](), set[str](), ""
        while True:
            page = self.page(
                api_version, kind, namespace=namespace, labels=labels, fields=fields, after=after
            )
            objects += page.objects
            after = page.after
            if not after:
                return objects
            if after in pages:
                raise Unavailable(f"the list of {api_version} {kind} continues with a page that was read")
            pages.add(after)

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
        """Return a page of the objects of a kind."""
        path, subject = self._collection(api_version, kind, namespace), f"the list of {api_version} {kind}"
        if path is None:
            raise Dependency(f"the cluster does not serve {api_version} {kind}", code="NotFound")
        query = {"limit": str(_PAGE), "labelSelector": labels, "fieldSelector": fields, "continue": after}
        parameters = urlencode({name: value for name, value in query.items() if value})
        answer = self._call("GET", f"{path}?{parameters}", accept=_METADATA if metadata_only else _JSON)
        if answer.status >= 300:
            if answer.status == 404:
                self._resources.clear()
            raise self._error(answer, subject, secret=kind == "Secret")
        read = answer.read_as(ObjectPage, subject)
        own = {"apiVersion": api_version, "kind": kind}
        objects = [{**own, **item, **own} for item in read.get("items") or ()]
        return ObjectListPage(objects, str((read.get("metadata") or {}).get("continue") or ""))

    def metric(self, name: str) -> Sequence[str]:
        """Return the samples of a metric; the rest of ``/metrics``, some megabytes, goes by unread."""
        reply = self._send("GET", "/metrics", {"Accept": "text/plain"}, None)
        if isinstance(reply, ApiAnswer):
            raise self._error(reply, "the metrics of the API server")
        try:
            return list(islice(samples(reply.stream(_CHUNK), name), _SAMPLES))
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self._unanswered(type(error).__name__) from error
        finally:
            reply.close()

    def cordon(self, node: str, at: datetime) -> None:
        """Cordon a node; one that no longer exists is success."""
        self._patch_node(node, cordon_patch(at))

    def uncordon(self, node: str) -> None:
        """Uncordon a node; one that no longer exists is success."""
        self._patch_node(node, cordon_patch(None))

    def _patch_node(self, node: str, patch: Json) -> None:
        path = f"/api/v1/nodes/{quote(node, safe='')}?fieldManager={MANAGER}"
        answer = self._call("PATCH", path, patch, _MERGE)
        if answer.status >= 300 and answer.status != 404:
            raise self._error(answer, f"node {node}")

    def evict(self, namespace: str, pod: str) -> None:
        """Evict a pod within its disruption budgets; a pod that no longer exists is success."""
        metadata = {"name": pod, "namespace": namespace}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(pod, safe='')}/eviction"
        answer = self._call("POST", path, eviction, _JSON)
        if answer.status < 300 or answer.status == 404:
            return
        why = refused_eviction(answer)
        if why:
            raise Blocked(f"pod {pod} in {namespace}: {why}", code=answer.reason)
        raise self._error(answer, f"pod {pod} in {namespace}")

    def close(self) -> None:
        """Close the connection's sockets."""
        self._client.close()

    def _path(self, ref: ObjectRef) -> str | None:
        """Return the URL path of an object, or None when the cluster does not serve its kind."""
        collection = self._collection(ref.api_version, ref.kind, ref.namespace or "default")
        return None if collection is None else f"{collection}/{quote(ref.name, safe='')}"

    def _collection(self, api_version: str, kind: str, namespace: str) -> str | None:
        """Return the URL path of a kind's objects ("": in all namespaces), or None when it is unknown."""
        base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        if (api_version, kind) not in self._resources:
            self._discover(api_version, base)
        resource = self._resources.get((api_version, kind))
        if resource is None:
            return None
        plural, namespaced = resource
        where = f"/namespaces/{quote(namespace, safe='')}" if namespaced and namespace else ""
        return f"{base}{where}/{plural}"

    def _discover(self, api_version: str, base: str) -> None:
        answer = self._call("GET", base)
        if answer.status == 404:
            return
        if answer.status >= 300:
            raise self._error(answer, f"discovery of {api_version}")
        found = answer.read_as(Discovery, f"discovery of {api_version}")
        for resource in found.get("resources") or ():
            if "/" not in resource["name"]:
                key = (api_version, resource["kind"])
                self._resources[key] = (resource["name"], bool(resource["namespaced"]))

    def _call(
        self, method: str, path: str, body: Json | None = None, media_type: str = "", accept: str = _JSON
    ) -> ApiAnswer:
        headers = {"Accept": accept, **({} if body is None else {"Content-Type": media_type})}
        try:
            reply = self._send(method, path, headers, body)
            if isinstance(reply, ApiAnswer):
                return reply
            return ApiAnswer.of(reply.status, dict(reply.headers), bytes(reply.data))
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self._unanswered(type(error).__name__) from error

    def _send(self, method: str, path: str, headers: Mapping[str, str], body: Json | None) -> Any:
        """Return the response of the HTTP library, whose content nobody has read yet, or a refusal."""
        from kubernetes.client.exceptions import ApiException

        try:
            reply = self._client.rest_client.request(
                method,
                f"{self._client.configuration.host}{path}",
                headers={**self._client.default_headers, **headers},
                body=body,
                _preload_content=False,
                _request_timeout=_CONNECT_READ_SECONDS,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self._unanswered(type(error).__name__) from error
        except ApiException as error:
            if not error.status:  # nothing came back
                raise self._unanswered(str(error.reason).splitlines()[0]) from error
            return ApiAnswer.of(error.status, dict(error.headers), bytes(error.body))
        self._accepted = self._accepted or reply.status < 300
        return reply

    def _unanswered(self, reason: str) -> Unavailable:
        self._discard(self._cluster, self)
        return Unavailable(f"the API server of {self._cluster.name} does not answer: {reason}")

    def _error(self, answer: ApiAnswer, subject: str, *, secret: bool = False) -> ReconcileError:
        """Return the port's error for a rejected request; after a 401 the next connection is a new one."""
        if answer.status == 401 and not is_denied(answer.refusal):
            self._discard(self._cluster, self)
            if self._accepted:  # they expired: the next connection fetches new ones
                return Dependency(f"{subject}: the credentials are no longer accepted", code=answer.reason)
        return refusal(answer, subject, secret=secret)
