"""The operations on identities and role assignments: which method and path calls which of the world."""

from __future__ import annotations

import re
from collections.abc import Callable

from werkzeug.wrappers import Request, Response

from localcloud.azure.wire.bodies import read_body
from localcloud.azure.world.access.role_assignments import (
    member_of_filter,
    principal_of_filter,
    role_of_filter,
)
from localcloud.azure.world.arm_resources import WriteAnswer
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.http_server import json_response

Handler = Callable[[AzureWorld, Request, re.Match[str]], Response]


def _get_identity(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.get_identity(*_identity(at)))


def _list_identities(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_identities(at["subscription"])})


def _put_identity(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return answer(request, world.put_identity(*_identity(at), read_body(request)))


def _delete_identity(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return answer(request, world.delete_identity(*_identity(at)))


def _list_credentials(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_federated_credentials(*_identity(at))})


def _get_credential(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.get_federated_credential(*_identity(at), at["credential"]))


def _put_credential(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    body = read_body(request)
    return answer(request, world.put_federated_credential(*_identity(at), at["credential"], body))


def _delete_credential(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return answer(request, world.delete_federated_credential(*_identity(at), at["credential"]))


def _list_assignments(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    given = request.args.get("$filter", "")
    if member := member_of_filter(given):
        return json_response(200, {"value": world.list_grants(at["subscription"], member)})
    principal = principal_of_filter(given)
    return json_response(200, {"value": world.list_role_assignments(at["subscription"], principal)})


def _list_roles(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    given = request.args.get("$filter", "")
    if not given:
        return json_response(200, {"value": world.list_role_definitions(at["subscription"])})
    role = role_of_filter(given)
    return json_response(200, {"value": world.list_roles(at["subscription"], role)})


def _get_assignment(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.get_role_assignment(at["subscription"], at["scope"], at["assignment"]))


def _put_assignment(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    body = read_body(request)
    accepted = world.put_role_assignment(at["subscription"], at["scope"], at["assignment"], body)
    return answer(request, accepted)


def _delete_assignment(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    accepted = world.delete_role_assignment(at["subscription"], at["scope"], at["assignment"])
    return answer(request, accepted)


def _identity(at: re.Match[str]) -> tuple[str, str, str]:
    return at["subscription"], at["group"], at["identity"]


def answer(request: Request, accepted: WriteAnswer) -> Response:
    """Answer a write that is complete at once, and add it to the request log."""
    if accepted.kind:
        note = {"accepted": accepted.kind, "resource": accepted.resource}
        request.environ.setdefault("roadstead.note", {}).update(note)
    if accepted.document is None:
        return Response(status=accepted.status)
    return json_response(accepted.status, accepted.document)


_SUBSCRIPTION = "/subscriptions/(?P<subscription>[^/]+)"
_IDENTITY = (
    _SUBSCRIPTION + r"/resourcegroups/(?P<group>[^/]+)/providers/microsoft\.managedidentity"
    "/userassignedidentities/(?P<identity>[^/]+)"
)
_IDENTITIES = _SUBSCRIPTION + r"/providers/microsoft\.managedidentity/userassignedidentities"
_CREDENTIAL = _IDENTITY + "/federatedidentitycredentials/(?P<credential>[^/]+)"
_ROLES = r"/providers/microsoft\.authorization"
_ASSIGNMENT = (
    r"(?P<scope>/subscriptions/(?P<subscription>[^/]+)(/.+)?)"
    + _ROLES
    + "/roleassignments/(?P<assignment>[^/]+)"
)
TABLE: tuple[tuple[str, str, Handler], ...] = (
    ("GET", _SUBSCRIPTION + _ROLES + "/roleassignments", _list_assignments),
    ("GET", _SUBSCRIPTION + _ROLES + "/roledefinitions", _list_roles),
    ("GET", _ASSIGNMENT, _get_assignment),
    ("PUT", _ASSIGNMENT, _put_assignment),
    ("DELETE", _ASSIGNMENT, _delete_assignment),
    ("GET", _IDENTITIES, _list_identities),
    ("GET", _IDENTITY, _get_identity),
    ("PUT", _IDENTITY, _put_identity),
    ("DELETE", _IDENTITY, _delete_identity),
    ("GET", _IDENTITY + "/federatedidentitycredentials", _list_credentials),
    ("GET", _CREDENTIAL, _get_credential),
    ("PUT", _CREDENTIAL, _put_credential),
    ("DELETE", _CREDENTIAL, _delete_credential),
)
