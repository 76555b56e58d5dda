"""Writes next to a cluster that break one rule of AKS each: of windows, extensions and configurations."""

from __future__ import annotations

from typing import Any

WINDOW = {
    "schedule": {"weekly": {"intervalWeeks": 1, "dayOfWeek": "Sunday"}},
    "durationHours": 4,
    "startTime": "01:00",
}
AUTO = "aksManagedAutoUpgradeSchedule"


def scheduled(**schedule: Any) -> dict[str, Any]:
    return {"maintenanceWindow": WINDOW | {"schedule": schedule}}


def window(**fields: Any) -> dict[str, Any]:
    return {"maintenanceWindow": WINDOW | fields}


MAINTENANCE: dict[str, tuple[str, dict[str, Any]]] = {
    "weekly-slots-of-default": (AUTO, {"timeInWeek": []}),
    "hours-of-a-day": ("default", {"timeInWeek": [{"day": "Monday", "hourSlots": [24]}]}),
    "one-schedule": (AUTO, scheduled()),
    "default-is-weekly": ("default", scheduled(daily={"intervalDays": 1})),
    "duration": (AUTO, window(durationHours=3)),
    "start-time": (AUTO, window(startTime="25:00")),
    "start-date-to-come": (AUTO, window(startDate="2020-01-01")),
    "offset": (AUTO, window(utcOffset="1")),
    "dates-in-order": (AUTO, window(notAllowedDates=[{"start": "2026-02-02", "end": "2026-02-01"}])),
    "interval-daily.intervalDays": (AUTO, scheduled(daily={"intervalDays": 8})),
    "interval-weekly.intervalWeeks": (AUTO, scheduled(weekly={"intervalWeeks": 5, "dayOfWeek": "Sunday"})),
    "interval-absoluteMonthly.intervalMonths": (
        AUTO,
        scheduled(absoluteMonthly={"intervalMonths": 7, "dayOfMonth": 1}),
    ),
    "interval-absoluteMonthly.dayOfMonth": (
        AUTO,
        scheduled(absoluteMonthly={"intervalMonths": 1, "dayOfMonth": 32}),
    ),
    "interval-relativeMonthly.intervalMonths": (
        AUTO,
        scheduled(relativeMonthly={"intervalMonths": 7, "weekIndex": "First", "dayOfWeek": "Sunday"}),
    ),
}


EXTENSIONS: dict[str, dict[str, Any]] = {
    "extension-without-type": {"extensionType": "microsoft.dapr"},
    "version-with-auto-upgrade": {"version": "1.19.5", "autoUpgradeMinorVersion": True},
    "train-without-auto-upgrade": {"autoUpgradeMinorVersion": False, "releaseTrain": "Preview"},
}
_APPLIED: dict[str, Any] = {
    **{"scope": "cluster", "namespace": "flux-system", "sourceKind": "GitRepository"},
    "gitRepository": {"url": "https://github.com/example/fleet"},
}
CONFIGURATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "name-of-configuration": ("Flux", _APPLIED),
    "source-of-another-kind": ("flux-system", _APPLIED | {"sourceKind": "OCIRepository"}),
    "scope-of-configuration-is-fixed": ("flux-system", _APPLIED | {"scope": "namespace"}),
    "namespace-of-configuration-is-fixed": ("flux-system", _APPLIED | {"namespace": "elsewhere"}),
    "needs-unknown-kustomization": (
        "flux-system",
        _APPLIED | {"kustomizations": {"apps": {"path": "./apps", "dependsOn": ["base"]}}},
    ),
}
"""By rule: a write to the configuration flux-system, or to another one, after one that Azure has taken."""
VALID = _APPLIED
