"""A Kubernetes world behind the REST protocol of the Kubernetes API, as a WSGI application."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import yaml
from werkzeug.wrappers import Request, Response

from localcloud.common.http_server import json_response
from localcloud.kubernetes.wire import access_reviews, discovery
from localcloud.kubernetes.wire.cluster_access import Access
from localcloud.kubernetes.wire.kubectl_tables import table
from localcloud.kubernetes.wire.list_pages import page
from localcloud.kubernetes.wire.resource_paths import Route, route
from localcloud.kubernetes.wire.watch_streams import Watch, hung_up, stream
from localcloud.kubernetes.world.api_errors import ApiError, bad_request, no_such_path
from localcloud.kubernetes.world.kinds import NODE
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import Object, Write
from localcloud.kubernetes.world.patches import APPLY

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

_DEFAULT_VERSION = "1.33.0"


class ClusterApi:
    """The API server of one cluster; ``closing`` ends open watches; unless ``on``, it closes connections."""

    def __init__(
        self, world: KubernetesWorld, access: Access, closing: Callable[[], bool], on: Callable[[], bool]
    ) -> None:
        self._world, self._access, self._closing, self._on = world, access, closing, on

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        request = Request(environ)
        if not self._on():
            environ["roadstead.socket"].shutdown(socket.SHUT_RDWR)
        try:
            response = self._answer(request) if self._access.admits(request) else _unauthorized()
        except ApiError as error:
            response = json_response(error.code, error.status())
        return response(environ, start_response)

    def _answer(self, request: Request) -> Response:
        if self._closing():
            raise ApiError(503, "ServiceUnavailable", "the API server is shutting down")
        path = request.path.rstrip("/") or "/"
        if path in ("/readyz", "/livez", "/healthz"):
            return Response("ok", content_type="text/plain; charset=utf-8")
        self._world.tick()
        described = self._described(request, path)
        if described is not None:
            return described
        if path == access_reviews.PATH and request.method == "POST":
            return json_response(201, access_reviews.reviewed(_body(request)))
        found = route(path, self._world.kinds)
        if found is None:
            raise no_such_path()
        rules: Mapping[tuple[str, bool], Callable[[Request, Route], Response]] = {
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
        if rule is None:
            message = "the server does not allow this method on the requested resource"
            raise ApiError(405, "MethodNotAllowed", message)
        return rule(request, found)

    def _described(self, request: Request, path: str) -> Response | None:
        """Answer discovery; return None when the path is about objects."""
        kinds = self._world.kinds.all()
        if path == "/version":
            return json_response(200, discovery.version_info(self._version()))
        if path in ("/api", "/apis"):
            if "v=v2;as=APIGroupDiscoveryList" in request.headers.get("Accept", "").replace(" ", ""):
                content = json.dumps(discovery.aggregated(kinds, core=path == "/api"))
                return Response(content, content_type=discovery.AGGREGATED)
            plain = discovery.api_versions() if path == "/api" else discovery.group_list(kinds)
            return json_response(200, plain)
        if path == "/openapi/v3":
            return json_response(200, discovery.openapi_index(kinds))
        found: Mapping[str, Any] | None = None
        parts = path.strip("/").split("/")
        if path.startswith("/openapi/v3/"):
            found = discovery.openapi(path.removeprefix("/openapi/v3/"), kinds)
        elif parts[0] == "apis" and len(parts) == 2:
            found = discovery.group(parts[1], kinds)
        elif parts[0] in ("api", "apis") and len(parts) == (2 if parts[0] == "api" else 3):
            found = discovery.resource_list("/".join(parts[1:]), kinds)
        return None if found is None else json_response(200, found)

    def _version(self) -> str:
        nodes = self._world.list(NODE)[0]
        versions = [
            ((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion") for node in nodes
        ]
        numbers = [version.removeprefix("v") for version in versions if version]
        newest = max(numbers, key=lambda text: [int(part) for part in text.split(".")], default="")
        return newest or _DEFAULT_VERSION

    def _list(self, request: Request, found: Route) -> Response:
        labels, fields = request.args.get("labelSelector", ""), request.args.get("fieldSelector", "")
        if request.args.get("watch") in ("true", "1"):
            return self._watch(request, found, labels, fields)
        objects, version = self._world.list(found.kind, found.namespace, labels=labels, fields=fields)
        objects, after = page(objects, request.args.get("limit", ""), request.args.get("continue", ""))
        metadata = {"resourceVersion": str(version), **({"continue": after} if after else {})}
        if _wants_table(request):
            return json_response(200, {**self._table(request, found, objects), "metadata": metadata})
        return json_response(
            200,
            {
                "kind": f"{found.kind.kind}List",
                "apiVersion": found.kind.api_version,
                "metadata": metadata,
                "items": objects if found.kind.custom else [_bare(value) for value in objects],
            },
        )

    def _watch(self, request: Request, found: Route, labels: str, fields: str) -> Response:
        if "sendInitialEvents" in request.args:
            message = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            raise ApiError(422, "Invalid", message)

        def shown(value: Object) -> Mapping[str, Any]:
            return self._table(request, found, [value]) if _wants_table(request) else value

        watch = Watch(
            found.kind,
            found.namespace,
            labels,
            fields,
            request.args.get("resourceVersion", ""),
            request.args.get("timeoutSeconds", type=float),
            shown,
        )
        environ = request.environ
        lines = stream(self._world, watch, lambda: self._closing() or hung_up(environ))
        return Response(lines, content_type="application/json")

    def _get(self, request: Request, found: Route) -> Response:
        value = self._world.get(found.at)
        if _wants_table(request):
            return json_response(200, self._table(request, found, [value]))
        return json_response(200, value)

    def _table(self, request: Request, found: Route, objects: Iterable[Object]) -> dict[str, Any]:
        include = request.args.get("includeObject", "Metadata")
        return table(found.kind, list(objects), self._world.clock(), include=include)

    def _create(self, request: Request, found: Route) -> Response:
        return json_response(
            201, self._world.create(found.kind, found.namespace, _body(request), _write(request, found))
        )

    def _replace(self, request: Request, found: Route) -> Response:
        return json_response(200, self._world.replace(found.at, _body(request), _write(request, found)))

    def _patch(self, request: Request, found: Route) -> Response:
        write = _write(request, found)
        if request.mimetype != APPLY:
            patch = _body(request)
            return json_response(200, self._world.patch(found.at, patch, request.mimetype, write))
        if "fieldManager" not in request.args:
            raise bad_request(
                "PatchOptions.meta.k8s.io is invalid: fieldManager: is required for apply patch"
            )
        status = 200 if self._world.find(found.at) is not None else 201
        return json_response(status, self._world.apply(found.at, _body(request), write))

    def _evict(self, request: Request, found: Route) -> Response:
        body = _body(request)
        if body.get("kind", "Eviction") != "Eviction":
            raise bad_request("the object provided is unrecognized: it must be an Eviction")
        dry_run = _write(request, found).dry_run or bool((body.get("deleteOptions") or {}).get("dryRun"))
        self._world.evict(found.namespace, found.name, dry_run=dry_run)
        return json_response(201, {**_success({}), "code": 201})

    def _delete(self, request: Request, found: Route) -> Response:
        options = _body(request) if request.get_data() else {}
        uid = (options.get("preconditions") or {}).get("uid", "")
        dry_run = _write(request, found).dry_run or bool(options.get("dryRun"))
        value = self._world.delete(found.at, uid=uid, dry_run=dry_run)
        if "deletionTimestamp" in value["metadata"]:
            return json_response(200, value)
        details = {"name": found.name, "group": found.kind.group, "kind": found.kind.plural}
        return json_response(200, _success({**details, "uid": value["metadata"]["uid"]}))

    def _delete_all(self, request: Request, found: Route) -> Response:
        labels, fields = request.args.get("labelSelector", ""), request.args.get("fieldSelector", "")
        for value in self._world.list(found.kind, found.namespace, labels=labels, fields=fields)[0]:
            metadata = value["metadata"]
            single = Route(found.kind, metadata.get("namespace", ""), metadata["name"], "")
            self._world.delete(single.at, dry_run=_write(request, found).dry_run)
        return json_response(200, _success({"group": found.kind.group, "kind": found.kind.plural}))


def _success(details: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _bare(value: Object) -> Object:
    """Return an object as an item of a list, which has the kind and API version once for all items."""
    return {key: inner for key, inner in value.items() if key not in ("apiVersion", "kind")}


def _unauthorized() -> Response:
    return json_response(401, ApiError(401, "Unauthorized", "Unauthorized").status())


def _wants_table(request: Request) -> bool:
    return "as=Table" in request.headers.get("Accept", "").replace(" ", "")


def _write(request: Request, found: Route) -> Write:
    agent = request.headers.get("User-Agent", "unknown").partition("/")[0]
    return Write(
        manager=request.args.get("fieldManager") or agent,
        force=request.args.get("force") == "true",
        dry_run=request.args.get("dryRun") == "All",
        subresource=found.subresource,
    )


def _body(request: Request) -> Any:
    content = request.get_data()
    try:
        if "yaml" in request.mimetype:
            return yaml.load(content, Loader=yaml.CSafeLoader)
        if "json" in request.mimetype or not request.mimetype:
            return json.loads(content)
    except (ValueError, yaml.YAMLError) as error:
        raise bad_request("the body of the request is not valid JSON or YAML") from error
    raise ApiError(415, "UnsupportedMediaType", f"the media type {request.mimetype} is not supported")
