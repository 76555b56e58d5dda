"""Activity: what people did, what happened to a cluster, what no queue could deliver, and what was sent."""

from __future__ import annotations

from datetime import UTC, datetime

from shared.app.api import schema
from shared.app.api.acts.fleet import dead_letters_view
from shared.app.api.audit import audit_view
from shared.app.api.views.clusters import events_view
from shared.app.api.views.notifications import routes_view
from shared.app.console.visit import Page, Visit, message

ACTS = 100
SEARCHED = 1000
EVENTS = SENT = 50
FILTERS = ("person", "cluster", "about")


def make(visit: Visit) -> Page:
    """Return a page of acts, or those among the newest that a filter selects."""
    chosen = {name: visit.asked(name) for name in FILTERS if visit.asked(name)}
    try:
        given = visit.asked("before")
        before = datetime.fromisoformat(given.replace(" ", "+")) if given else None
    except ValueError:
        return message("No such time", "The parameter before must be a time in ISO 8601.", 400)
    if before is not None and before.tzinfo is None:
        before = before.replace(tzinfo=UTC)
    limit = SEARCHED if chosen else ACTS
    visit.ahead(
        lambda: audit_view(limit, before, visit.ports),
        lambda: routes_view(visit.ports),
        lambda: dead_letters_view(visit.ports),
        lambda: _events(chosen.get("cluster", ""), visit),
    )
    audit = audit_view(limit, before, visit.ports)
    acts = [act for act in audit["acts"] if _matches(act, chosen)]
    routes = routes_view(visit.ports)["routes"]
    sent = [(route["name"], message) for route in routes for message in route["messages"]]
    return Page(
        "Activity",
        "activity_page.html",
        {
            "acts": acts[:ACTS],
            "next": audit["next"] or "",
            "searched": len(audit["acts"]) if chosen else 0,
            "chosen": chosen,
            "events": _events(chosen.get("cluster", ""), visit),
            "letters": dead_letters_view(visit.ports)["deadLetters"],
            "routes": routes,
            "sent": sorted(sent, key=lambda found: found[1]["at"] or "", reverse=True)[:SENT],
        },
        live=not before,
    )


def _events(cluster: str, visit: Visit) -> list[schema.EventView]:
    """Return the newest events of the cluster that is chosen: those of the whole fleet are in no list."""
    found = events_view(cluster, EVENTS, None, visit.ports) if cluster else None
    return found["events"] if found else []


def _matches(act: schema.ActView, chosen: dict[str, str]) -> bool:
    """Return whether an act is by the person, on the cluster, and about the commit or target of a filter."""
    person, cluster, about = (chosen.get(name, "").lower() for name in FILTERS)
    return (
        person in act["by"].lower()
        and (not cluster or cluster in act["clusters"])
        and (about in act["target"].lower() or about in act["action"])
    )
