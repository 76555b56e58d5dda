"""How the operations of the Azure world are asked and answered over HTTP: reads, writes, lists in pages."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from werkzeug.wrappers import Request, Response

from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.arm_resources import ArmOperation, WriteAnswer, WriteCondition
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.http_server import json_response
from shared.resource_ids import ClusterId

Handler = Callable[[AzureWorld, Request, re.Match[str]], Response]
Operation = Callable[..., Any]
"""A method of the world, or of a part of it."""
CLUSTER = "cluster"
"""Stands for the cluster that a path names by its subscription, group and name."""
SKIP = "$skiptoken"
"""The parameter in the link to a list's next page (azure-rest-api-specs, ManagedClusterListResult.nextLink,
is a URL that a client follows as it is)."""
_LINK_VERSION = "2016-03-30"
"""The version in the links of a long-running operation of AKS (recordings of azure-cli)."""
_BELOW = ("-extension", "-configuration")
"""The ends of the kinds of operations on resources below a cluster."""


def read(operation: Operation, *names: str) -> Handler:
    """Answer with what an operation returns for these parts of the path, a list as the value of an object."""

    def handle(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
        found = world.answering(operation.__name__)(*_place(at, names))
        return json_response(200, {"value": found} if isinstance(found, list) else found)

    return handle


def write(operation: Operation, *names: str, condition: bool = False) -> Handler:
    """Answer a write of these parts of the path, with the body of what is no DELETE or POST.

    ``condition``: on an ETag.
    """

    def handle(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
        given: list[Any] = [*_place(at, names)]
        given += [read_body(request)] if request.method in ("PUT", "PATCH") else []
        given += [_condition(request)] if condition else []
        return accepted(request, at, world.answering(operation.__name__)(*given))

    return handle


def _place(at: re.Match[str], names: Sequence[str]) -> list[Any]:
    return [cluster(at) if name == CLUSTER else at[name] for name in names]


def cluster(at: re.Match[str]) -> ClusterId:
    """Return the cluster that a path names."""
    return ClusterId(at["subscription"], at["group"], at["name"])


def listed(request: Request, found: Sequence[Any], following: str) -> Response:
    """Answer a page of a list, with the link to the next one, if there is one."""
    link = f"{request.base_url}?{urlencode({**request.args, SKIP: following})}"
    return json_response(200, {"value": found, **({"nextLink": link} if following else {})})


def read_body(request: Request) -> Mapping[str, Any]:
    """Return the object in the body of a request, or refuse the body."""
    try:
        body = json.loads(request.get_data())
    except ValueError:
        body = None
    if isinstance(body, dict):
        return body
    message = "The request content was invalid and could not be deserialized."
    raise ArmError(400, "InvalidRequestContent", message)


def _condition(request: Request) -> WriteCondition:
    def bare(header: str) -> str:
        return request.headers.get(header, "").removeprefix("W/").strip('"')

    return WriteCondition(if_match=bare("If-Match"), if_none_match=bare("If-None-Match"))


def accepted(request: Request, at: re.Match[str], answer: WriteAnswer) -> Response:
    """Answer a write: add it to the request log, and name the operation that it started."""
    if answer.kind:
        note = {"accepted": answer.kind, "resource": answer.resource}
        request.environ.setdefault("roadstead.note", {}).update(note)
    if answer.document is None:
        reply = Response(status=answer.status)
    else:
        reply = json_response(answer.status, answer.document)
    if answer.operation is not None:
        of_group = answer.operation.kind == "delete-group"
        if answer.operation.kind.endswith(_BELOW):
            return _with_operation_below(request, answer.operation, reply)
        provider = "Resources" if of_group else "ContainerService"
        version = request.args["api-version"] if of_group else _LINK_VERSION
        base = (
            f"{request.host_url}subscriptions/{at['subscription']}/providers/Microsoft.{provider}"
            f"/locations/{answer.operation.location}"
        )
        query = f"{answer.operation.id}?api-version={version}"
        if not of_group:
            reply.headers["Azure-AsyncOperation"] = f"{base}/operations/{query}"
        if answer.status == 202:
            reply.headers["Location"] = f"{base}/operationresults/{query}"
        reply.headers["Retry-After"] = "1"
    return reply


def _with_operation_below(request: Request, operation: ArmOperation, reply: Response) -> Response:
    """Name the operation of a resource below a cluster, as azure-rest-api-specs has its path."""
    version = request.args["api-version"]
    url = f"{request.host_url.rstrip('/')}{operation.resource}/operations/{operation.id}"
    reply.headers["Azure-AsyncOperation"] = f"{url}?api-version={version}"
    reply.headers["Retry-After"] = "1"
    return reply


def operation(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    """Answer the state of a write."""
    status = world.operation(at["subscription"], at["operation"])
    return json_response(200, status, _retry_after(world, at["operation"]))


def operation_result(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    """Answer the Location of a write: 202 while it runs, then nothing or the error."""
    status = world.operation(at["subscription"], at["operation"])
    if status["status"] == "InProgress":
        headers = {"Location": request.url, **_retry_after(world, at["operation"])}
        return Response(status=202, headers=headers)
    if "error" in status:
        return json_response(400, {"error": status["error"]})
    return Response(status=204)


def _retry_after(world: AzureWorld, identifier: str) -> dict[str, str]:
    """Return when to ask again: at the end of the operation, and at least every ten seconds."""
    left = world.seconds_left(identifier)
    return {"Retry-After": str(min(10, max(1, math.ceil(left))))} if left > 0 else {}
