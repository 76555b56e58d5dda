"""Azure's activity log: who wrote to the clusters of a subscription, and when.

Source: learn.microsoft.com/azure/azure-monitor/platform/rest-activity-log, and activityLogs_API.json of
azure-rest-api-specs (2015-04-01), which allows these forms of a filter and no other. It has no ``caller``
among the fields that can be selected, so whole events come.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from shared.azure.rate_limits import ARM_READ
from shared.frozen import dataclass
from shared.ports.azure.calls import PageCall, Request
from shared.resource_ids import SubscriptionId

PROVIDER = "Microsoft.ContainerService"
_EVENTS = "/subscriptions/{target.subscription}/providers/microsoft.insights/eventtypes/management/values"


def events_between(after: datetime, before: datetime) -> str:
    """Return the filter of the events of AKS between two times."""
    begin, end = (moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for moment in (after, before))
    times = f"eventTimestamp ge '{begin}' and eventTimestamp le '{end}'"
    return f"{times} and resourceProvider eq '{PROVIDER}'"


@dataclass(frozen=True)
class ListActivity(PageCall):
    """Return a page of the events of a subscription that a filter leaves, the newest first.

    Each has ``caller``, ``eventTimestamp``, ``resourceId``, ``operationName.value`` and ``status.value``.
    """

    request, limits = Request("LIST", _EVENTS, "2015-04-01"), (ARM_READ,)
    target: SubscriptionId
    filter: str

    @property
    def query(self) -> Mapping[str, str]:
        """The filter."""
        return {"$filter": self.filter}
