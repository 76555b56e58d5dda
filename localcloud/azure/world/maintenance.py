"""Maintenance configurations in AKS: their names, their rules, and what Azure fills in."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from localcloud.azure.world.arm_errors import ArmError, invalid, missing
from shared.fleet.json_tree import Json
from shared.fleet.resource_ids import ClusterId

NAMES = ("default", "aksManagedAutoUpgradeSchedule", "aksManagedNodeOSUpgradeSchedule")
_SCHEDULES = ("daily", "weekly", "absoluteMonthly", "relativeMonthly")
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
_OFFSET = re.compile(r"[+-](0\d|1[0-4]):[0-5]\d")
_WEEK = ("timeInWeek", "notAllowedTime")


def maintenance_document(cluster: ClusterId, name: str, body: Json, today: date) -> dict[str, Any]:
    """Return the document of a maintenance configuration after a PUT, or refuse."""
    if name not in NAMES:
        message = f"The maintenance configuration name '{name}' is none of {', '.join(NAMES)}."
        raise ArmError(400, "InvalidMaintenanceConfigurationName", message)
    properties = {key: value for key, value in (body.get("properties") or {}).items() if value is not None}
    window = properties.get("maintenanceWindow")
    weekly = [key for key in _WEEK if key in properties]
    if name != "default" and weekly:
        raise invalid(f"{weekly[0]} is not allowed for maintenance configuration '{name}'.", weekly[0])
    if window is not None:
        properties["maintenanceWindow"] = _window(dict(window), today)
    elif not weekly:
        raise missing("maintenanceWindow")
    return {
        "id": f"{cluster.resource}/maintenanceConfigurations/{name}",
        "name": name,
        "type": "Microsoft.ContainerService/managedClusters/maintenanceConfigurations",
        "properties": properties,
    }


def _window(window: dict[str, Any], today: date) -> dict[str, Any]:
    schedule = {key: value for key, value in (window.get("schedule") or {}).items() if value is not None}
    if len(schedule) != 1 or next(iter(schedule)) not in _SCHEDULES:
        raise invalid(f"schedule must have exactly one of {', '.join(_SCHEDULES)}.", "schedule")
    if not 4 <= (window.get("durationHours") or 0) <= 24:
        raise invalid("durationHours must be between 4 and 24.", "durationHours")
    if not _TIME.fullmatch(str(window.get("startTime"))):
        raise invalid("startTime must be HH:MM.", "startTime")
    window.setdefault("utcOffset", "+00:00")
    if not _OFFSET.fullmatch(str(window["utcOffset"])):
        raise invalid("utcOffset must be +HH:MM or -HH:MM.", "utcOffset")
    window.setdefault("startDate", today.isoformat())
    return {**window, "schedule": schedule}
