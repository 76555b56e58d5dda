"""One cluster: what it is, why it is so, what happened to it, where it differs, and what runs on it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial

from shared.app.api.views.clusters import EVENTS_SHOWN, cluster_detail, describe_unknown
from shared.app.api.views.costs import costs_by_name
from shared.app.api.views.drift import drift_of_cluster
from shared.app.api.views.tree import outputs_view, tree_view
from shared.app.api.views.why import why_view
from shared.app.console.pages.clusters_page import LASTS
from shared.app.console.pages.costs_page import NO_PRICES, money, span_of
from shared.app.console.visit import Page, Visit, message
from shared.frozen import dataclass
from shared.json_tree import Json

COSTS = "costs"
"""What a visit asks to be shown: a read more, for what changes once a day."""


@dataclass(frozen=True)
class GrantLine:
    """What somebody may do in Azure: who it is, what it may, and where; ``differs`` from what Azure has."""

    name: str
    who: str
    may: str
    where: str
    differs: bool


def make(visit: Visit) -> Page:
    """Return the page of a cluster, also of one that no longer exists or is not there yet.

    What people did to it is among its events: the audit is read by the page of acts alone.
    """
    name, ports, state = visit.path["name"], visit.ports, visit.ports.state
    visit.ahead(
        lambda: state.plan(state.fleet().commit),
        lambda: state.cluster(name),
        lambda: state.events(name, EVENTS_SHOWN),
    )
    detail, why = cluster_detail(name, ports), why_view(name, ports, acts=False)
    if detail is None or why is None:
        return message("No such cluster", describe_unknown(name, ports), 404)
    drift, tree = drift_of_cluster(name, ports), tree_view(name, ports)
    outputs, cluster = outputs_view(name, ports), detail if "spec" in detail else None
    spec: Json = cluster["spec"] if cluster else {}
    differs = drift["clusters"][0] if drift and drift["clusters"] else None
    costs = costs_by_name((name,), ports)[name] if visit.asked("show") == COSTS else None
    paths = [field["path"] for field in differs["fields"]] if differs else []
    return Page(
        name,
        "cluster_page.html",
        {
            "name": name,
            "why": why,
            "cluster": detail if "conditions" in detail else None,
            "timeline": detail["events"],
            "drift": differs,
            "accepted": drift["accepted"] if drift else [],
            "tree": tree,
            "grants": [*grants_of(spec, paths)] if spec else [],
            "outputs": outputs["outputs"] if outputs else {},
            "costs": costs,
            "money": money,
            "span": span_of(costs) if costs else "",
            "no_prices": NO_PRICES,
            "lasts": LASTS,
            "ends": partial(ends_of_orders, spec, ports.clock()),
        },
    )


_HOURS = (1, 2, 4, 8, 24, 72)


def ends_of_orders(spec: Json, now: datetime, by_schedule: bool) -> Mapping[str, str]:
    """Return the ends that an order about sleep may have, full hours, with what a person reads of each.

    ``by_schedule``: also none, where a schedule says what comes next.
    """
    hour = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    ends = [(hours, hour + timedelta(hours=hours - 1)) for hours in _HOURS]
    first = {"": "until its schedule changes that"} if by_schedule and spec["sleep"]["schedules"] else {}
    return first | {
        f"{at:%Y-%m-%dT%H:%M:%SZ}": f"until {at:%a %H:%M} UTC, {hours} h at most" for hours, at in ends
    }


def grants_of(spec: Json, differing: Collection[str]) -> Iterator[GrantLine]:
    """Yield the grants of a manifest; ``differing`` are the paths of its fields that differ."""
    for credential in spec["federatedCredentials"]:
        who = f"pods of {credential['namespace']}/{credential['serviceAccount']}"
        place = f"federatedCredentials[{credential['name']}]"
        yield _grant(credential, who, "act as", credential["identity"], place, differing)
    for role in spec["roleAssignments"]:
        who, place = role.get("identity") or role.get("principalId") or "", f"roleAssignments[{role['name']}]"
        yield _grant(role, who, f"has {role['role']} at", role["scope"], place, differing)


def _grant(entry: Json, who: str, may: str, where: str, place: str, differing: Collection[str]) -> GrantLine:
    differs = any(path.removeprefix("spec.").startswith(place) for path in differing)
    return GrantLine(entry["name"], who, may, where, differs)
