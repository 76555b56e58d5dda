"""The operations of Azure Resource Manager: which method and path calls which operation of the world."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from urllib.parse import urlencode

from werkzeug.wrappers import Request, Response

from localcloud.azure.wire import access_routes, namespace_routes, offer_routes, policy_routes, sign_in
from localcloud.azure.wire.bodies import read_body
from localcloud.azure.wire.offer_routes import SKIP
from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.arm_resources import ArmOperation, WriteAnswer, WriteCondition
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.http_server import json_response
from shared.resource_ids import ClusterId

_LINK_VERSION = "2016-03-30"
"""The version in the links of a long-running operation of AKS (recordings of azure-cli)."""


def route(world: AzureWorld, request: Request) -> Response:
    """Answer a request, or raise ArmError."""
    for method, pattern, handler in _ROUTES:
        match = pattern.fullmatch(request.path)
        if match and method == request.method:
            return handler(world, request, match)
    raise ArmError(404, "NotFound", f"There is no {request.method} {request.path} here.")


_Handler = Callable[[AzureWorld, Request, re.Match[str]], Response]


def _get_group(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.get_group(at["subscription"], at["group"]))


def _group_exists(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    world.get_group(at["subscription"], at["group"])
    return Response(status=204)


def _list_groups(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_groups(at["subscription"])})


def _put_group(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, world.put_group(at["subscription"], at["group"], read_body(request)))


def _patch_group(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, world.patch_group(at["subscription"], at["group"], read_body(request)))


def _get_tags(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.get_tags(at["subscription"], at["group"], at["name"] or ""))


def _patch_tags(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    place = at["subscription"], at["group"], read_body(request), at["name"] or ""
    return _accepted(request, at, world.patch_tags(*place))


def _delete_group(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, world.delete_group(at["subscription"], at["group"]))


def _list_resources(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_resources(at["subscription"], at["group"])})


def _list_clusters(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    clusters, following = world.list_clusters(at["subscription"], request.args.get(SKIP, ""))
    if not following:
        return json_response(200, {"value": clusters})
    query = urlencode({"api-version": request.args["api-version"], SKIP: following})
    return json_response(200, {"value": clusters, "nextLink": f"{request.base_url}?{query}"})


def _list_activity(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    wanted = request.args.get("$filter", "")
    events, following = world.list_activity(at["subscription"], wanted, request.args.get(SKIP, ""))
    if not following:
        return json_response(200, {"value": events})
    query = {"api-version": request.args["api-version"], "$filter": wanted, SKIP: following}
    return json_response(200, {"value": events, "nextLink": f"{request.base_url}?{urlencode(query)}"})


def _list_clusters_of_group(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_clusters_of_group(at["subscription"], at["group"])})


def _get_cluster(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.get_cluster(_cluster(at)))


def _put_cluster(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, world.put_cluster(_cluster(at), read_body(request), _condition(request)))


def _patch_cluster(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, world.patch_cluster(_cluster(at), read_body(request), _condition(request)))


def _power(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    operations = {"stop": world.stop_cluster, "start": world.start_cluster, "abort": world.abort_cluster}
    return _accepted(request, at, operations[at["power"].lower()](_cluster(at)))


def _abort_pool(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, world.abort_pool(_cluster(at), at["pool"]))


def _delete_cluster(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, world.delete_cluster(_cluster(at), _condition(request)))


def _credentials(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.get_kubeconfig(_cluster(at), at["who"]))


def _list_pools(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_pools(_cluster(at))})


def _get_pool(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.get_pool(_cluster(at), at["pool"]))


def _put_pool(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    accepted = world.put_pool(_cluster(at), at["pool"], read_body(request), _condition(request))
    return _accepted(request, at, accepted)


def _delete_pool(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, world.delete_pool(_cluster(at), at["pool"], _condition(request)))


def _upgrade_node_image(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, world.upgrade_node_image(_cluster(at), at["pool"]))


def _upgrade_profile(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.get_upgrade_profile(_cluster(at)))


def _pool_upgrade_profile(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.get_pool_upgrade_profile(_cluster(at), at["pool"]))


def _pool_versions(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.list_pool_versions(_cluster(at)))


def _versions(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.list_versions(at["subscription"], at["location"]))


def _list_maintenance(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_maintenance(_cluster(at))})


def _get_maintenance(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.get_maintenance(_cluster(at), at["configuration"]))


def _put_maintenance(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    accepted = world.put_maintenance(_cluster(at), at["configuration"], read_body(request))
    return _accepted(request, at, accepted)


def _delete_maintenance(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, world.delete_maintenance(_cluster(at), at["configuration"]))


def _list_namespaces(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return namespace_routes.list_namespaces(world, at)


def _get_namespace(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return namespace_routes.get_namespace(world, at)


def _put_namespace(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, namespace_routes.put_namespace(world, request, at))


def _delete_namespace(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, namespace_routes.delete_namespace(world, at))


def _get_extension(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.get_extension(_cluster(at), at["extension"]))


def _put_extension(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, world.put_extension(_cluster(at), at["extension"], read_body(request)))


def _list_configurations(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_flux_configurations(_cluster(at))})


def _get_configuration(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.get_flux_configuration(_cluster(at), at["configuration"]))


def _put_configuration(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    accepted = world.put_flux_configuration(_cluster(at), at["configuration"], read_body(request))
    return _accepted(request, at, accepted)


def _delete_configuration(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return _accepted(request, at, world.delete_flux_configuration(_cluster(at), at["configuration"]))


def _operation(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    status = world.operation(at["subscription"], at["operation"])
    return json_response(200, status, _retry_after(world, at["operation"]))


def _operation_result(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    """Answer the Location of a write: 202 while it runs, then nothing or the error."""
    status = world.operation(at["subscription"], at["operation"])
    if status["status"] == "InProgress":
        headers = {"Location": request.url, **_retry_after(world, at["operation"])}
        return Response(status=202, headers=headers)
    if "error" in status:
        return json_response(400, {"error": status["error"]})
    return Response(status=204)


def _tenants(_world: AzureWorld, _: Request, _at: re.Match[str]) -> Response:
    return json_response(200, sign_in.tenants())


def _subscriptions(world: AzureWorld, _: Request, _at: re.Match[str]) -> Response:
    return json_response(200, sign_in.subscriptions(world))


def _subscription(_world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, sign_in.subscription(at["subscription"]))


def _retry_after(world: AzureWorld, operation: str) -> dict[str, str]:
    """Return when to ask again: at the end of the operation, and at least every ten seconds."""
    left = world.seconds_left(operation)
    return {"Retry-After": str(min(10, max(1, math.ceil(left))))} if left > 0 else {}


def _cluster(at: re.Match[str]) -> ClusterId:
    return ClusterId(at["subscription"], at["group"], at["name"])


def _condition(request: Request) -> WriteCondition:
    def bare(header: str) -> str:
        return request.headers.get(header, "").removeprefix("W/").strip('"')

    return WriteCondition(if_match=bare("If-Match"), if_none_match=bare("If-None-Match"))


def _accepted(request: Request, at: re.Match[str], accepted: WriteAnswer) -> Response:
    """Answer a write: add it to the request log, and name the operation that it started."""
    if accepted.kind:
        note = {"accepted": accepted.kind, "resource": accepted.resource}
        request.environ.setdefault("roadstead.note", {}).update(note)
    if accepted.document is None:
        reply = Response(status=accepted.status)
    else:
        reply = json_response(accepted.status, accepted.document)
    if accepted.operation is not None:
        of_group = accepted.operation.kind == "delete-group"
        if accepted.operation.kind.endswith(_BELOW):
            return _with_operation_below(request, accepted.operation, reply)
        provider = "Resources" if of_group else "ContainerService"
        version = request.args["api-version"] if of_group else _LINK_VERSION
        base = (
            f"{request.host_url}subscriptions/{at['subscription']}/providers/Microsoft.{provider}"
            f"/locations/{accepted.operation.location}"
        )
        query = f"{accepted.operation.id}?api-version={version}"
        if not of_group:
            reply.headers["Azure-AsyncOperation"] = f"{base}/operations/{query}"
        if accepted.status == 202:
            reply.headers["Location"] = f"{base}/operationresults/{query}"
        reply.headers["Retry-After"] = "1"
    return reply


_BELOW = ("-extension", "-configuration")
"""The ends of the kinds of operations on resources below a cluster."""


def _with_operation_below(request: Request, operation: ArmOperation, reply: Response) -> Response:
    """Name the operation of a resource below a cluster, as azure-rest-api-specs has its path."""
    version = request.args["api-version"]
    url = f"{request.host_url.rstrip('/')}{operation.resource}/operations/{operation.id}"
    reply.headers["Azure-AsyncOperation"] = f"{url}?api-version={version}"
    reply.headers["Retry-After"] = "1"
    return reply


_SUBSCRIPTION = "/subscriptions/(?P<subscription>[^/]+)"
_GROUP = _SUBSCRIPTION + "/resourcegroups/(?P<group>[^/]+)"
_CLUSTERS = "/providers/microsoft.containerservice/managedclusters"
_ACTIVITY = r"/providers/microsoft\.insights/eventtypes/management/values"
_CLUSTER = _GROUP + r"/providers/microsoft\.containerservice/managedclusters/(?P<name>[^/]+)"
_TAGS = _GROUP + (
    r"(?:/providers/microsoft\.containerservice/managedclusters/(?P<name>[^/]+))?"
    r"/providers/microsoft\.resources/tags/default"
)
"""The tags of a group or a cluster (Microsoft.Resources/tags): the portal and ``az tag`` write these."""
_POOL = _CLUSTER + "/agentpools/(?P<pool>[^/]+)"
_BELOW_CLUSTER = _CLUSTER + r"/providers/microsoft\.kubernetesconfiguration"
_EXTENSION = _BELOW_CLUSTER + "/extensions/(?P<extension>[^/]+)"
_CONFIGURATIONS = _BELOW_CLUSTER + "/fluxconfigurations"
_CONFIGURATION = _CONFIGURATIONS + "/(?P<configuration>[^/]+)"
_MAINTENANCE = _CLUSTER + "/maintenanceconfigurations"
_NAMESPACES = _CLUSTER + "/managednamespaces"
_PROVIDER = r"/subscriptions/(?P<subscription>[^/]+)/providers/microsoft\.(containerservice|resources)"
_WORK = _PROVIDER + "/locations/(?P<location>[^/]+)"
_TABLE: tuple[tuple[str, str, _Handler], ...] = (
    ("GET", "/tenants", _tenants),
    ("GET", "/subscriptions", _subscriptions),
    ("GET", _SUBSCRIPTION, _subscription),
    ("GET", _SUBSCRIPTION + "/resourcegroups", _list_groups),
    ("GET", _SUBSCRIPTION + _CLUSTERS, _list_clusters),
    ("GET", _SUBSCRIPTION + _ACTIVITY, _list_activity),
    ("GET", _GROUP + _CLUSTERS, _list_clusters_of_group),
    ("GET", _CLUSTER, _get_cluster),
    ("PUT", _CLUSTER, _put_cluster),
    ("PATCH", _CLUSTER, _patch_cluster),
    ("DELETE", _CLUSTER, _delete_cluster),
    ("POST", _CLUSTER + "/(?P<power>stop|start|abort)", _power),
    ("POST", _CLUSTER + "/listcluster(?P<who>user|admin)credential", _credentials),
    ("GET", _CLUSTER + "/agentpools", _list_pools),
    ("GET", _POOL, _get_pool),
    ("PUT", _POOL, _put_pool),
    ("DELETE", _POOL, _delete_pool),
    ("POST", _POOL + "/upgradenodeimageversion", _upgrade_node_image),
    ("POST", _POOL + "/abort", _abort_pool),
    ("GET", _POOL + "/upgradeprofiles/default", _pool_upgrade_profile),
    ("GET", _CLUSTER + "/availableagentpoolversions", _pool_versions),
    ("GET", _CLUSTER + "/upgradeprofiles/default", _upgrade_profile),
    ("GET", _WORK + "/kubernetesversions", _versions),
    ("GET", _MAINTENANCE, _list_maintenance),
    ("GET", _MAINTENANCE + "/(?P<configuration>[^/]+)", _get_maintenance),
    ("PUT", _MAINTENANCE + "/(?P<configuration>[^/]+)", _put_maintenance),
    ("DELETE", _MAINTENANCE + "/(?P<configuration>[^/]+)", _delete_maintenance),
    ("GET", _NAMESPACES, _list_namespaces),
    ("GET", _NAMESPACES + "/(?P<namespace>[^/]+)", _get_namespace),
    ("PUT", _NAMESPACES + "/(?P<namespace>[^/]+)", _put_namespace),
    ("DELETE", _NAMESPACES + "/(?P<namespace>[^/]+)", _delete_namespace),
    ("GET", _EXTENSION, _get_extension),
    ("PUT", _EXTENSION, _put_extension),
    ("GET", _EXTENSION + "/operations/(?P<operation>[^/]+)", _operation),
    ("GET", _CONFIGURATIONS, _list_configurations),
    ("GET", _CONFIGURATION, _get_configuration),
    ("PUT", _CONFIGURATION, _put_configuration),
    ("DELETE", _CONFIGURATION, _delete_configuration),
    ("GET", _CONFIGURATION + "/operations/(?P<operation>[^/]+)", _operation),
    ("GET", _TAGS, _get_tags),
    ("PATCH", _TAGS, _patch_tags),
    ("PUT", _TAGS, _patch_tags),
    ("GET", _GROUP, _get_group),
    ("HEAD", _GROUP, _group_exists),
    ("PUT", _GROUP, _put_group),
    ("PATCH", _GROUP, _patch_group),
    ("DELETE", _GROUP, _delete_group),
    ("GET", _GROUP + "/resources", _list_resources),
    ("GET", _WORK + "/operations/(?P<operation>[^/]+)", _operation),
    ("GET", _WORK + "/operationresults/(?P<operation>[^/]+)", _operation_result),
)
_ROUTES = [
    (method, re.compile(pattern, re.IGNORECASE), handler)
    for method, pattern, handler in (*access_routes.TABLE, *policy_routes.TABLE, *offer_routes.TABLE, *_TABLE)
]
