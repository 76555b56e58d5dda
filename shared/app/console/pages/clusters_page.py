"""The clusters: a list with filters in its address, in pages that the server makes."""

from __future__ import annotations

from collections.abc import Mapping

from shared.app.api.parts import ClusterPage
from shared.app.api.views.cluster_list import Sort, selection_of
from shared.app.api.views.clusters import UnknownCommit, fleet_view
from shared.app.api.views.costs import costs_by_name
from shared.app.api.views.notifications import failing_routes
from shared.app.api.views.rollouts import waits_now
from shared.app.console.pages.costs_page import NO_PRICES, money, span_of
from shared.app.console.visit import Page, Visit, message
from shared.cluster.record_parts import Phase

ROWS = 50
"""On a page: the record of each is read."""
FILTERS = ("text", "phase", "environment", "location", "version", "class", "label", "owner", "cause", "sort")
COLUMNS: Mapping[str, str] = {
    "environment": "Environment",
    "location": "Region",
    "version": "Version",
    "commit": "Commit",
    "since": "Since",
    "reason": "Reason",
    "nodes": "Nodes",
    "cost": "A month",
    "billed": "Billed",
    "class": "Class",
    "subscription": "Subscription",
    "compared": "Compared with Azure",
    "flux": "Flux read",
    "updated": "Changed",
}
"""Of the facts on a page, the last three say how old they are."""
ORDERS: Mapping[str, str] = {
    "phase": "what needs attention first",
    "name": "by name",
    "environment": "by environment",
    "location": "by region",
    "version": "the oldest version first",
    "-version": "the newest version first",
    "-since": "what changed last first",
    "since": "what has stood longest first",
}
LASTS: Mapping[str, str] = {"4h": "4 hours", "1d": "a day", "7d": "a week", "30d": "30 days"}
"""For how long a suspension can be chosen."""
SHOWN = ("environment", "location", "version", "commit", "since", "cost", "reason")
COSTS = frozenset({"cost", "billed"})
NUMBERS = COSTS | {"nodes"}


def make(visit: Visit) -> Page:
    """Return a page of the list."""
    query = {name: visit.asked(name) for name in FILTERS}
    try:
        selection = selection_of(query, Sort.PHASE)
    except ValueError:
        sentence = f"The phases are {', '.join(Phase)}; sort is by {', '.join(Sort)}."
        return message("No such filter", sentence, 400)
    chosen = [name for name in visit.asked("columns").split(",") if name in COLUMNS]
    columns = chosen or list(SHOWN)
    ports, state = visit.ports, visit.ports.state
    visit.ahead(
        lambda: state.summaries(details=selection.needs_details),
        lambda: state.plan(state.fleet().commit),
        lambda: waits_now(state.fleet(), ports),
        lambda: failing_routes(state.fleet(), ports),
        state.count_dead_letters,
        *([state.costs] if COSTS & {*columns} else []),
    )
    try:
        view = fleet_view(visit.ports, ClusterPage(visit.asked("after"), ROWS), selection)
    except UnknownCommit:
        return message("No such commit", "The commit was not planned.", 404)
    names = [cluster["name"] for cluster in view["clusters"]]
    costs = costs_by_name(names, ports) if COSTS & {*columns} else {}
    no_prices = "cost" in columns and not any(found[0] for found in costs.values())
    if no_prices and not chosen:
        columns.remove("cost")
    return Page(
        "Clusters",
        "clusters_page.html",
        {
            "view": view,
            "filters": query,
            "chosen": [value for name, value in query.items() if value and name != "sort"],
            "query": {**query, "columns": visit.asked("columns")},
            "orders": ORDERS,
            "order": ("-" if selection.descending else "") + selection.sort,
            "phases": [phase.value for phase in Phase],
            "columns": columns,
            "numbers": NUMBERS,
            "costs": costs,
            "environments": sorted(view["counts"]["environments"]) if view["counts"] else [],
            "no_prices": NO_PRICES if no_prices else "",
            "span_of": span_of,
            "money": money,
            "all_columns": COLUMNS,
            "after": visit.asked("after"),
            "lasts": LASTS,
        },
    )
