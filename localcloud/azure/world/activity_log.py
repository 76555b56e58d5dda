"""The activity log of Azure Monitor: an event for each write to a cluster that Azure accepted.

Source: specification/monitor of github.com/Azure/azure-rest-api-specs, activityLogs_API.json 2015-04-01:
the properties of an event, and the forms of a filter that are allowed, "No other syntax is allowed". The
names of the operations are those of Microsoft's page "Azure permissions for Containers". The log has 90 days
(learn.microsoft.com/azure/azure-monitor/platform/activity-log, "Retention period").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from localcloud.azure.world.access.directory import FUNCTION_APP
from localcloud.azure.world.arm_errors import ArmError

PAGE = 200
RETAINED = timedelta(days=90)
_CONTAINERS = "Microsoft.ContainerService/managedClusters"
OPERATIONS: Mapping[str, str] = {
    **dict.fromkeys(("create", "update"), f"{_CONTAINERS}/write"),
    "delete": f"{_CONTAINERS}/delete",
    **{kind: f"{_CONTAINERS}/{kind}/action" for kind in ("stop", "start", "abort")},
    **dict.fromkeys(("create-pool", "update-pool"), f"{_CONTAINERS}/agentPools/write"),
    "delete-pool": f"{_CONTAINERS}/agentPools/delete",
    "upgrade-pool": f"{_CONTAINERS}/agentPools/upgradeNodeImageVersion/action",
    "abort-pool": f"{_CONTAINERS}/agentPools/abort/action",
    "put-namespace": f"{_CONTAINERS}/managedNamespaces/write",
    "delete-namespace": f"{_CONTAINERS}/managedNamespaces/delete",
    "put-maintenance": f"{_CONTAINERS}/maintenanceConfigurations/write",
    "delete-maintenance": f"{_CONTAINERS}/maintenanceConfigurations/delete",
}
_TIME = r"'(?P<{}>[0-9T:.\-]+Z)'"
_FILTER = re.compile(
    rf"eventTimestamp ge {_TIME.format('after')} and eventTimestamp le {_TIME.format('before')}"
    r"( and (?P<field>resourceGroupName|resourceUri|resourceProvider|correlationId) eq '(?P<value>[^']*)')?"
)
_FIELDS = {
    "resourceGroupName": "resourceGroupName",
    "resourceUri": "resourceId",
    "correlationId": "correlationId",
}


class ActivityEvents:
    """The events of all subscriptions; who calls is that of the request, the function app without one."""

    def __init__(self) -> None:
        self._events: list[tuple[datetime, dict[str, Any]]] = []
        self._caller: ContextVar[tuple[str, str]] = ContextVar("caller", default=(FUNCTION_APP.id, ""))

    @contextmanager
    def called_by(self, caller: str, correlation: str = "") -> Iterator[None]:
        """Let somebody be the caller of what happens meanwhile, with an id of the client's choice."""
        token = self._caller.set((caller, correlation))
        try:
            yield
        finally:
            self._caller.reset(token)

    @property
    def call(self) -> tuple[str, str]:
        """Who calls now, and the client's id, "" for none."""
        return self._caller.get()

    def record(self, kind: str, resource: str, now: datetime) -> None:
        """Record a write that was accepted; one of another provider is in no list here."""
        operation = OPERATIONS.get(kind)
        if operation is None:
            return
        _, _, subscription, _, group, *_ = resource.split("/")
        identifier = str(uuid5(NAMESPACE_OID, f"event {len(self._events)}"))
        at = now.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        event = {
            "caller": self.call[0],
            "correlationId": self.call[1] or identifier,
            "eventDataId": identifier,
            "id": f"{resource}/events/{identifier}/ticks/{int(now.timestamp())}",
            "eventName": _text("EndRequest"),
            "category": _text("Administrative"),
            "level": "Informational",
            "operationId": identifier,
            "operationName": _text(operation),
            "resourceGroupName": group,
            "resourceProviderName": _text("Microsoft.ContainerService"),
            "resourceId": resource,
            "status": _text("Accepted"),
            "eventTimestamp": at,
            "submissionTimestamp": at,
            "subscriptionId": subscription,
        }
        self._events.append((now, event))

    def page(
        self, subscription: str, wanted: str, after: str, now: datetime
    ) -> tuple[list[dict[str, Any]], str]:
        """Return a page of the events that a filter leaves, newest first, and where the next one begins."""
        chosen = _FILTER.fullmatch(wanted)
        if chosen is None:
            raise ArmError(400, "BadRequest", f"The filter '{wanted}' is not valid.")
        begin, end = (datetime.fromisoformat(chosen[name]) for name in ("after", "before"))
        if begin < now - RETAINED:
            raise ArmError(400, "BadRequest", "The start time cannot be more than 90 days in the past.")
        found = [
            event
            for at, event in reversed(self._events)
            if begin <= at <= end
            and event["subscriptionId"].lower() == subscription.lower()
            and _has(event, chosen)
        ]
        start = int(after or 0)
        return found[start : start + PAGE], str(start + PAGE) if len(found) > start + PAGE else ""


def _has(event: Mapping[str, Any], chosen: re.Match[str]) -> bool:
    if not chosen["field"]:
        return True
    field = _FIELDS.get(chosen["field"])
    held = event[field] if field else event["resourceProviderName"]["value"]
    return str(held).lower() == chosen["value"].lower()


def _text(value: str) -> dict[str, str]:
    return {"value": value, "localizedValue": value}
