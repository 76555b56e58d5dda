"""The operations on policy assignments and policy states: which method and path calls which of the world."""

from __future__ import annotations

import re

from werkzeug.wrappers import Request, Response

from localcloud.azure.wire.access_routes import Handler, answer
from localcloud.azure.wire.bodies import read_body
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.http_server import json_response
from shared.resource_ids import ClusterId


def _list(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_policy_assignments(at["subscription"], at["group"])})


def _put(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return answer(request, world.put_policy_assignment(_cluster(at), at["assignment"], read_body(request)))


def _delete(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return answer(request, world.delete_policy_assignment(_cluster(at), at["assignment"]))


def _query(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    found = world.query_policy_states(_cluster(at), request.args.get("$filter", ""))
    return json_response(200, {"@odata.count": len(found), "value": found})


def _cluster(at: re.Match[str]) -> ClusterId:
    return ClusterId(at["subscription"], at["group"], at["name"])


_GROUP = "/subscriptions/(?P<subscription>[^/]+)/resourcegroups/(?P<group>[^/]+)"
_CLUSTER = _GROUP + r"/providers/microsoft\.containerservice/managedclusters/(?P<name>[^/]+)"
_ASSIGNMENTS = r"/providers/microsoft\.authorization/policyassignments"
_STATES = r"/providers/microsoft\.policyinsights/policystates/latest/queryresults"
TABLE: tuple[tuple[str, str, Handler], ...] = (
    ("GET", _GROUP + _ASSIGNMENTS, _list),
    ("PUT", _CLUSTER + _ASSIGNMENTS + "/(?P<assignment>[^/]+)", _put),
    ("DELETE", _CLUSTER + _ASSIGNMENTS + "/(?P<assignment>[^/]+)", _delete),
    ("POST", _CLUSTER + _STATES, _query),
)
