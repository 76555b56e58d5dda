"""What the resources of a subscription cost, as the query of Cost Management answers.

The form of the answer is that of the examples of specification/cost-management (azure-rest-api-specs):
columns, and lines of values. The amounts are the local cloud's own: a node costs 1 an hour, a tier 0.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from localcloud.azure.world.azure_engine import AzureEngine
from localcloud.azure.world.request_limits import ARM_READ
from shared.json_tree import Json

NODE, TIER = 1.0, 0.1
CURRENCY = "USD"
_HOST = "https://management.azure.com"


class CostQuery:
    """The query of Cost Management."""

    engine: AzureEngine

    def get_costs(self, subscription: str, since: str, until: str, skip: str = "") -> Json:
        """Return a page of the costs of each resource from a day to another, both included."""
        with self.engine.request(subscription, ARM_READ):
            days = (date.fromisoformat(until) - date.fromisoformat(since)).days + 1
            lines = list(self._lines(subscription.lower(), days * 24))
        begin = int(skip or 0)
        end = begin + self.engine.page_size
        columns = [
            {"name": "Cost", "type": "Number"},
            {"name": "ResourceId", "type": "String"},
            {"name": "Currency", "type": "String"},
        ]
        link = (
            f"{_HOST}/subscriptions/{subscription}/providers/Microsoft.CostManagement/query?$skiptoken={end}"
        )
        more = link if end < len(lines) else None
        return {"properties": {"columns": columns, "rows": lines[begin:end], "nextLink": more}}

    def _lines(self, subscription: str, hours: int) -> Iterator[list[object]]:
        for key, cluster in sorted(self.engine.clusters.items()):
            if key.subscription != subscription:
                continue
            document = cluster.view()
            group = (
                f"/subscriptions/{subscription}/resourcegroups/{document['properties']['nodeResourceGroup']}"
            )
            if document["sku"]["tier"] != "Free":
                yield [TIER * hours, str(document["id"]).lower(), CURRENCY]
            for name, pool in sorted(cluster.pools.items()):
                nodes = int(pool.get("count") or 0)
                kind = "providers/microsoft.compute/virtualmachinescalesets"
                yield [NODE * hours * nodes, f"{group}/{kind}/aks-{name}-vmss".lower(), CURRENCY]
