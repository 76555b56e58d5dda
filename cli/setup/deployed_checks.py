"""What only Azure knows of a fleet that is deployed: its functions, its queues, and whom its alerts reach.

It is read with the Azure CLI, as whoever is signed in: the apps may read none of it. That a rule of an alert
is there and enabled, control says. Sources: learn.microsoft.com/rest/api/appservice/web-apps/list-functions,
.../rest/api/servicebus/controlplane-stable/queues/list-by-namespace,
.../rest/api/monitor/scheduled-query-rules (list by resource group) and .../action-groups/get,
.../azure/azure-functions/functions-deployment-technologies ("Trigger syncing").
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from cli.azure_deployment import Az, DeploymentFailed, apps_among
from cli.deployment_checks import DeploymentObstacle
from cli.setup.azure_fleet import SITES, tagged
from shared.sentences import some_of

QUEUES, RULES, GROUPS = "2024-01-01", "2021-08-01", "2023-01-01"
PLAIN = "events"
"""The queue to which Event Grid delivers."""
FIXED: Mapping[str, Any] = {
    "requiresSession": True,
    "requiresDuplicateDetection": True,
    "enablePartitioning": False,
}
"""What a queue has from its beginning, as ``infra/queue.bicep`` says; but ``PLAIN`` has no sessions."""
CHANGEABLE: Mapping[str, Any] = {
    "status": "Active",
    "lockDuration": "PT1M",
    "maxDeliveryCount": 10,
    "duplicateDetectionHistoryTimeWindow": "PT10M",
    "deadLetteringOnMessageExpiration": True,
}
"""What can be changed again."""
NAMES = ("plans", "previews", "jobs", "changes", "deletes", PLAIN)
_RULE = "microsoft.insights/scheduledqueryrules"
_DEPLOY = "deploy the fleet again: roadstead deploy, or azd up"
_NAME = "`az monitor action-group update --ids {} --add-action email duty duty@example.com`"
_SYNC = "`az rest --method POST --url {}/syncfunctiontriggers?api-version=" + SITES + "`, or restart the app"
_NAMED = 4


def azure_obstacles(
    az: Az, fleet: str, subscription: str, known: Mapping[str, Collection[str]]
) -> Iterator[DeploymentObstacle]:
    """Yield what is wrong with a fleet in Azure; what may not be read is said too. Raises DeploymentFailed.

    ``known`` has the names of the functions that each app says it has, nothing for an app that is silent.
    """
    types = tagged(az, fleet, subscription)
    sites = types.get("microsoft.web/sites", [])
    if not sites:
        raise DeploymentFailed(
            f"the subscription {subscription} has no app of the fleet {fleet}: give --subscription"
        )
    ids = {site["name"]: site["id"] for site in sites}
    for app, name in apps_among([*ids]).items():
        yield from _of_functions(az, name, ids[name], known.get(app, ()))
    for bus in types.get("microsoft.servicebus/namespaces", []):
        yield from _of_queues(az, bus["id"])
    yield from _of_alerts(az, types.get(_RULE, []))


def _of_functions(az: Az, name: str, site: str, known: Collection[str]) -> Iterator[DeploymentObstacle]:
    what = f"functions of {name}"
    try:
        found = _get(az, f"Count the functions of {name}.", f"{site}/functions", SITES)
    except DeploymentFailed as error:
        yield _unread(what, error)
        return
    indexed = {function["name"].rpartition("/")[2]: function.get("properties") or {} for function in found}
    missing = sorted({*known} - {*indexed})
    disabled = sorted(function for function, its in indexed.items() if its.get("isDisabled"))
    if not indexed:
        yield DeploymentObstacle(
            what,
            "Azure has indexed none: the app does not start, and no message or timer wakes it",
            "its log in Application Insights names the setting that is missing or wrong",
        )
    elif missing:
        yield DeploymentObstacle(
            what,
            f"Azure has indexed {len({*known} & {*indexed})} of {len(known)}, "
            f"without {some_of(missing, _NAMED)}",
            _SYNC.format(site),
        )
    if disabled:
        yield DeploymentObstacle(
            what,
            f"disabled: {some_of(disabled, _NAMED)}",
            f"remove its setting Disabled, which `az functionapp config appsettings list --ids {site}` shows",
        )


def _of_queues(az: Az, bus: str) -> Iterator[DeploymentObstacle]:
    name = bus.rpartition("/")[2]
    try:
        found = _get(az, f"Read the queues of {name}.", f"{bus}/queues", QUEUES)
    except DeploymentFailed as error:
        yield _unread(f"queues of {name}", error)
        return
    queues = {queue["name"]: queue["properties"] for queue in found}
    for queue in NAMES:
        if queue not in queues:
            yield DeploymentObstacle(f"queue {queue}", f"{name} has no such queue", _DEPLOY)
            continue
        fixed = {**FIXED, "requiresSession": queue != PLAIN}
        lasting, others = (_differing(queues[queue], wanted) for wanted in (fixed, CHANGEABLE))
        if lasting:
            delete = f"`az servicebus queue delete --ids {bus}/queues/{queue}`"
            remedy = f"Azure does not change that: {delete}, {_DEPLOY}; timers send again what waited there"
            yield DeploymentObstacle(f"queue {queue}", "; ".join([*lasting, *others]), remedy)
        elif others:
            yield DeploymentObstacle(f"queue {queue}", "; ".join(others), _DEPLOY)


def _differing(properties: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} is {properties.get(name)}, not {value}"
        for name, value in wanted.items()
        if properties.get(name) != value
    ]


def _of_alerts(az: Az, rules: list[dict[str, str]]) -> Iterator[DeploymentObstacle]:
    if not rules:
        return
    place = rules[0]["id"].rpartition("/")[0]
    try:
        found = _get(az, "Read the alert rules.", place, RULES)
    except DeploymentFailed as error:
        yield _unread("alerts", error)
        return
    known = {rule["name"]: rule["properties"] for rule in found}
    groups: set[str] = set()
    silent = list[str]()
    for name in sorted(rule["name"] for rule in rules):
        calls = ((known.get(name) or {}).get("actions") or {}).get("actionGroups") or ()
        groups |= {str(group) for group in calls}
        silent += [] if calls else [name]
    if silent:
        yield DeploymentObstacle(
            "alerts",
            f"{some_of(silent, _NAMED)}: no action group is called, and only the portal shows them",
            f"name one in alertActionGroupIds, and {_DEPLOY}",
        )
    for group in sorted(groups):
        problem = _problem_of(az, group)
        if problem:
            yield DeploymentObstacle(f"action group {group.rpartition('/')[2]}", problem, _NAME.format(group))


def _problem_of(az: Az, group: str) -> str:
    """Return why an action group calls nobody, "" where it does."""
    try:
        found = _read(az, "See whom an action group calls.", group, GROUPS)
    except DeploymentFailed as error:
        return f"the action group cannot be read: {error}"
    properties: Mapping[str, Any] = found["properties"]
    receivers = [
        receiver
        for name, listed in properties.items()
        if name.endswith("Receivers")
        for receiver in listed or ()
    ]
    if not properties.get("enabled", True):
        return "the action group is disabled"
    if not receivers:
        return "the action group has no receiver"
    if all(receiver.get("status") == "Disabled" for receiver in receivers):
        return "each receiver of the action group has unsubscribed"
    return ""


def _unread(what: str, error: DeploymentFailed) -> DeploymentObstacle:
    return DeploymentObstacle(
        what, f"not known: {error}", "sign in as somebody who may read it, such as Reader of the group"
    )


def _get(az: Az, why: str, place: str, version: str) -> list[dict[str, Any]]:
    """Return a list of Resource Manager. Raises DeploymentFailed."""
    page = _read(az, why, place, version)
    items: list[dict[str, Any]] = page["value"]
    while page.get("nextLink"):
        page = az.read(why, "rest", "--method", "GET", "--url", page["nextLink"])
        items += page["value"]
    return items


def _read(az: Az, why: str, place: str, version: str) -> Any:
    return az.read(why, "rest", "--method", "GET", "--url", f"{place}?api-version={version}")
