"""One cluster: what it is, why it is so, what happened to it, where it differs, and what runs on it."""

from __future__ import annotations

from shared.app.api.views.clusters import EVENTS_SHOWN, cluster_detail, describe_unknown
from shared.app.api.views.drift import drift_of_cluster
from shared.app.api.views.tree import outputs_view, tree_view
from shared.app.api.views.why import why_view
from shared.app.console.visit import Page, Visit, message


def make(visit: Visit) -> Page:
    """Return the page of a cluster, also of one that no longer exists or is not there yet.

    What people did to it is among its events: the audit is read by the page of acts alone.
    """
    name, ports, state = visit.path["name"], visit.ports, visit.ports.state
    visit.ahead(
        lambda: state.plan(state.fleet().commit),
        lambda: state.events(name, EVENTS_SHOWN),
        lambda: state.changes_of(name),
        state.sweep,
    )
    detail, why = cluster_detail(name, ports), why_view(name, ports, acts=False)
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
            "timeline": detail["events"],
            "drift": drift["clusters"][0] if drift and drift["clusters"] else None,
            "accepted": drift["accepted"] if drift else [],
            "tree": tree,
            "outputs": outputs["outputs"] if outputs else {},
        },
    )
