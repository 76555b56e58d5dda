"""The operations of Azure Resource Manager: which method and path calls which operation of the world."""

from __future__ import annotations

import re

from werkzeug.wrappers import Request, Response

from localcloud.azure.wire import sign_in
from localcloud.azure.wire.arm_answers import (
    CLUSTER,
    SKIP,
    Handler,
    accepted,
    cluster,
    listed,
    operation,
    operation_result,
    read,
    read_body,
    write,
)
from localcloud.azure.world.access.role_assignments import (
    member_of_filter,
    principal_of_filter,
    role_of_filter,
)
from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.http_server import json_response

_LOCATION = re.compile(r"location eq '([^']+)'")


def route(world: AzureWorld, request: Request) -> Response:
    """Answer a request, or raise ArmError."""
    found = find(request.method, request.path)
    if found is None:
        raise ArmError(404, "NotFound", f"There is no {request.method} {request.path} here.")
    handler, at = found
    return handler(world, request, at)


def find(method: str, path: str) -> tuple[Handler, re.Match[str]] | None:
    """Return what answers a request, and the parts of its path."""
    matches = ((handler, pattern.fullmatch(path)) for verb, pattern, handler in _ROUTES if verb == method)
    return next(((handler, match) for handler, match in matches if match), None)


def _subscriptions(world: AzureWorld, _: Request, _at: re.Match[str]) -> Response:
    return json_response(200, sign_in.subscriptions(world))


