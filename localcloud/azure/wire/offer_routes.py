"""The lists of what a subscription may have: which path calls which of the world."""

from __future__ import annotations

import re
from urllib.parse import urlencode

from werkzeug.wrappers import Request, Response

from localcloud.azure.wire.access_routes import Handler
from localcloud.azure.wire.bodies import read_body
from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.http_server import json_response

SKIP = "$skiptoken"
"""The parameter in the link to a list's next page (azure-rest-api-specs, ManagedClusterListResult.nextLink,
is a URL that a client follows as it is)."""
_LOCATION = re.compile(r"location eq '([^']+)'")


def _locations(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_locations(at["subscription"])})


def _sizes(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    wanted = _LOCATION.fullmatch(request.args.get("$filter", ""))
    if wanted is None:  # without it the list has every region, which is no use to anybody here
        raise ArmError(400, "BadRequest", "The filter has to be of the form: location eq 'eastus'.")
    return json_response(200, {"value": world.list_sizes(at["subscription"], wanted[1])})


def _cores(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_compute_usages(at["subscription"], at["location"])})


def _addresses(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_network_usages(at["subscription"], at["location"])})


def _clusters(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_cluster_usages(at["subscription"], at["location"])})


def _networks(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_networks(at["subscription"])})


def _providers(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_providers(at["subscription"])})


def _features(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_features(at["subscription"], at["namespace"])})


def _extensions(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    if request.args.get("releaseTrain", "stable").lower() != "stable":
        raise ArmError(400, "BadRequest", "The local Azure has the stable release train, and no other.")
    return json_response(200, {"value": world.list_extension_versions(at["subscription"], at["location"])})


def _alerts(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    if request.args.get("monitorCondition") != "Fired" or request.args.get("timeRange") != "30d":
        raise ArmError(
            400, "BadRequest", "The local Azure lists what has fired in 30 days, and nothing else."
        )
    group = request.args.get("targetResourceGroup", "")
    found, following = world.list_alerts(at["subscription"], group, request.args.get(SKIP, ""))
    query = urlencode({**request.args, SKIP: following})
    return json_response(
        200, {"value": found, **({"nextLink": f"{request.base_url}?{query}"} if following else {})}
    )


def _alert_rules(world: AzureWorld, _: Request, at: re.Match[str]) -> Response:
    return json_response(200, {"value": world.list_alert_rules(at["subscription"], at["group"])})


def _costs(world: AzureWorld, request: Request, at: re.Match[str]) -> Response:
    body = read_body(request)
    try:
        grouping = [group["name"] for group in body["dataset"]["grouping"]]
        asked = (body["type"], body["timeframe"], body["dataset"]["granularity"], grouping)
        since, until = (body["timePeriod"][end].partition("T")[0] for end in ("from", "to"))
    except (KeyError, TypeError) as error:
        raise ArmError(400, "BadRequest", f"Invalid query definition: {error}") from error
    if asked != ("ActualCost", "Custom", "None", ["ResourceId"]):  # the one question that is asked here
        raise ArmError(400, "BadRequest", f"Invalid query definition: {asked}")
    skip = request.args.get("$skiptoken", "")
    return json_response(200, world.get_costs(at["subscription"], since, until, skip))


_SUBSCRIPTION = "/subscriptions/(?P<subscription>[^/]+)"
_RULES = r"/resourcegroups/(?P<group>[^/]+)/providers/microsoft\.insights/scheduledqueryrules"
_EXTENSIONS = (
    r"/providers/microsoft\.kubernetesconfiguration/locations/(?P<location>[^/]+)"
    r"/extensiontypes/microsoft\.flux/versions"
)
_USAGES = "/locations/(?P<location>[^/]+)/usages"
TABLE: tuple[tuple[str, str, Handler], ...] = (
    ("GET", _SUBSCRIPTION + "/locations", _locations),
    ("GET", _SUBSCRIPTION + r"/providers/microsoft\.compute/skus", _sizes),
    ("GET", _SUBSCRIPTION + r"/providers/microsoft\.compute" + _USAGES, _cores),
    ("GET", _SUBSCRIPTION + r"/providers/microsoft\.network" + _USAGES, _addresses),
    ("GET", _SUBSCRIPTION + r"/providers/microsoft\.containerservice" + _USAGES, _clusters),
    ("GET", _SUBSCRIPTION + r"/providers/microsoft\.network/virtualnetworks", _networks),
    ("GET", _SUBSCRIPTION + _EXTENSIONS, _extensions),
    ("GET", _SUBSCRIPTION + r"/providers/microsoft\.alertsmanagement/alerts", _alerts),
    ("GET", _SUBSCRIPTION + _RULES, _alert_rules),
    ("POST", _SUBSCRIPTION + r"/providers/microsoft\.costmanagement/query", _costs),
    ("GET", _SUBSCRIPTION + "/providers", _providers),
    (
        "GET",
        _SUBSCRIPTION + r"/providers/microsoft\.features/providers/(?P<namespace>[^/]+)/features",
        _features,
    ),
)
