"""The operations on managed namespaces: which method and path calls which of the world."""

from __future__ import annotations

import re

from werkzeug.wrappers import Request, Response

from localcloud.azure.wire.bodies import read_body
from localcloud.azure.world.arm_resources import WriteAnswer
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.http_server import json_response
from shared.resource_ids import ClusterId


def list_namespaces(world: AzureWorld, at: re.Match[str]) -> Response:
    """Answer a list of the managed namespaces of a cluster."""
    return json_response(200, {"value": world.list_managed_namespaces(_cluster(at))})


def get_namespace(world: AzureWorld, at: re.Match[str]) -> Response:
    """Answer a GET of a managed namespace."""
    return json_response(200, world.get_managed_namespace(_cluster(at), at["namespace"]))


def put_namespace(world: AzureWorld, request: Request, at: re.Match[str]) -> WriteAnswer:
    """Return what a PUT has started."""
    return world.put_managed_namespace(_cluster(at), at["namespace"], read_body(request))


def delete_namespace(world: AzureWorld, at: re.Match[str]) -> WriteAnswer:
    """Return what a DELETE has started."""
    return world.delete_managed_namespace(_cluster(at), at["namespace"])


def _cluster(at: re.Match[str]) -> ClusterId:
    return ClusterId(at["subscription"], at["group"], at["name"])
