"""The plan of a commit: what it does to each cluster, grouped by change, and what needs an approval."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shared.app.api import schema
from shared.app.api.parts import PAGE, ClusterPage
from shared.app.api.views.plans import plan_view, pull_plan_view
from shared.app.api.views.rollouts import waits_now
from shared.app.console.visit import Page, Visit, message
from shared.cluster.history import by_whom
from shared.frozen import dataclass
from shared.masking import cut
from shared.sentences import not_shown, removals

LONGEST = 10
"""Digits of the number of a pull request."""
REMOVALS = ("delete", "release", "rebuild")


@dataclass(frozen=True)
class ItemGroup:
    """Clusters to which a plan does the same."""

    clusters: tuple[str, ...]
    item: schema.PlanItem

    @property
    def action(self) -> str:
        """What happens, as the command names it."""
        item = self.item
        action = "needs approval" if item["needsApproval"] else item["action"].replace("-", " ")
        return f"release {action}" if item["releases"] and item["notCarriedOut"] else action

    @property
    def kind(self) -> str:
        """The class of what happens: "bad" destroys, "work" waits, "" is the rest."""
        item = self.item
        removes = item["needsApproval"] or item["action"] in REMOVALS
        if removes or any(change["destroys"] for change in item["changes"]):
            return "bad"
        return "work" if item["notCarriedOut"] or item["waits"] else ""


def make(visit: Visit) -> Page:
    """Return the plan of a commit, or a page of it where it has very many clusters."""
    commit, after = visit.path["commit"], visit.asked("after")
    state = visit.ports.state
    visit.ahead(state.summaries, lambda: state.plan(commit), lambda: waits_now(state.fleet(), visit.ports))
    view = plan_view(commit, visit.ports, ClusterPage(after, PAGE))
    if view is None:
        missing = f"The commit {cut(commit, 40)} was not planned, or long ago. The address has its full id."
        return message("No such plan", missing, 404)
    hidden = view["problemCount"] - len(view["problems"])
    values = {
        **_changes(view, after),
        "approved": approved_of(view),
        "approvable": _approvable(commit, visit) if view["howToApprove"] else [],
        "hidden_problems": not_shown(hidden, "problem") if hidden else "",
    }
    return Page(f"Plan of {commit[:8]}", "plan_page.html", values)


def make_pull(visit: Visit) -> Page:
    """Return the plan of a pull request, as its comment shows it."""
    given, after = visit.path.get("number") or visit.asked("pull"), visit.asked("after")
    known = given.isdecimal() and given.isascii() and len(given) < LONGEST
    view = pull_plan_view(int(given), visit.ports, ClusterPage(after, PAGE)) if known else None
    if view is None:
        missing = f"The pull request {cut(given, 40) or '(give its number)'} was not planned, or long ago."
        return message("No such plan", missing, 404)
    return Page(f"Plan of pull request {view['number']}", "pull_page.html", _changes(view, after))


def _changes(view: schema.PlanView | schema.PullPlanView, after: str) -> dict[str, Any]:
    acting = [item for item in view["items"] if item["action"] != "unchanged"]
    unchanged = len(view["items"]) - len(acting)
    return {"view": view, "first": not after, "groups": grouped(acting), "unchanged": unchanged}


def _approvable(commit: str, visit: Visit) -> list[str]:
    """Return all deletes that need an approval, of every page: an approval names exactly these."""
    record = visit.ports.state.plan(commit)
    return sorted(record.plan.deletes_needing_approval) if record else []


def approved_of(view: schema.PlanView) -> str:
    """Return what was approved and by whom, "" for nothing."""
    approval = view["approval"]
    if approval is None:
        return ""
    what = removals(approval["clusterCount"], view["approvedReleaseCount"])
    return f"{what}, by {by_whom(approval['by'], approval['reason'])}"


def grouped(items: Iterable[schema.PlanItem]) -> list[ItemGroup]:
    """Return clusters by what happens to them: first what waits for a person, then what destroys."""
    found: dict[Any, list[schema.PlanItem]] = {}
    for item in items:
        found.setdefault(_what(item), []).append(item)
    groups = [ItemGroup(tuple(sorted(item["cluster"] for item in same)), same[0]) for same in found.values()]
    return sorted(
        groups, key=lambda group: (not group.item["needsApproval"], group.kind != "bad", group.clusters)
    )


def _what(item: schema.PlanItem) -> Any:
    """Return what happens to a cluster, without where its files say so and since when."""
    changes = tuple(tuple({**change, "source": ""}.items()) for change in item["changes"])
    unlike = {"cluster": "", "generation": 0, "since": None}
    lists = {"changes": changes, "retainedSystems": tuple(item["retainedSystems"])}
    return tuple({**item, **unlike, **lists}.items())
