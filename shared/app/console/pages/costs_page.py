"""Costs: list prices and what Azure has billed, by environment, owner and system."""

from __future__ import annotations

from shared.app.api import schema
from shared.app.api.views.costs import costs_view
from shared.app.console.visit import Page, Visit
from shared.plan.list_price import amount

NO_PRICES = (
    "`roadstead prices update` writes `prices.yaml` into the fleet repository; the app adds up once a day."
)
"""What to do for list prices."""
Known = tuple[schema.ListedCost | None, schema.BilledCost | None]


def make(visit: Visit) -> Page:
    """Return the groups of clusters with their costs."""
    visit.ahead(visit.ports.state.costs, lambda: visit.ports.state.summaries(details=True))
    view = costs_view(visit.ports)
    listed = [cluster["listed"] for cluster in view["clusters"] if cluster["listed"]]
    groups = {"Environment": view["environments"], "Owner": view["owners"], "System": view["systems"]}
    return Page(
        "Costs",
        "costs_page.html",
        {
            "view": view,
            "groups": groups,
            "found": max((found["foundAt"] for found in listed if found["foundAt"]), default=None),
            "days": sorted({found["pricesOf"] for found in listed}),
            "money": money,
            "no_prices": "" if listed or view["listProblem"] else NO_PRICES,
            "no_bill": not any(cluster["billed"] for cluster in view["clusters"]) and not view["problems"],
            "own": sum(own["billed"]["cost"] for own in view["own"]),
        },
    )


def money(value: float, currency: str) -> str:
    """Return an amount of money as a page shows it."""
    return amount(value, currency, signed=False)


def span_of(known: Known) -> str:
    """Return the list price of a cluster, to the most of autoscaled pools; "unknown" for none."""
    listed = known[0]
    if listed is None:
        return "unknown"
    low, high = (money(listed[end], listed["currency"]) for end in ("low", "high"))
    return low if low == high else f"{low} to {high}"