def _group_exists(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    world.get_group(at["subscription"], at["group"])
    return Response(status=204)


def _get_tags(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, world.get_tags(at["subscription"], at["group"], at["name"] or ""))


def _patch_tags(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    place = at["subscription"], at["group"], read_body(request), at["name"] or ""
    return accepted(request, at, world.patch_tags(*place))


def _list_clusters(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    return listed(request, *world.list_clusters(at["subscription"], request.args.get(SKIP, "")))


def _list_activity(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    wanted, skip = request.args.get("$filter", ""), request.args.get(SKIP, "")
    return listed(request, *world.list_activity(at["subscription"], wanted, skip))


def _list_sizes(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    wanted = _LOCATION.fullmatch(request.args.get("$filter", ""))
    if wanted is None:  # without it the list has every region, which is no use to anybody here
        raise ArmError(400, "BadRequest", "The filter has to be of the form: location eq 'eastus'.")
    return json_response(200, {"value": world.list_sizes(at["subscription"], wanted[1])})


def _list_alerts(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    if request.args.get("monitorCondition") != "Fired" or request.args.get("timeRange") != "30d":
        raise ArmError(
            400, "BadRequest", "The local Azure lists what has fired in 30 days, and nothing else."
        )
    group, skip = request.args.get("targetResourceGroup", ""), request.args.get(SKIP, "")
    return listed(request, *world.list_alerts(at["subscription"], group, skip))


def _list_extensions(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    if request.args.get("releaseTrain", "stable").lower() != "stable":
        raise ArmError(400, "BadRequest", "The local Azure has the stable release train, and no other.")
    return json_response(200, {"value": world.list_extension_versions(at["subscription"], at["location"])})


def _query_costs(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    body = read_body(request)
    try:
        grouping = [group["name"] for group in body["dataset"]["grouping"]]
        asked = (body["type"], body["timeframe"], body["dataset"]["granularity"], grouping)
        since, until = (body["timePeriod"][end].partition("T")[0] for end in ("from", "to"))
    except (KeyError, TypeError) as error:
        raise ArmError(400, "BadRequest", f"Invalid query definition: {error}") from error
    if asked != ("ActualCost", "Custom", "None", ["ResourceId"]):  # the one question that is asked here
        raise ArmError(400, "BadRequest", f"Invalid query definition: {asked}")
    return json_response(200, world.get_costs(at["subscription"], since, until, request.args.get(SKIP, "")))


def _query_policy_states(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    found = world.query_policy_states(cluster(at), request.args.get("$filter", ""))
    return json_response(200, {"@odata.count": len(found), "value": found})


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


_SUBSCRIPTION = "/subscriptions/(?P<subscription>[^/]+)"
_GROUP = _SUBSCRIPTION + "/resourcegroups/(?P<group>[^/]+)"
_CLUSTERS = r"/providers/microsoft\.containerservice/managedclusters"
_ACTIVITY = r"/providers/microsoft\.insights/eventtypes/management/values"
_CLUSTER = _GROUP + _CLUSTERS + "/(?P<name>[^/]+)"
_TAGS = _GROUP + rf"(?:{_CLUSTERS}/(?P<name>[^/]+))?" + r"/providers/microsoft\.resources/tags/default"
"""The tags of a group or a cluster (Microsoft.Resources/tags): the portal and ``az tag`` write these."""
_POOL = _CLUSTER + "/agentpools/(?P<pool>[^/]+)"
_BELOW_CLUSTER = _CLUSTER + r"/providers/microsoft\.kubernetesconfiguration"
_EXTENSION = _BELOW_CLUSTER + "/extensions/(?P<extension>[^/]+)"
_CONFIGURATIONS = _BELOW_CLUSTER + "/fluxconfigurations"
_CONFIGURATION = _CONFIGURATIONS + "/(?P<configuration>[^/]+)"
_MAINTENANCES = _CLUSTER + "/maintenanceconfigurations"
_MAINTENANCE = _MAINTENANCES + "/(?P<configuration>[^/]+)"
_NAMESPACES = _CLUSTER + "/managednamespaces"
_NAMESPACE = _NAMESPACES + "/(?P<namespace>[^/]+)"
_WORK = _SUBSCRIPTION + r"/providers/microsoft\.(containerservice|resources)/locations/(?P<location>[^/]+)"
_OPERATION = "/operations/(?P<operation>[^/]+)"
_IDENTITIES = r"/providers/microsoft\.managedidentity/userassignedidentities"
_IDENTITY = _GROUP + _IDENTITIES + "/(?P<identity>[^/]+)"
_CREDENTIALS = _IDENTITY + "/federatedidentitycredentials"
_CREDENTIAL = _CREDENTIALS + "/(?P<credential>[^/]+)"
_ACCESS = r"/providers/microsoft\.authorization"
_ASSIGNMENT = rf"(?P<scope>{_SUBSCRIPTION}(/.+)?){_ACCESS}/roleassignments/(?P<assignment>[^/]+)"
_POLICIES = _ACCESS + "/policyassignments"
_POLICY = _CLUSTER + _POLICIES + "/(?P<assignment>[^/]+)"
_STATES = r"/providers/microsoft\.policyinsights/policystates/latest/queryresults"
_RULES = r"/providers/microsoft\.insights/scheduledqueryrules"
_COMPUTE, _NETWORK, _AKS = (
    rf"/providers/microsoft\.{name}" for name in ("compute", "network", "containerservice")
)
_USAGES = "/locations/(?P<location>[^/]+)/usages"
_EXTENSIONS = (
    r"/providers/microsoft\.kubernetesconfiguration/locations/(?P<location>[^/]+)"
    r"/extensiontypes/microsoft\.flux/versions"
)
_FEATURES = r"/providers/microsoft\.features/providers/(?P<namespace>[^/]+)/features"

_OF_GROUP = ("subscription", "group")
_OF_IDENTITY = (*_OF_GROUP, "identity")
_OF_ASSIGNMENT = ("subscription", "scope", "assignment")
_OF_LOCATION = ("subscription", "location")
_TABLE: tuple[tuple[str, str, Handler], ...] = (
    ("GET", _SUBSCRIPTION + _ACCESS + "/roleassignments", _list_assignments),
    ("GET", _SUBSCRIPTION + _ACCESS + "/roledefinitions", _list_roles),
    ("GET", _ASSIGNMENT, read(lambda world: world.get_role_assignment, *_OF_ASSIGNMENT)),
    ("PUT", _ASSIGNMENT, write(lambda world: world.put_role_assignment, *_OF_ASSIGNMENT)),
    ("DELETE", _ASSIGNMENT, write(lambda world: world.delete_role_assignment, *_OF_ASSIGNMENT)),
    ("GET", _SUBSCRIPTION + _IDENTITIES, read(lambda world: world.list_identities, "subscription")),
    ("GET", _IDENTITY, read(lambda world: world.get_identity, *_OF_IDENTITY)),
    ("PUT", _IDENTITY, write(lambda world: world.put_identity, *_OF_IDENTITY)),
    ("DELETE", _IDENTITY, write(lambda world: world.delete_identity, *_OF_IDENTITY)),
    ("GET", _CREDENTIALS, read(lambda world: world.list_federated_credentials, *_OF_IDENTITY)),
    ("GET", _CREDENTIAL, read(lambda world: world.get_federated_credential, *_OF_IDENTITY, "credential")),
    ("PUT", _CREDENTIAL, write(lambda world: world.put_federated_credential, *_OF_IDENTITY, "credential")),
    (
        "DELETE",
        _CREDENTIAL,
        write(lambda world: world.delete_federated_credential, *_OF_IDENTITY, "credential"),
    ),
    ("GET", _GROUP + _POLICIES, read(lambda world: world.list_policy_assignments, *_OF_GROUP)),
    ("PUT", _POLICY, write(lambda world: world.put_policy_assignment, CLUSTER, "assignment")),
    ("DELETE", _POLICY, write(lambda world: world.delete_policy_assignment, CLUSTER, "assignment")),
    ("POST", _CLUSTER + _STATES, _query_policy_states),
    ("GET", _SUBSCRIPTION + "/locations", read(lambda world: world.list_locations, "subscription")),
    ("GET", _SUBSCRIPTION + _COMPUTE + "/skus", _list_sizes),
    ("GET", _SUBSCRIPTION + _COMPUTE + _USAGES, read(lambda world: world.list_compute_usages, *_OF_LOCATION)),
    ("GET", _SUBSCRIPTION + _NETWORK + _USAGES, read(lambda world: world.list_network_usages, *_OF_LOCATION)),
    ("GET", _SUBSCRIPTION + _AKS + _USAGES, read(lambda world: world.list_cluster_usages, *_OF_LOCATION)),
    (
        "GET",
        _SUBSCRIPTION + _NETWORK + "/virtualnetworks",
        read(lambda world: world.list_networks, "subscription"),
    ),
    ("GET", _SUBSCRIPTION + _EXTENSIONS, _list_extensions),
    ("GET", _SUBSCRIPTION + r"/providers/microsoft\.alertsmanagement/alerts", _list_alerts),
    ("GET", _GROUP + _RULES, read(lambda world: world.list_alert_rules, *_OF_GROUP)),
    ("POST", _SUBSCRIPTION + r"/providers/microsoft\.costmanagement/query", _query_costs),
    ("GET", _SUBSCRIPTION + "/providers", read(lambda world: world.list_providers, "subscription")),
    (
        "GET",
        _SUBSCRIPTION + _FEATURES,
        read(lambda world: world.list_features, "subscription", "namespace"),
    ),
    ("GET", "/tenants", read(lambda _: sign_in.tenants)),
    ("GET", "/subscriptions", _subscriptions),
    ("GET", _SUBSCRIPTION, read(lambda _: sign_in.subscription, "subscription")),
    ("GET", _SUBSCRIPTION + "/resourcegroups", read(lambda world: world.list_groups, "subscription")),
    ("GET", _SUBSCRIPTION + _CLUSTERS, _list_clusters),
    ("GET", _SUBSCRIPTION + _ACTIVITY, _list_activity),
    ("GET", _GROUP + _CLUSTERS, read(lambda world: world.list_clusters_of_group, *_OF_GROUP)),
    ("GET", _CLUSTER, read(lambda world: world.get_cluster, CLUSTER)),
    ("PUT", _CLUSTER, write(lambda world: world.put_cluster, CLUSTER, condition=True)),
    ("PATCH", _CLUSTER, write(lambda world: world.patch_cluster, CLUSTER, condition=True)),
    ("DELETE", _CLUSTER, write(lambda world: world.delete_cluster, CLUSTER, condition=True)),
    ("POST", _CLUSTER + "/stop", write(lambda world: world.stop_cluster, CLUSTER)),
    ("POST", _CLUSTER + "/start", write(lambda world: world.start_cluster, CLUSTER)),
    ("POST", _CLUSTER + "/abort", write(lambda world: world.abort_cluster, CLUSTER)),
    (
        "POST",
        _CLUSTER + "/listcluster(?P<who>user|admin)credential",
        read(lambda world: world.get_kubeconfig, CLUSTER, "who"),
    ),
    ("GET", _CLUSTER + "/agentpools", read(lambda world: world.list_pools, CLUSTER)),
    ("GET", _POOL, read(lambda world: world.get_pool, CLUSTER, "pool")),
    ("PUT", _POOL, write(lambda world: world.put_pool, CLUSTER, "pool", condition=True)),
    ("DELETE", _POOL, write(lambda world: world.delete_pool, CLUSTER, "pool", condition=True)),
    (
        "POST",
        _POOL + "/upgradenodeimageversion",
        write(lambda world: world.upgrade_node_image, CLUSTER, "pool"),
    ),
    ("POST", _POOL + "/abort", write(lambda world: world.abort_pool, CLUSTER, "pool")),
    (
        "GET",
        _POOL + "/upgradeprofiles/default",
        read(lambda world: world.get_pool_upgrade_profile, CLUSTER, "pool"),
    ),
    ("GET", _CLUSTER + "/availableagentpoolversions", read(lambda world: world.list_pool_versions, CLUSTER)),
    ("GET", _CLUSTER + "/upgradeprofiles/default", read(lambda world: world.get_upgrade_profile, CLUSTER)),
    ("GET", _WORK + "/kubernetesversions", read(lambda world: world.list_versions, *_OF_LOCATION)),
    ("GET", _MAINTENANCES, read(lambda world: world.list_maintenance, CLUSTER)),
    ("GET", _MAINTENANCE, read(lambda world: world.get_maintenance, CLUSTER, "configuration")),
    ("PUT", _MAINTENANCE, write(lambda world: world.put_maintenance, CLUSTER, "configuration")),
    ("DELETE", _MAINTENANCE, write(lambda world: world.delete_maintenance, CLUSTER, "configuration")),
    ("GET", _NAMESPACES, read(lambda world: world.list_managed_namespaces, CLUSTER)),
    ("GET", _NAMESPACE, read(lambda world: world.get_managed_namespace, CLUSTER, "namespace")),
    ("PUT", _NAMESPACE, write(lambda world: world.put_managed_namespace, CLUSTER, "namespace")),
    ("DELETE", _NAMESPACE, write(lambda world: world.delete_managed_namespace, CLUSTER, "namespace")),
    ("GET", _EXTENSION, read(lambda world: world.get_extension, CLUSTER, "extension")),
    ("PUT", _EXTENSION, write(lambda world: world.put_extension, CLUSTER, "extension")),
    ("GET", _EXTENSION + _OPERATION, operation),
    ("GET", _CONFIGURATIONS, read(lambda world: world.list_flux_configurations, CLUSTER)),
    ("GET", _CONFIGURATION, read(lambda world: world.get_flux_configuration, CLUSTER, "configuration")),
    ("PUT", _CONFIGURATION, write(lambda world: world.put_flux_configuration, CLUSTER, "configuration")),
    (
        "DELETE",
        _CONFIGURATION,
        write(lambda world: world.delete_flux_configuration, CLUSTER, "configuration"),
    ),
    ("GET", _CONFIGURATION + _OPERATION, operation),
    ("GET", _TAGS, _get_tags),
    ("PATCH", _TAGS, _patch_tags),
    ("PUT", _TAGS, _patch_tags),
    ("GET", _GROUP, read(lambda world: world.get_group, *_OF_GROUP)),
    ("HEAD", _GROUP, _group_exists),
    ("PUT", _GROUP, write(lambda world: world.put_group, *_OF_GROUP)),
    ("PATCH", _GROUP, write(lambda world: world.patch_group, *_OF_GROUP)),
    ("DELETE", _GROUP, write(lambda world: world.delete_group, *_OF_GROUP)),
    ("GET", _GROUP + "/resources", read(lambda world: world.list_resources, *_OF_GROUP)),
    ("GET", _WORK + _OPERATION, operation),
    ("GET", _WORK + "/operationresults/(?P<operation>[^/]+)", operation_result),
)
_ROUTES = [(method, re.compile(pattern, re.IGNORECASE), handler) for method, pattern, handler in _TABLE]
