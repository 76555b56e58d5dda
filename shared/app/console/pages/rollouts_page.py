"""Rollouts: the list, and one with its stages, its clusters, and what people may do."""

from __future__ import annotations

from shared.app.api import schema
from shared.app.api.parts import ClusterPage
from shared.app.api.views.rollouts import rollout_view, rollouts_view
from shared.app.console.visit import Page, Visit, message
from shared.masking import cut

WAITING_SHOWN = 50


def make(visit: Visit) -> Page:
    """Return the list, newest first."""
    return Page("Rollouts", "rollouts_page.html", {"rollouts": rollouts_view(visit.ports)["rollouts"]})


def make_one(visit: Visit) -> Page:
    """Return the rollout of a commit."""
    commit = visit.path["commit"]
    view = rollout_view(commit, visit.ports, ClusterPage(visit.asked("after"), WAITING_SHOWN))
    if view is None:
        missing = f"The commit {cut(commit, 40)} has no rollout: it changes no cluster in stages."
        return message("No such rollout", missing, 404)
    stages = [(stage, [(group, cells_of(group)) for group in stage["groups"]]) for stage in view["stages"]]
    return Page(f"Rollout of {commit[:8]}", "rollout_page.html", {"view": view, "stages": stages})


def cells_of(group: schema.RolloutGroup) -> list[tuple[str, int, str]]:
    """Return how many clusters of a group stand where: a word, the number, and the class of the cells."""
    return [
        ("ready", group["ready"], "good"),
        ("failed", len(group["failed"]), "bad"),
        ("changing", group["changing"], "work"),
        ("waiting", group["waiting"], "wait"),
        ("set aside", len(group["setAside"]), "out"),
    ]
