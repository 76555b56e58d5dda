"""Requests: the clusters that somebody asked for, what waits for a merge, and the form to ask for one.

The host is read once for each visit: what it has open is stored nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from shared.app.api.acts.request_limits import Requester, requester, rules_for
from shared.app.api.acts.requests import open_requests
from shared.app.console.visit import Page, Visit, message
from shared.app.proposals.head import Head
from shared.cluster.failures.errors import InvalidManifest
from shared.cluster.lifetime import REQUESTED_BY, REQUESTED_BY_ID
from shared.ports import Capability

NO_PULLS = (
    "The git host opens no pull requests for Roadstead, so nobody asks for a cluster here: commit its folder."
)

NO_COMMIT = "No commit was planned yet, so nothing says who may ask for a cluster."


def make(visit: Visit) -> Page:
    """Return the page of whoever comes."""
    ports = visit.ports
    if Capability.PROPOSALS not in ports.git_host.capabilities:
        return message("Requests", NO_PULLS, 200)
    if not ports.state.fleet().commit:
        return message("Requests", NO_COMMIT, 200)
    head, who, problem = Head(ports.state.fleet(), ports), requester(visit.principal), ""
    try:
        rules = rules_for(visit.principal, head.self_service())
    except InvalidManifest as error:
        rules, problem = (), str(error)
    made = [
        (found, Requester(labels[REQUESTED_BY_ID], labels.get(REQUESTED_BY, "")))
        for found in ports.state.summaries(details=True)
        if REQUESTED_BY_ID in (labels := found.details.labels)
    ]
    chosen = {
        "classes": _once(name for rule in rules for name in rule.classes),
        "environments": _once(name for rule in rules for name in rule.environments),
        "locations": _once(name for rule in rules for name in rule.locations),
    }
    values = {
        "who": who,
        "problem": problem,
        "rules": rules,
        "chosen": chosen,
        "waiting": open_requests(ports),
        "clusters": [{"name": found.name, "by": by, "phase": str(found.phase)} for found, by in made],
    }
    return Page("Requests", "requests_page.html", values, live=False)


def _once(names: Iterable[str]) -> list[str]:
    return [*dict.fromkeys(names)]
