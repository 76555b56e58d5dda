"""Azure Resource Manager over HTTPS for the resource types that Roadstead uses, on the Azure world.

Every request needs a bearer token and an ``api-version``; paths do not differ by case; every answer has
``x-ms-request-id`` and ``x-ms-correlation-request-id``; a write names its long-running operation.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from werkzeug.wrappers import Request, Response

from localcloud.azure.wire.arm_controls import control
from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.arm_resources import Accepted, Condition
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.certificates import Authority
from localcloud.common.front_door import FrontDoor
from localcloud.common.http_server import HttpServer, json_response
from shared.fleet.resource_ids import ClusterId

_API_VERSION = re.compile(r"\d{4}-\d\d-\d\d(-preview)?")


class ArmServer:
    """Serves an Azure world at a loopback port until closed; a context manager.

    ``accepts`` tells whether a bearer token is good. ``door`` has the request log and the fault script.
    """

    def __init__(
        self,
        world: AzureWorld,
        authority: Authority,
        *,
        accepts: Callable[[str], bool],
        port: int = 0,
        log_file: Path | None = None,
    ) -> None:
        self._world, self._accepts = world, accepts
        self.door = FrontDoor(Request.application(self._application), "arm", log_file=log_file)
        self._http = HttpServer(self.door, port=port, tls=authority.server_context())
        self.port, self.url = self._http.port, self._http.url

    def close(self) -> None:
        """Stop serving."""
        self._http.close()

    def __enter__(self) -> ArmServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _application(self, request: Request) -> Response:
        if request.path.startswith("/_local/"):
            return control(self._world, request)
        try:
            self._admit(request)
            reply = self._route(request)
        except ArmError as error:
            reply = json_response(error.status, error.body())
            if error.retry_after is not None:
                reply.headers["Retry-After"] = str(error.retry_after)
            if error.status == 401:
                reply.headers["WWW-Authenticate"] = 'Bearer error="invalid_token"'
        reply.headers["x-ms-request-id"] = str(uuid4())
        given = request.headers.get("x-ms-correlation-request-id")
        reply.headers["x-ms-correlation-request-id"] = given or str(uuid4())
        return reply

    def _admit(self, request: Request) -> None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise ArmError(401, "AuthenticationFailed", "The 'Authorization' header is missing or invalid.")
        if not self._accepts(token):
            raise ArmError(401, "InvalidAuthenticationToken", "The access token is invalid or has expired.")
        version = request.args.get("api-version", "")
        if not version:
            message = "The api-version query parameter (?api-version=) is required for all requests."
            raise ArmError(400, "MissingApiVersionParameter", message)
        if not _API_VERSION.fullmatch(version):
            raise ArmError(400, "InvalidApiVersionParameter", f"The api-version '{version}' is invalid.")

    def _route(self, request: Request) -> Response:
        for method, pattern, handler in _ROUTES:
            match = pattern.fullmatch(request.path)
            if match and method == request.method:
                subscription = match["subscription"]
                if not _is_uuid(subscription):
                    message = (
                        f"The provided subscription identifier '{subscription}' is malformed or invalid."
                    )
                    raise ArmError(400, "InvalidSubscriptionId", message)
                return handler(self._world, request, match)
        raise ArmError(404, "NotFound", f"There is no {request.method} {request.path} here.")


_Handler = Callable[[AzureWorld, Request, re.Match[str]], Response]


def _get_group(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.get_group(at["subscription"], at["group"]))


def _group_exists(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    world.get_group(at["subscription"], at["group"])
    return Response(status=204)


def _put_group(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, world.put_group(at["subscription"], at["group"], _body(request)))


def _delete_group(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, world.delete_group(at["subscription"], at["group"]))


def _list_resources(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_resources(at["subscription"], at["group"])})


def _get_cluster(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.get_cluster(_cluster(at)))


def _put_cluster(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, world.put_cluster(_cluster(at), _body(request), _condition(request)))


def _delete_cluster(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, world.delete_cluster(_cluster(at), _condition(request)))


def _credentials(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    kubeconfig = base64.b64encode(world.credentials(_cluster(at)).encode()).decode()
    return json_response(200, {"kubeconfigs": [{"name": f"cluster{at['who'].title()}", "value": kubeconfig}]})


def _list_pools(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_pools(_cluster(at))})


def _get_pool(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.get_pool(_cluster(at), at["pool"]))


def _put_pool(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    accepted = world.put_pool(_cluster(at), at["pool"], _body(request), _condition(request))
    return _accepted(request, at, accepted)


def _delete_pool(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, world.delete_pool(_cluster(at), at["pool"], _condition(request)))


def _upgrade_node_image(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, world.upgrade_node_image(_cluster(at), at["pool"]))


def _upgrade_profile(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.upgrade_profile(_cluster(at)))


def _versions(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.versions(at["subscription"], at["location"]))


def _list_maintenance(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_maintenance(_cluster(at))})


def _get_maintenance(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.get_maintenance(_cluster(at), at["configuration"]))


def _put_maintenance(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    accepted = world.put_maintenance(_cluster(at), at["configuration"], _body(request))
    return _accepted(request, at, accepted)


def _delete_maintenance(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, world.delete_maintenance(_cluster(at), at["configuration"]))


def _operation(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.operation(at["subscription"], at["operation"]))


def _operation_result(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    """Answer the Location of a write: 202 while it runs, then nothing or the error."""
    status = world.operation(at["subscription"], at["operation"])
    if status["status"] == "InProgress":
        return Response(status=202, headers={"Location": request.url})
    if "error" in status:
        return json_response(400, {"error": status["error"]})
    return Response(status=204)


def _cluster(at: re.Match[str]) -> ClusterId:
    return ClusterId(at["subscription"], at["group"], at["name"])


def _condition(request: Request) -> Condition:
    def bare(header: str) -> str:
        return request.headers.get(header, "").removeprefix("W/").strip('"')

    return Condition(if_match=bare("If-Match"), if_none_match=bare("If-None-Match"))


def _body(request: Request) -> Mapping[str, Any]:
    try:
        body = json.loads(request.get_data())
    except ValueError:
        body = None
    if isinstance(body, dict):
        return body
    message = "The request content was invalid and could not be deserialized."
    raise ArmError(400, "InvalidRequestContent", message)


def _accepted(request: Request, at: re.Match[str], accepted: Accepted) -> Response:
    """Answer a write: note it for the request log, and name the operation that it started."""
    if accepted.kind:
        note = {"accepted": accepted.kind, "resource": accepted.resource}
        request.environ.setdefault("roadstead.note", {}).update(note)
    if accepted.document is None:
        reply = Response(status=accepted.status)
    else:
        reply = json_response(accepted.status, accepted.document)
    if accepted.operation is not None:
        provider = "Resources" if accepted.operation.kind == "delete-group" else "ContainerService"
        base = (
            f"{request.host_url}subscriptions/{at['subscription']}/providers/Microsoft.{provider}"
            f"/locations/{accepted.operation.location}"
        )
        query = f"{accepted.operation.id}?api-version={request.args['api-version']}"
        if provider == "ContainerService":
            reply.headers["Azure-AsyncOperation"] = f"{base}/operations/{query}"
        if accepted.status == 202:
            reply.headers["Location"] = f"{base}/operationresults/{query}"
    return reply


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


_GROUP = "/subscriptions/(?P<subscription>[^/]+)/resourcegroups/(?P<group>[^/]+)"
_CLUSTER = _GROUP + r"/providers/microsoft\.containerservice/managedclusters/(?P<name>[^/]+)"
_POOL = _CLUSTER + "/agentpools/(?P<pool>[^/]+)"
_MAINTENANCE = _CLUSTER + "/maintenanceconfigurations"
_PROVIDER = r"/subscriptions/(?P<subscription>[^/]+)/providers/microsoft\.(containerservice|resources)"
_WORK = _PROVIDER + "/locations/(?P<location>[^/]+)"
_TABLE: tuple[tuple[str, str, _Handler], ...] = (
    ("GET", _CLUSTER, _get_cluster),
    ("PUT", _CLUSTER, _put_cluster),
    ("DELETE", _CLUSTER, _delete_cluster),
    ("POST", _CLUSTER + "/listcluster(?P<who>user|admin)credential", _credentials),
    ("GET", _CLUSTER + "/agentpools", _list_pools),
    ("GET", _POOL, _get_pool),
    ("PUT", _POOL, _put_pool),
    ("DELETE", _POOL, _delete_pool),
    ("POST", _POOL + "/upgradenodeimageversion", _upgrade_node_image),
    ("GET", _CLUSTER + "/upgradeprofiles/default", _upgrade_profile),
    ("GET", _WORK + "/kubernetesversions", _versions),
    ("GET", _MAINTENANCE, _list_maintenance),
    ("GET", _MAINTENANCE + "/(?P<configuration>[^/]+)", _get_maintenance),
    ("PUT", _MAINTENANCE + "/(?P<configuration>[^/]+)", _put_maintenance),
    ("DELETE", _MAINTENANCE + "/(?P<configuration>[^/]+)", _delete_maintenance),
    ("GET", _GROUP, _get_group),
    ("HEAD", _GROUP, _group_exists),
    ("PUT", _GROUP, _put_group),
    ("DELETE", _GROUP, _delete_group),
    ("GET", _GROUP + "/resources", _list_resources),
    ("GET", _WORK + "/operations/(?P<operation>[^/]+)", _operation),
    ("GET", _WORK + "/operationresults/(?P<operation>[^/]+)", _operation_result),
)
_ROUTES = [(method, re.compile(pattern, re.IGNORECASE), handler) for method, pattern, handler in _TABLE]
