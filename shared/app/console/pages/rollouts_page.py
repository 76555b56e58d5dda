"""Rollouts: the list, and one with its stages, its clusters, and what people may do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from shared.app.api import schema
from shared.app.api.parts import ClusterPage
from shared.app.api.views.rollouts import rollout_view, rollouts_view
from shared.app.console.visit import Page, Visit, message
from shared.frozen import dataclass
from shared.masking import cut
from shared.rollouts.rollout_acts import ActKind
from shared.rollouts.waits import WaitReason

WAITING_SHOWN = 50
BAR_WIDTH, BAR_HEIGHT = 8, 24
"""Pixels of a part in the pace of a stage."""
CELLS = 1000
"""The most cells of a strip: where more clusters are in a group, a cell stands for several."""


@dataclass(frozen=True)
class Cells:
    """Clusters of a group that stand alike: a word, the number, and the class and number of their cells."""

    word: str
    count: int
    kind: str
    drawn: int


@dataclass(frozen=True)
class Bar:
    """A part of the time in the pace of a stage: where it begins, how high it is, and its class."""

    left: int
    top: int
    height: int
    kind: str


@dataclass(frozen=True)
class Pace:
    """When clusters became ready or failed, drawn to the same scale as those of other names."""

    name: str
    ready: int
    failed: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class WaitGroup:
    """Clusters that wait for the same, and since when the first of them does."""

    clusters: tuple[str, ...]
    wait: schema.WaitingCluster
    since: str | None

    @property
    def sentence(self) -> str:
        """Who waits for what."""
        count, waits = len(self.clusters), self.wait["waits"]
        if count == 1:
            return f"1 cluster {waits}"
        return (
            f"{count} clusters {'wait' + waits.removeprefix('waits') if waits.startswith('waits') else waits}"
        )


def make(visit: Visit) -> Page:
    """Return the list, newest first."""
    state = visit.ports.state
    visit.ahead(state.fleet, state.summaries, state.rollouts)
    return Page("Rollouts", "rollouts_page.html", {"rollouts": rollouts_view(visit.ports)["rollouts"]})


def make_one(visit: Visit) -> Page:
    """Return the rollout of a commit."""
    commit, state = visit.path["commit"], visit.ports.state
    visit.ahead(state.fleet, state.summaries, lambda: state.rollout(commit))
    view = rollout_view(commit, visit.ports, ClusterPage(visit.asked("after"), WAITING_SHOWN))
    if view is None:
        missing = f"The commit {cut(commit, 40)} has no rollout: it changes no cluster in stages."
        return message("No such rollout", missing, 404)
    stages = [(stage, [(group, cells_of([group])) for group in stage["groups"]]) for stage in view["stages"]]
    failures: dict[str, list[schema.RolloutFailure]] = {}
    for failure in view["failures"]:
        failures.setdefault(failure["stage"], []).append(failure)
    values = {
        "view": view,
        "stages": stages,
        "failures": failures,
        "paces": paces_of(view["stages"]),
        "classes": paces_of(view["failureClasses"]) if len(view["failures"]) > 1 else [],
        "paused": any(decision["act"] == ActKind.PAUSE for decision in view["decisions"])
        or any(wait["reason"] == WaitReason.STRATEGY for wait in view["waiting"]),
        "waiting": waiting_of(view["waiting"]),
    }
    return Page(f"Rollout of {commit[:8]}", "rollout_page.html", values)


def paces_of(rows: Sequence[schema.RolloutStage | schema.RolloutFailureClass]) -> list[Pace]:
    """Return the pace of each stage, or class, of which anything has ended, in ``BAR_HEIGHT`` at most."""
    most = max((part["ready"] + part["failed"] for row in rows for part in row["pace"]), default=0)
    found = list[Pace]()
    for row in rows:
        bars, ready, failed = list[Bar](), 0, 0
        for number, part in enumerate(row["pace"]):
            below = 0
            for kind, count in (("good", part["ready"]), ("bad", part["failed"])):
                height = math.ceil(count * BAR_HEIGHT / most)
                below += height
                if height:
                    bars.append(Bar(number * BAR_WIDTH, max(0, BAR_HEIGHT - below), height, kind))
            ready, failed = ready + part["ready"], failed + part["failed"]
        if bars:
            found.append(Pace(row["name"], ready, failed, tuple(bars)))
    return found


def cells_of(groups: Iterable[schema.RolloutGroup], most: int = CELLS) -> list[Cells]:
    """Return how many clusters of some groups stand where, as at most about ``most`` cells."""
    counts: dict[tuple[str, str], int] = {}
    for group in groups:
        for key, count in (
            (("ready", "good"), group["ready"]),
            (("failed", "bad"), len(group["failed"])),
            (("changing", "work"), group["changing"]),
            (("waiting", "wait"), group["waiting"]),
            (("set aside", "out"), len(group["setAside"])),
        ):
            counts[key] = counts.get(key, 0) + count
    each = max(1, math.ceil(sum(counts.values()) / most))
    return [Cells(word, count, kind, math.ceil(count / each)) for (word, kind), count in counts.items()]


def waiting_of(waiting: Iterable[schema.WaitingCluster]) -> list[WaitGroup]:
    """Return the clusters that wait, together where they wait for the same."""
    found: dict[tuple[str, ...], list[schema.WaitingCluster]] = {}
    for wait in waiting:
        key = (wait["stage"], wait["waits"], wait["suggestedAction"], wait["owner"], wait["because"])
        found.setdefault(key, []).append(wait)
    return [
        WaitGroup(
            tuple(wait["cluster"] for wait in same),
            same[0],
            min((wait["since"] for wait in same if wait["since"]), default=None),
        )
        for same in found.values()
    ]
