"""Refusals about a maintenance configuration; ``now("name")`` is its name, ``now("today")`` the day."""

from __future__ import annotations

import re

from localcloud.azure.world.refusals.rule import RefusalRule, RequestedWrite, outside

_WINDOW = "maintenanceWindow"
_SCHEDULE = f"{_WINDOW}.schedule"
_KINDS = ("daily", "weekly", "absoluteMonthly", "relativeMonthly")
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
_OFFSET = re.compile(r"[+-](0\d|1[0-4]):[0-5]\d")


def _ends_before_start(asked: RequestedWrite) -> bool:
    return any(span["end"] < span["start"] for span in asked.now(f"{_WINDOW}.notAllowedDates") or ())


def _hours(asked: RequestedWrite) -> bool:
    slots = [hour for document in asked.now("timeInWeek") or () for hour in document.get("hourSlots") or ()]
    return any(not 0 <= hour <= 23 for hour in slots)


RULES = (
    RefusalRule(
        "weekly-slots-of-default",
        "docs planned-maintenance: legacy properties of a default maintenance window",
        "timeInWeek",
        "timeInWeek and notAllowedTime are allowed only in the maintenance configuration 'default'.",
        lambda asked: (
            asked.now("name") != "default"
            and (asked.says("timeInWeek") is not None or asked.says("notAllowedTime") is not None)
        ),
    ),
    RefusalRule(
        "hours-of-a-day",
        "models TimeInWeek.hour_slots: 0 to 23",
        "timeInWeek",
        "hourSlots must be between 0 and 23.",
        _hours,
    ),
    RefusalRule(
        "one-schedule",
        "models Schedule: one and only one of the schedule types",
        "schedule",
        "schedule must have exactly one of daily, weekly, absoluteMonthly and relativeMonthly.",
        lambda asked: (
            asked.now(_WINDOW) and sum(asked.now(f"{_SCHEDULE}.{kind}") is not None for kind in _KINDS) != 1
        ),
    ),
    RefusalRule(
        "default-is-weekly",
        "docs planned-maintenance: the table of schedule types; message: Azure/AgentBaker#6529",
        "schedule",
        "Only weekly schedule is supported for control plane upgrade maintenance configuration: default.",
        lambda asked: (
            asked.now("name") == "default" and asked.now(_WINDOW) and asked.now(f"{_SCHEDULE}.weekly") is None
        ),
    ),
    RefusalRule(
        "duration",
        "models MaintenanceWindow.duration_hours: 4 to 24",
        "durationHours",
        "durationHours must be between 4 and 24.",
        lambda asked: asked.now(_WINDOW) and not 4 <= (asked.now(f"{_WINDOW}.durationHours") or 0) <= 24,
    ),
    RefusalRule(
        "start-time",
        "models MaintenanceWindow.start_time: HH:MM",
        "startTime",
        "startTime must be HH:MM.",
        lambda asked: asked.now(_WINDOW) and _TIME.fullmatch(asked.now(f"{_WINDOW}.startTime") or "") is None,
    ),
    RefusalRule(
        "offset",
        "models MaintenanceWindow.utc_offset: +/-HH:mm",
        "utcOffset",
        "utcOffset must be +HH:MM or -HH:MM.",
        lambda asked: (
            asked.now(_WINDOW) and _OFFSET.fullmatch(asked.now(f"{_WINDOW}.utcOffset") or "+00:00") is None
        ),
    ),
    RefusalRule(
        "start-date-to-come",
        "hashicorp/terraform-provider-azurerm#22762, #23985; MicrosoftDocs/azure-docs#114302: also in a "
        "later PUT",
        "startDate",
        "maintenanceWindow.startDate must not be in the past.",
        lambda asked: (asked.says(f"{_WINDOW}.startDate") or "9999") < asked.now("today"),
    ),
    RefusalRule(
        "dates-in-order",
        "models DateSpan: an end after its start",
        "notAllowedDates",
        "notAllowedDates must end after they start.",
        _ends_before_start,
    ),
    *(
        RefusalRule(
            f"interval-{kind}.{field}",
            f"REST specification {kind[0].upper()}{kind[1:]}Schedule: minimum {low}, maximum {high}",
            f"{kind}.{field}",
            f"{kind}.{field} must be between {low} and {high}.",
            outside(f"{_SCHEDULE}.{kind}.{field}", low, high),
        )
        for kind, field, low, high in (
            ("daily", "intervalDays", 1, 7),
            ("weekly", "intervalWeeks", 1, 4),
            ("absoluteMonthly", "intervalMonths", 1, 6),
            ("absoluteMonthly", "dayOfMonth", 1, 31),
            ("relativeMonthly", "intervalMonths", 1, 6),
        )
    ),
)
