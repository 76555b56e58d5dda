"""A Kubernetes world behind the REST protocol of the Kubernetes API, as a WSGI application."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import yaml
from werkzeug.wrappers import Request, Response

from localcloud.common.http_server import json_response
from localcloud.kubernetes.schema.definitions import forbidden, invalid
from localcloud.kubernetes.wire import access_reviews, discovery
from localcloud.kubernetes.wire.cluster_access import Admission
from localcloud.kubernetes.wire.kubectl_tables import partial, table
from localcloud.kubernetes.wire.list_pages import listing, page
from localcloud.kubernetes.wire.media_types import AnswerForm, accepted, received, reply
from localcloud.kubernetes.wire.request_options import (
    deletion,
    is_set,
    number,
    without_preconditions,
    write_options,
)
from localcloud.kubernetes.wire.resource_paths import ResourcePath, group_is_served, route
from localcloud.kubernetes.wire.watch_streams import Watch, hung_up, stream, too_new, version_of
from localcloud.kubernetes.world.api_errors import StatusError, bad_request, invalid_options, no_such_path
from localcloud.kubernetes.world.deletion.deletion import answers_with_object
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import Deletion, Object, WriteMode
from localcloud.kubernetes.world.refusals import RefusedWrites
from localcloud.kubernetes.world.writes.patches import APPLY, unknown_patch
from localcloud.kubernetes.world.writes.patches import accepted as patch_types

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


class ClusterApi:
    """The API server of one cluster; ``closing`` ends open watches; unless ``on``, it closes connections."""

    def __init__(
        self, world: KubernetesWorld, access: Admission, closing: Callable[[], bool], on: Callable[[], bool]
    ) -> None:
        self._world, self._access, self._closing, self._on = world, access, closing, on

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        request = Request(environ)
        if not self._on():
            environ["roadstead.socket"].shutdown(socket.SHUT_RDWR)
        if request.path.startswith("/_local/"):
            return self._control(request)(environ, start_response)
        try:
            response = self._answer(request) if self._access.admits(request) else _unauthorized()
        except StatusError as error:
            response = _refused(error)
        return response(environ, start_response)

    def _control(self, request: Request) -> Response:
        """Answer ``PUT /_local/refused``, which says what the cluster refuses from now on."""
        if request.path != "/_local/refused" or request.method != "PUT":
            return json_response(404, {"message": "no such control of the local cluster"})
        try:
            self._world.refused = [RefusedWrites(**rule) for rule in json.loads(request.get_data())]
        except (TypeError, ValueError) as error:
            return json_response(400, {"message": f"a list of case, kind and name: {error}"})
        return Response(status=204)

    def _answer(self, request: Request) -> Response:
        if self._closing():
            raise StatusError(503, "ServiceUnavailable", "the API server is shutting down")
        path = request.path.rstrip("/") or "/"
        if path in ("/readyz", "/livez", "/healthz"):
            return Response("ok", content_type="text/plain; charset=utf-8")
        if path == "/metrics":
            return Response("".join(f"{line}\n" for line in self._world.metrics), content_type=_METRICS)
        self._world.tick()
        described = discovery.described(path, self._world)
        if described is not None:
            return described
        if path == access_reviews.PATH and request.method == "POST":
            review = received(request, what="SelfSubjectAccessReview")
            return json_response(201, access_reviews.reviewed(review))
        found = route(path, self._world.kinds)
        if found is None:
            if not group_is_served(path, self._world.kinds):
                return Response("404 page not found\n", 404, content_type="text/plain; charset=utf-8")
            raise no_such_path()
        rules: Mapping[tuple[str, bool], Callable[[Request, ResourcePath], Response]] = {
            ("GET", False): self._list,
            ("GET", True): self._get,
            ("POST", False): self._create,
            ("PUT", True): self._replace,
            ("PATCH", True): self._patch,
            ("DELETE", True): self._delete,
            ("DELETE", False): self._delete_all,
        }
        rule = rules.get((request.method, bool(found.name)))
        if found.subresource == "eviction":
            rule = self._evict if request.method == "POST" else None
        if found.kind.namespaced and not found.namespace and request.method != "GET":
            rule = None
        if rule is None:
            message = "the server does not allow this method on the requested resource"
            raise StatusError(405, "MethodNotAllowed", message)
        self._world.requested(found.kind, found.subresource)
        return rule(request, found)

    def _list(self, request: Request, found: ResourcePath) -> Response:
        form = accepted(request, custom=found.kind.custom, streamed=True)
        labels, fields = request.args.get("labelSelector", ""), request.args.get("fieldSelector", "")
        if is_set(request, "watch"):
            return self._watch(request, found, form, number(request, "timeoutSeconds"))
        number(request, "timeoutSeconds")
        asked = listing(request, self._world.version, self._world.keeps)
        objects, version = self._world.list(
            found.kind, found.namespace, labels=labels, fields=fields, at=asked.version
        )
        everything = self._world.list(found.kind, found.namespace, at=version)[0] if asked.size else objects
        objects, after = page(objects, everything, asked, version)
        metadata = {"resourceVersion": str(version), **({"continue": after} if after else {})}
        if form.shown_as == "Table":
            return reply(200, {**self._table(request, found, objects), "metadata": metadata}, form)
        if form.shown_as:
            items = [partial(value) for value in objects]
            return reply(
                200,
                {**_META, "kind": "PartialObjectMetadataList", "metadata": metadata, "items": items},
                form,
            )
        body = {
            "kind": f"{found.kind.kind}List",
            "apiVersion": found.kind.api_version,
            "metadata": metadata,
            "items": objects if found.kind.custom else [_bare(value) for value in objects],
        }
        return reply(200, body, form)

    def _watch(
        self, request: Request, found: ResourcePath, form: AnswerForm, seconds: int | None
    ) -> Response:
        if "sendInitialEvents" in request.args:
            text = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            raise invalid_options("ListOptions", [forbidden("sendInitialEvents", text)])
        watch = Watch(
            found.kind,
            found.namespace,
            request.args.get("labelSelector", ""),
            request.args.get("fieldSelector", ""),
            version_of(request.args.get("resourceVersion", "")),
            seconds,
            lambda value: self._shown(request, found, value, form),
        )
        environ = request.environ
        lines = stream(self._world, watch, lambda: self._closing() or hung_up(environ))
        return Response(lines, content_type="application/json")

    def _get(self, request: Request, found: ResourcePath) -> Response:
        form = accepted(request, custom=found.kind.custom)
        wanted, version = version_of(request.args.get("resourceVersion", "")), self._world.version
        if wanted > version:
            raise too_new(wanted, version)
        return reply(200, self._shown(request, found, self._world.get(found.at), form), form)

    def _shown(
        self, request: Request, found: ResourcePath, value: Object, form: AnswerForm
    ) -> Mapping[str, Any]:
        """Return an object as its client asked for it."""
        if form.shown_as == "Table":
            return self._table(request, found, [value])
        return partial(value) if form.shown_as else value

    def _table(self, request: Request, found: ResourcePath, objects: Iterable[Object]) -> dict[str, Any]:
        include = request.args.get("includeObject", "Metadata")
        if include not in ("Metadata", "Object", "None"):
            problem = invalid("includeObject", include, "must be 'Metadata', 'Object', 'None', or empty")
            raise bad_request(f"Unable to convert to Table as requested: {problem.field}: {problem.message}")
        return table(found.kind, list(objects), self._world.clock(), include=include)

    def _create(self, request: Request, found: ResourcePath) -> Response:
        form = accepted(request, custom=found.kind.custom)
        write, warnings = _write(request, found, "CreateOptions")
        body = received(request, what=found.kind.kind)
        value = self._world.create(found.kind, found.namespace, body, write)
        return _warned(reply(201, self._shown(request, found, value, form), form), warnings)

    def _replace(self, request: Request, found: ResourcePath) -> Response:
        form = accepted(request, custom=found.kind.custom)
        write, warnings = _write(request, found, "UpdateOptions")
        body = received(request, what=found.kind.kind)
        value = self._world.replace(found.at, body, write)
        return _warned(reply(200, self._shown(request, found, value, form), form), warnings)

    def _patch(self, request: Request, found: ResourcePath) -> Response:
        if request.mimetype not in patch_types(custom=found.kind.custom):
            raise unknown_patch(custom=found.kind.custom)
        form = accepted(request, custom=found.kind.custom)
        is_apply = request.mimetype == APPLY
        write, warnings = _write(request, found, "PatchOptions", apply=is_apply)
        patch = _patch_of(request, is_apply=is_apply)
        if is_apply:
            status = 200 if self._world.find(found.at) is not None else 201
            value = self._world.apply(found.at, patch, write)
        else:
            status, value = 200, self._world.patch(found.at, patch, request.mimetype, write)
        return _warned(reply(status, self._shown(request, found, value, form), form), warnings)

    def _evict(self, request: Request, found: ResourcePath) -> Response:
        form = accepted(request, custom=False)
        write, _ = _write(request, found, "CreateOptions")
        body = received(request, what="Eviction")
        if (body.get("apiVersion"), body.get("kind")) not in (("policy/v1", "Eviction"), (None, None)):
            shown = f"{body.get('apiVersion')}, Kind={body.get('kind')}"
            raise bad_request(
                f"the API version in the data ({shown}) does not match the expected API version"
            )
        options = deletion(request, body.get("deleteOptions") or {})
        self._world.evict(found.namespace, found.name, options, dry_run=write.dry_run)
        return reply(201, {**_success({}), "code": 201}, form)

    def _delete(self, request: Request, found: ResourcePath) -> Response:
        form = accepted(request, custom=found.kind.custom)
        options = _deletion(request)
        value, gone = self._world.end(found.at, options)
        if not gone or answers_with_object(found.kind):
            return reply(200, value, form)
        details = {"name": found.name, "group": found.kind.group, "kind": found.kind.plural}
        details = {name: text for name, text in details.items() if text}
        return reply(200, _success({**details, "uid": value["metadata"]["uid"]}), form)

    def _delete_all(self, request: Request, found: ResourcePath) -> Response:
        form = accepted(request, custom=found.kind.custom)
        number(request, "limit")
        labels, fields = request.args.get("labelSelector", ""), request.args.get("fieldSelector", "")
        options = without_preconditions(_deletion(request))
        objects, version = self._world.list(found.kind, found.namespace, labels=labels, fields=fields)
        for value in objects:
            metadata = value["metadata"]
            single = ResourcePath(found.kind, metadata.get("namespace", ""), metadata["name"], "")
            self._world.delete(single.at, options)
        body = {"kind": f"{found.kind.kind}List", "apiVersion": found.kind.api_version}
        return reply(
            200, {**body, "metadata": {"resourceVersion": str(version)}, "items": list(objects)}, form
        )


_METRICS = "text/plain; version=0.0.4; charset=utf-8"
_META = {"apiVersion": "meta.k8s.io/v1"}


def _success(details: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _bare(value: Object) -> Object:
    """Return an object as an item of a list, which has the kind and API version once for all items."""
    return {key: inner for key, inner in value.items() if key not in ("apiVersion", "kind")}


def _refused(error: StatusError) -> Response:
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
    if error.plain:
        return Response(f"{error.message}\n", error.code, headers, content_type="text/plain; charset=utf-8")
    return json_response(error.code, error.status(), headers)


def _unauthorized() -> Response:
    return json_response(401, StatusError(401, "Unauthorized", "Unauthorized").status())


def _write(
    request: Request, found: ResourcePath, kind: str, *, apply: bool = False
) -> tuple[WriteMode, list[str]]:
    """Return how to write, and the list that takes the warnings."""
    options = write_options(request, kind, apply=apply)
    warnings: list[str] = []
    write = WriteMode(
        manager=options.manager,
        force=options.force,
        dry_run=options.dry_run,
        subresource=found.subresource,
        validation=options.validation,
        warn=warnings.append,
    )
    return write, warnings


def _warned(response: Response, warnings: Iterable[str]) -> Response:
    for text in warnings:
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{quoted}"')
    return response


def _patch_of(request: Request, *, is_apply: bool) -> Any:
    content = request.get_data()
    try:
        return yaml.load(content, Loader=yaml.CSafeLoader) if is_apply else json.loads(content)
    except (ValueError, yaml.YAMLError) as error:
        problem = str(error).splitlines()[0]
        raise bad_request(f"error decoding {'YAML' if is_apply else 'patch'}: {problem}") from error


def _deletion(request: Request) -> Deletion:
    body = received(request, what="DeleteOptions") if request.get_data() else None
    return deletion(request, body)
