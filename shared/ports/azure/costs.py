"""What Azure has billed for the resources of a subscription, by the query of Cost Management.

Source: specification/cost-management of github.com/Azure/azure-rest-api-specs (Query_Usage with grouping):
columns with names, and lines of values in their order. Each further page is asked for with a ``$skiptoken``.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

from shared.azure.rate_limits import ARM_READ
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.ports.azure.calls import AzureCall, Request
from shared.resource_ids import SubscriptionId

_QUERY = "/subscriptions/{target.subscription}/providers/Microsoft.CostManagement/query"


@dataclass(frozen=True)
class GetCosts(AzureCall[Json]):
    """Return what resources have cost from one day to another, both included, as ISO 8601.

    The document has ``properties.columns`` with a ``name`` each, lines of values for them, and
    ``properties.nextLink``; ``skip`` is what that link has, "" for the first page.
    """

    request, limits = Request("POST", _QUERY, "2025-03-01", {"$skiptoken": "{skip}"}), (ARM_READ,)
    needs = ("properties.columns", "properties.columns[].name")
    target: SubscriptionId
    since: str
    until: str
    skip: str = ""

    @property
    def body(self) -> Json:
        """The question: the actual cost of each resource in sum."""
        return {
            "type": "ActualCost",
            "timeframe": "Custom",
            "timePeriod": {"from": f"{self.since}T00:00:00Z", "to": f"{self.until}T23:59:59Z"},
            "dataset": {
                "granularity": "None",
                "aggregation": {"totalCost": {"name": "Cost", "function": "Sum"}},
                "grouping": [{"type": "Dimension", "name": "ResourceId"}],
            },
        }


def following(document: Json) -> str:
    """Return the ``skip`` of the page after a document, "" after the last one."""
    link: Any = document["properties"].get("nextLink")
    found = parse_qs(urlsplit(link).query) if isinstance(link, str) else {}
    return next((values[0] for name, values in found.items() if name.lower() == "$skiptoken"), "")
