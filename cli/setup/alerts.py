"""Whom the alerts of a fleet would reach: read with the Azure CLI, as whoever may read the action groups.

The apps may not read this: an action group may be anywhere. That a rule is there and enabled, control says.
Sources: learn.microsoft.com/rest/api/monitor/scheduled-query-rules (list by resource group) and
.../action-groups/get.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cli.azure_deployment import Az, DeploymentFailed
from cli.deployment_checks import Obstacle
from cli.setup.azure_fleet import tagged

RULES, GROUPS = "2021-08-01", "2023-01-01"
_TYPE = "microsoft.insights/scheduledqueryrules"
_DEPLOY = "deploy the fleet again: roadstead deploy, or azd up"
_NAME = "`az monitor action-group update --ids {} --add-action email duty duty@example.com`"


def alert_obstacles(az: Az, fleet: str, subscription: str) -> Iterator[Obstacle]:
    """Yield what keeps the alerts of a fleet from somebody. Raises DeploymentFailed."""
    rules = tagged(az, fleet, subscription).get(_TYPE, [])
    if not rules:
        return
    place = rules[0]["id"].rpartition("/")[0]
    found = az.read(
        "Read the alert rules.", "rest", "--method", "GET", "--url", f"{place}?api-version={RULES}"
    )
    known = {rule["name"]: rule["properties"] for rule in found["value"]}
    groups: set[str] = set()
    for name in sorted(rule["name"] for rule in rules):
        calls = ((known.get(name) or {}).get("actions") or {}).get("actionGroups") or ()
        groups |= {str(group) for group in calls}
        if not calls:
            remedy = f"name one in alertActionGroupIds, and {_DEPLOY}"
            yield Obstacle(
                f"alert {name}", "the alert rule calls no action group: only the portal shows it", remedy
            )
    for group in sorted(groups):
        problem = _problem_of(az, group)
        if problem:
            yield Obstacle(f"action group {group.rpartition('/')[2]}", problem, _NAME.format(group))


def _problem_of(az: Az, group: str) -> str:
    """Return why an action group calls nobody, "" where it does."""
    url = f"{group}?api-version={GROUPS}"
    try:
        found = az.read("See whom an action group calls.", "rest", "--method", "GET", "--url", url)
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
