"""Maintenance configurations in AKS: their names, and what Azure fills in."""

from __future__ import annotations

from datetime import date
from typing import Any

from localcloud.azure.world.arm_errors import AksError, missing
from localcloud.azure.world.refusals import maintenance_rules
from localcloud.azure.world.refusals.rule import RequestedWrite, check
from shared.json_tree import Json
from shared.resource_ids import ClusterId

NAMES = ("default", "aksManagedAutoUpgradeSchedule", "aksManagedNodeOSUpgradeSchedule")
_NO_SUCH_NAME = (
    "Only 'default', 'aksManagedAutoUpgradeSchedule' and 'aksManagedNodeOSUpgradeSchedule' are allowed "
    "configNames for maintenance configuration."
)
"""Source: Azure/ARO-HCP#3260."""


def maintenance_document(cluster: ClusterId, name: str, body: Json, today: date) -> dict[str, Any]:
    """Return the document of a maintenance configuration after a PUT, or refuse."""
    if name not in NAMES:
        raise AksError(400, "InvalidParameter", _NO_SUCH_NAME)
    properties = dict(body.get("properties") or {})
    after = properties | {"name": name, "today": today.isoformat()}
    check(maintenance_rules.RULES, RequestedWrite(given=properties, after=after))
    if "maintenanceWindow" in properties:
        filled = {"utcOffset": "+00:00", "startDate": today.isoformat()}
        properties["maintenanceWindow"] = filled | properties["maintenanceWindow"]
    elif name != "default" or not properties:
        raise missing("maintenanceWindow")
    return {
        "id": f"{cluster.resource}/maintenanceConfigurations/{name}",
        "name": name,
        "type": "Microsoft.ContainerService/managedClusters/maintenanceConfigurations",
        "properties": properties,
    }
