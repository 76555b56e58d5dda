"""One cluster: what it is, why it is so, what happened to it, where it differs, and what runs on it."""

from __future__ import annotations

from collections.abc import Iterable

from shared.app.api import schema
from shared.app.api.audit import acts_on
from shared.app.api.views.clusters import EVENTS_SHOWN, cluster_detail, describe_unknown
from shared.app.api.views.drift import drift_of_cluster
from shared.app.api.views.tree import outputs_view, tree_view
from shared.app.api.views.why import why_view
from shared.app.console.visit import Page, Visit, message
from shared.frozen import dataclass


@dataclass(frozen=True)
class Moment:
    """Something in the timeline: an event, or an act of a person."""

    at: str
    what: str
    detail: str
    commit: str = ""
    bad: bool = False


def make(visit: Visit) -> Page:
    """Return the page of a cluster, also of one that no longer exists or is not there yet."""
    name, ports, state = visit.path["name"], visit.ports, visit.ports.state
    visit.ahead(
        lambda: state.plan(state.fleet().commit),
        lambda: state.events(name, EVENTS_SHOWN),
        lambda: state.changes_of(name),
        lambda: acts_on(name, ports),
        state.sweep,
    )
    detail, why = cluster_detail(name, ports), why_view(name, ports)
    if detail is None or why is None:
        return message("No such cluster", describe_unknown(name, ports), 404)
    drift, tree = drift_of_cluster(name, ports), tree_view(name, ports)
    outputs = outputs_view(name, ports)
    return Page(
        name,
        "cluster_page.html",
        {
            "name": name,
            "why": why,
            "cluster": detail if "conditions" in detail else None,
            "timeline": timeline(detail["events"], why["acts"]),
            "drift": drift["clusters"][0] if drift and drift["clusters"] else None,
            "accepted": drift["accepted"] if drift else [],
            "tree": tree,
            "outputs": outputs["outputs"] if outputs else {},
        },
    )


def timeline(events: Iterable[schema.EventView], acts: Iterable[schema.ActView]) -> list[Moment]:
    """Return what happened to a cluster and what people did to it, newest first."""
    found = [
        Moment(
            event["at"] or "", f"{event['reason']} {event['step']}".strip(), event["message"], bad=_bad(event)
        )
        for event in events
    ]
    found += [
        Moment(
            act["at"] or "",
            f"{act['action']} by {act['by']}",
            "; ".join(filter(None, (act["reason"], act["result"]))),
        )
        for act in acts
    ]
    return sorted(found, key=lambda moment: moment.at, reverse=True)


def _bad(event: schema.EventView) -> bool:
    return event["type"] == "Warning"
