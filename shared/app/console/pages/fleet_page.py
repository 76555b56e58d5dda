"""The first page: what needs a person, how many clusters are in which phase, and what is under way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from shared.app.api import schema
from shared.app.api.parts import ClusterPage
from shared.app.api.views.cluster_list import ClusterSelection, Sort
from shared.app.api.views.clusters import fleet_view
from shared.app.api.views.notifications import failing_routes
from shared.app.api.views.plans import plans_view
from shared.app.api.views.rollouts import rollout_view, rollouts_view, waits_now
from shared.app.console.pages.rollouts_page import Cells, cells_of
from shared.app.console.render import capital
from shared.app.console.visit import Page, Visit
from shared.app.health import health_view
from shared.cluster.record_parts import STUCK
from shared.frozen import dataclass, field, replace
from shared.rollouts.waits import WaitReason
from shared.sentences import many, removals

RECENT = timedelta(days=1)
CELLS = 60
"""The most cells of a stage here."""
_RESUMES = "an Operator, who resumes it"
_ENDS: Mapping[str, str] = {
    WaitReason.BUDGET: "an Operator, who retries, or an Approver, who skips",
    WaitReason.CHECK: "who answers for the check, or an Approver, who overrides it",
}
"""Who ends what stops a rollout, where nobody has paused it."""


@dataclass(frozen=True)
class OpenTask:
    """What needs a person: a sentence, who acts, since when, and where: the parts of the address of a page.

    ``where`` says in which environments and regions. ``names`` are clusters, the first of ``count`` where
    that is more. ``act`` is the name of an act of the API that a button does, "" for none; ``path`` are the
    parts of its route, and ``query`` selects clusters on their page.
    """

    what: str
    who: str = ""
    since: str | None = None
    detail: str = ""
    where: str = ""
    names: tuple[str, ...] = ()
    address: tuple[str, ...] = ()
    act: str = ""
    label: str = ""
    path: Mapping[str, str] = field(default_factory=dict)
    urgent: bool = False
    query: Mapping[str, str] = field(default_factory=dict)
    count: int = 0


def make(visit: Visit) -> Page:
    """Return the page of the whole fleet."""
    ports, state = visit.ports, visit.ports.state
    health = partial(visit.health.read, records=False)
    visit.ahead(
        state.summaries,
        health,
        lambda: plans_view(ports),
        lambda: state.plan(state.fleet().commit),
        lambda: waits_now(state.fleet(), ports),
        state.rollouts,
        state.count_dead_letters,
        lambda: failing_routes(state.fleet(), ports),
    )
    fleet = fleet_view(ports, ClusterPage(limit=0), ClusterSelection(sort=Sort.PHASE))
    rollouts = [entry for entry in rollouts_view(ports)["rollouts"] if entry["underWay"]]
    under_way = [view for entry in rollouts if (view := rollout_view(entry["commit"], ports))]
    app = health_view(health()).body
    since = (ports.clock() - RECENT).isoformat()
    plans = plans_view(ports)["plans"]
    found = [
        *_of_fleet(fleet),
        *_of_rollouts(under_way),
        *_of_clusters(fleet),
        *_of_manifests(fleet, plans),
        *_of_app(fleet, app),
    ]
    return Page(
        f"({len(found)}) Fleet" if found else "Fleet",
        "fleet_page.html",
        {
            "needs": sorted(found, key=lambda need: not need.urgent),
            "urgent": sum(need.urgent for need in found),
            "view": fleet,
            "left": fleet["attentionCount"] - sum(cause["clusterCount"] for cause in fleet["attention"]),
            "rollouts": [(view, strips_of(view)) for view in under_way],
            "plans": [plan for plan in plans if (plan["plannedAt"] or "") >= since] or plans[:1],
            "health": app,
        },
    )


def strips_of(view: schema.RolloutView) -> list[tuple[str, list[Cells]]]:
    """Return where the clusters of each stage of a rollout stand, by the names of the stages."""
    return [(stage["name"], cells_of(stage["groups"], CELLS)) for stage in view["stages"]]


def _of_fleet(view: schema.FleetView) -> Iterator[OpenTask]:
    """Yield what stops or holds the fleet as a whole."""
    if view["problem"]:
        what, detail = capital(view["problem"]), view["fleetSuggestedAction"]
        yield OpenTask(what, "who runs Roadstead, or wrote the commit", detail=detail, urgent=True)
    elif not view["commit"]:
        detail = f"Push a fleet to {view['branch']} of {view['repository']}: `roadstead init` writes one."
        yield OpenTask("No commit was planned yet", "who writes the fleet", detail=detail)
    if view["paused"]:
        yield OpenTask(capital(view["paused"]), "an Operator", act="resume", label="Resume")
    if view["needsApprovalCount"]:
        count, names = view["needsApprovalCount"], tuple(view["needsApproval"])
        what = f"{removals(count, view['needsReleaseCount'])} of the newest commit: approval needed"
        address = ("/plans", view["commit"])
        yield OpenTask(
            what, "an Approver", names=names, address=address, label="Look and approve", count=count
        )
    if view["notCreatedCount"]:
        what = f"{many(view['notCreatedCount'], 'cluster')} not created: the manifest is invalid"
        names, address = tuple(view["notCreated"]), ("/plans", view["commit"])
        yield OpenTask(
            what, "who writes the manifest", names=names, address=address, count=view["notCreatedCount"]
        )
    if view["correctionCount"]:
        what = f"{many(view['correctionCount'], 'cluster')} with a correction of drift: approval needed"
        names = tuple(view["corrections"])
        count, address = view["correctionCount"], ("/clusters", names[0])
        yield OpenTask(
            what, "an Approver", names=names, address=address, label="Look and approve", count=count
        )
    if view["endingCount"]:
        what = f"{many(view['endingCount'], 'cluster')} with a version or a certificate that ends soon"
        names, count = tuple(view["ending"]), view["endingCount"]
        yield OpenTask(what, "who upgrades the clusters", names=names, address=("/versions",), count=count)


def _of_manifests(view: schema.FleetView, plans: list[schema.PlanSummary]) -> Iterator[OpenTask]:
    """Yield that manifests of the newest commit are invalid, where no cluster is missing for that."""
    newest = next((plan for plan in plans if plan["commit"] == view["commit"]), None)
    if newest and newest["problemCount"] and not view["notCreatedCount"]:
        what = f"{many(newest['problemCount'], 'problem')} in the manifests of the newest commit"
        detail = "What they are about stays as it was at the last valid commit."
        yield OpenTask(
            what, "who writes the manifests", newest["plannedAt"], detail, address=("/plans", view["commit"])
        )


def _of_rollouts(rollouts: list[schema.RolloutView]) -> Iterator[OpenTask]:
    """Yield the stages that wait for a person, and the rollouts that stand still."""
    for view in rollouts:
        address, commit = ("/rollouts", view["commit"]), view["commit"][:8]
        for stage in view["stages"]:
            gate = stage["gate"]
            if stage["approval"] == "needed" and gate and gate["reachedAt"] and not gate["entered"]:
                what = f"The rollout of {commit} waits for an approval of the stage {stage['name']}"
                role = f"an {gate['role']}" if gate["role"] else ""
                who = f"{gate['owner']}, {role}".strip(", ")
                since, label = gate["reachedAt"], "Look and approve"
                yield OpenTask(what, who, since, gate["reason"], address=address, label=label)
        spent = sum(len(group["failed"]) for stage in view["stages"] for group in stage["groups"])
        if view["state"] == "Waiting" and spent:
            what = f"The rollout of {commit} is halted: {many(spent, 'cluster')} failed"
            yield OpenTask(
                what, _ENDS[WaitReason.BUDGET], None, view["progress"], address=address, urgent=True
            )
        if view["state"].startswith(("Paused", "Stopped")):
            what, waits = f"The rollout of {commit}: {view['state'].lower()}", view["waiting"]
            who = next((_ENDS[reason] for wait in waits if (reason := wait["reason"]) in _ENDS), _RESUMES)
            yield OpenTask(what, who, detail=view["progress"], address=address, urgent=True)


def _of_clusters(view: schema.FleetView) -> Iterator[OpenTask]:
    """Yield the clusters that wait for a person: those with the same cause together."""
    for cause in view["attention"]:
        phase, names, count = cause["phase"], tuple(cause["clusters"]), cause["clusterCount"]
        who, where = cause["who"] or "an Operator", _where(cause)
        need = OpenTask("", who, cause["since"], cause["detail"], where, urgent=phase in STUCK)
        if count == 1:
            act, address = "replay" if phase in STUCK else "", ("/clusters", *names)
            one = replace(
                need, what=f"{names[0]}: {phase}", address=address, act=act, path={"name": names[0]}
            )
            yield replace(one, label="Replay" if act else "")
        else:
            what = f"{many(count, 'cluster')}: {phase}{', for the same reason' if need.detail else ''}"
            query = {"cause": cause["cause"]}
            yield replace(need, what=what, names=names, count=count, label="Select them", query=query)


def _of_app(view: schema.FleetView, health: Mapping[str, Any]) -> Iterator[OpenTask]:
    """Yield what the app itself lacks."""
    for service in (*health["services"], *health["credentials"], *health["timers"]):
        if service["problem"]:
            yield OpenTask(
                f"{service['name']}: {service['problem']}", "who runs Roadstead", urgent=not service["ok"]
            )
    for route in view["failingRoutes"]:
        what = f"Notifications by the route {route['route']} fail"
        yield OpenTask(what, "who runs Roadstead", route["since"], route["problem"])
    if view["deadLetterCount"]:
        what = f"{many(view['deadLetterCount'], 'message')} in a dead-letter queue"
        yield OpenTask(what, "an Operator", address=("/activity",))
    sweep = view["sweep"]
    for problem in sweep["problems"] if sweep else ():
        what = f"The clusters of the subscription {problem['subscription']} cannot be listed"
        yield OpenTask(what, "the subscription's owner", problem["listedAt"], problem["problem"])
    for orphan in sweep["orphans"] if sweep else ():
        what = f"{orphan['cluster']} has this fleet's tags, and the fleet does not know it"
        yield OpenTask(what, "who runs Roadstead", orphan["since"], orphan["resource"])
    for record in view["unreadable"]:
        yield OpenTask(
            f"A record cannot be read: {record['kind']} {record['key']}",
            "who runs Roadstead",
            detail=record["suggestedAction"],
        )


def _where(cause: schema.AttentionView) -> str:
    """Return where clusters are, with the number of each place where there are several."""
    several, told = len(cause["places"]) > 1, list[str]()
    for place in cause["places"]:
        name = " in ".join(filter(None, (place["environment"], place["location"])))
        told.append(f"{name} ({place['clusterCount']})" if several else name)
    return ", ".join(told)
