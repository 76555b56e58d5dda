"""Commit statuses: what the git host shows on a pushed commit while its plan is carried out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum

from shared.cluster.failures.fleet_problem import FleetProblem
from shared.cluster.forms import UnreadableRecord
from shared.cluster.queues.messages import ReportRequest
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.summary import ClusterSummary
from shared.frozen import dataclass, field
from shared.plan.holds import HoldKind
from shared.plan.plan import REMOVALS, Action, Item, Plan
from shared.ports import CommitStatus
from shared.ports.git_host import status_line
from shared.rollouts.decide import Decision
from shared.rollouts.report import describe
from shared.rollouts.rollout import RolloutState
from shared.sentences import moment, some_of

CONTEXT = "roadstead"


NAMED = 3
"""How many clusters with the same problem a status names."""


class Standing(Enum):
    """How a cluster stands in a plan. One that is under way stands nowhere; one that waits may have two."""

    READY = "ready"
    DIFFERING = "ready, and has differed from git, not yet for long"
    FAILED = "failed"
    SUSPENDED = "suspended, or asleep"
    WAITS = "continues once an operator acts"
    HELD = "continues by itself, later"
    NOT_STARTED = "was never started by an older plan"
    EXEMPT = "is missing or stopped by an exemption"


@dataclass(frozen=True)
class Progress:
    """How far a plan of ``total`` clusters is: what an operator reads of each of them, by how it stands."""

    total: int
    standings: Mapping[Standing, Sequence[str]] = field(default_factory=dict)
    problems: Sequence[str] = ()

    def count(self, *kinds: Standing) -> int:
        """Return how many clusters stand so."""
        return sum(len(self.standings.get(kind, ())) for kind in kinds)

    def first(self, *kinds: Standing) -> str:
        """Return what an operator reads of the first cluster that stands so, "" for none."""
        return next((text for kind in kinds for text in self.standings.get(kind, ())), "")

    @property
    def first_problem(self) -> str:
        """The first of the problems, "" for none."""
        return next(iter(self.problems), "")

    @property
    def settled(self) -> bool:
        """Whether nothing more will change by itself soon; a worker reports the end of a suspension."""
        moving = (Standing.DIFFERING, Standing.HELD)
        return self.count(*(kind for kind in Standing if kind not in moving)) >= self.total


def progress_of(
    plan: Plan,
    clusters: Mapping[str, ClusterSummary | UnreadableRecord],
    *,
    newest: bool,
    differed: datetime | None = None,
) -> Progress:
    """Count a plan's clusters: ready means verified at the plan's generation and not lost since, or deleted.

    ``newest``: no later commit was planned, so none can have removed a cluster that does not exist. Of the
    newest plan, a cluster has failed that has differed from git since ``differed``, or for longer, and one
    that differs in a version: nothing but a commit ends that.
    """
    shown = _Shown({item.cluster: item for item in plan.items}, clusters, newest, differed)
    texts: dict[Standing, list[str]] = {standing: [] for standing in Standing}
    failed: dict[str, list[str]] = {}
    for item in plan.items:
        for standing, text in shown.standings(item):
            texts[standing].append(text)
            if standing is Standing.FAILED:
                failed.setdefault(text, []).append(item.cluster)
    problems = [f"{some_of(names, NAMED)}: {problem}" for problem, names in failed.items()]
    if not problems:  # a problem in the file of a system, or of a class, is of no cluster
        problems += plan.problems[:1]
    if plan.fleet_file_problem:
        problems.insert(0, plan.fleet_file_problem)
    return Progress(len(plan.items), texts, problems)


@dataclass(frozen=True)
class _Shown:
    """What is known of the clusters of a plan; ``newest`` and ``differed`` as for ``progress_of``."""

    items: Mapping[str, Item]
    clusters: Mapping[str, ClusterSummary | UnreadableRecord]
    newest: bool
    differed: datetime | None

    def standings(self, item: Item) -> Iterator[tuple[Standing, str]]:
        """Yield how a cluster stands, and what an operator reads: of one that failed, without its name."""
        record = self.clusters.get(item.cluster)
        if isinstance(record, UnreadableRecord):  # nobody knows how it is
            yield Standing.FAILED, str(record)
        elif _is_exempt(item, record):
            yield Standing.EXEMPT, item.cluster
        elif record is not None and record.tried and record.uid == item.uid and not item.needs_action:
            yield Standing.HELD, f"{item.cluster} {record.tried}"
        elif reached(item, record, newest=self.newest):
            yield from self._reached(item, record)
        elif problem := _problem(item, record):
            yield Standing.FAILED, problem
        elif not self.newest and _was_held_back(item, record):
            yield Standing.NOT_STARTED, item.cluster
        else:
            yield from self._waiting(item, record)

    def _reached(self, item: Item, record: ClusterSummary | None) -> Iterator[tuple[Standing, str]]:
        since = record.divergence.differs_since if record and self.newest and self.differed else None
        if record is None or since is None or self.differed is None:
            yield Standing.READY, item.cluster
        elif record.divergence.stays or since <= self.differed:
            yield Standing.FAILED, _difference(record, since)
        else:
            yield Standing.READY, item.cluster
            yield Standing.DIFFERING, item.cluster

    def _waiting(self, item: Item, record: ClusterSummary | None) -> Iterator[tuple[Standing, str]]:
        if item.waits_for_time:
            yield Standing.HELD, f"{item.cluster}: {item.reason}"
        if item.awaits_replacement and item.hold is not None:
            yield self._behind_replacements(item), f"{item.cluster}: {item.hold.cause}"
        if record is None:
            if item.awaits_deletion and not self.newest:
                yield Standing.WAITS, f"{item.cluster} does not exist"
            return
        if record.phase in (Phase.SUSPENDED, Phase.SLEEPING):
            yield Standing.SUSPENDED, f"{item.cluster}: {record.reason}"
        if record.needs_action:
            yield Standing.WAITS, f"{item.cluster}: {record.reason}"

    def _behind_replacements(self, item: Item) -> Standing:
        """Return how a delete stands that waits for what replaces its cluster."""
        known = map(self.clusters.get, item.replacements)
        records = [record for record in known if isinstance(record, ClusterSummary)]
        phases = {record.phase for record in records}
        if phases & {Phase.SUSPENDED, Phase.SLEEPING}:
            return Standing.SUSPENDED
        acts = any(self.items[name].needs_action for name in item.replacements if name in self.items)
        acts = acts or any(record.needs_action for record in records)
        return Standing.WAITS if acts or phases & {Phase.FAILED, Phase.STALLED} else Standing.HELD


def _is_exempt(item: Item, record: ClusterSummary | None) -> bool:
    """Return whether an exemption has a cluster missing or stopped that a plan keeps, or changes."""
    if record is None or record.uid != item.uid or item.needs_action:
        return False
    return record.shown_phase is Phase.EXEMPT


def _was_held_back(item: Item, record: ClusterSummary | None) -> bool:
    """Return whether a plan was superseded before something started that it had to wait for."""
    if item.waits_for_time or item.awaits_replacement or item.lags:
        return True
    if record is None or record.uid != item.uid:
        return False
    return item.action is Action.UPDATE and record.generation < item.generation


def _difference(record: ClusterSummary, since: datetime) -> str:
    """Return since when a cluster differs from git, without what changes with every report."""
    found = record.divergence
    if found.stays:
        return f"{found.stays}; roadstead drift {record.name}"
    fields = "1 field" if found.drifted == 1 else f"{found.drifted} fields"
    return f"differs from git in {fields} since {moment(since)}: roadstead drift {record.name}"


def _problem(item: Item, record: ClusterSummary | None) -> str:
    if item.needs_action:
        return item.reason
    if record is not None and record.phase in (Phase.FAILED, Phase.STALLED):
        return f"{record.phase.value} at {record.step}: {record.reason}"
    return ""


def reached(item: Item, record: ClusterSummary | None, *, newest: bool) -> bool:
    """Return whether a cluster is as an item of a plan asks, or as a later plan does."""
    if item.awaits_deletion and record is not None:
        if record.uid != item.uid:
            return record.observed_generation > 0  # a later commit had it created again
        return record.observed_generation > item.generation  # a later plan took its removal back
    if item.lags and (newest or record is None or record.observed_generation <= item.generation):
        return False  # an earlier commit goes through the stages before it
    retry = item.hold is not None and item.hold.is_of_retry  # somebody may have started it in spite of that
    if (item.not_carried_out and not retry) or item.retained or item.keeps_pin or item.keeps_version:
        return False
    if record is None:
        leaves = item.hold is not None and item.hold.kind is HoldKind.BEING_DELETED
        removed = leaves or item.action in (*REMOVALS, Action.RETRY)
        return not newest or (removed and not item.awaits_deletion)
    if record.uid != item.uid:  # a later cluster of that name, or a plan that a superseded planner wrote
        return not newest
    if record.divergence.unplanned or record.tried:  # its Flux does not pull what the plan says
        return False
    if newest and record.observed_generation < record.generation:  # its pin goes back, which no plan asks for
        return False
    return record.observed_generation >= item.generation and not record.lost


def status_of(
    plan: Plan,
    progress: Progress,
    *,
    link: str,
    superseded_by: str = "",
    rollout: Decision | str | None = None,
) -> CommitStatus:
    """Return the commit status for a plan at some progress.

    ``superseded_by`` is the newest commit, where only that one can still change the clusters; "" otherwise.
    ``rollout`` is how far the plan's rollout is, or why it cannot be read; None for one that has ended
    without leaving clusters as they were, or for none.
    """

    def said(state: str, text: str) -> CommitStatus:
        return CommitStatus(state, status_line(text), CONTEXT, link)

    if isinstance(rollout, str):
        return said("failure", progress.first_problem or rollout)
    state = rollout.rollout.state if rollout else None
    text = describe(rollout.rollout, rollout) if rollout else ""
    if state is RolloutState.ABORTED:
        return said("failure", text)
    if progress.first_problem:
        paused = "rollout paused: " if rollout is not None and rollout.block else ""
        return said("failure", f"{paused}{progress.first_problem}")
    if rollout is not None and rollout.final and not rollout.held:
        return said("failure" if rollout.final.spent else "pending", text)
    # A status that fails says which cluster differs; until that has lasted, their number shows an edit.
    differing, exempt = progress.count(Standing.DIFFERING), progress.count(Standing.EXEMPT)
    in_sync = f"{progress.count(Standing.READY) - differing} of {progress.total} clusters in sync"
    in_sync += f", {differing} with drift" if differing else ""
    in_sync += f", {exempt} exempt" if exempt else ""
    done = progress.count(Standing.READY, Standing.EXEMPT)
    if done >= progress.total:
        return said("success", f"{in_sync} ({plan.summary})" if plan.items else "no clusters")
    suspended = progress.count(Standing.SUSPENDED)
    first_wait = progress.first(Standing.WAITS, Standing.HELD) or text
    waiting = f"; {first_wait}" if first_wait else f" ({plan.summary})"
    description = f"{in_sync}{f', {suspended} suspended' if suspended else ''}{waiting}"
    if superseded_by:
        return said("error", f"superseded by {superseded_by[:8]}: {description}")
    done += suspended
    if suspended and done >= progress.total:
        # No progress until a date, or a commit: neither pending, nor success, nor a failure of a cluster.
        return said("error", f"suspended: {in_sync}; {progress.first(Standing.SUSPENDED)}")
    left = len(rollout.waits) if rollout and state is RolloutState.COMPLETED else 0  # somebody took them out
    if left and done + left >= progress.total:
        return said("error", description)  # none before a commit, either
    return said("pending", description)


def status_of_problem(problem: FleetProblem) -> CommitStatus:
    """Return the commit status for a commit that could not be planned."""
    return CommitStatus("error", status_line(str(problem)), CONTEXT)


# How often a commit status is written.
#
# GitHub takes 1,000 statuses of a commit and context (docs.github.com/rest/commits/statuses). The last
# counts.

INTERIM = 400
"""So many statuses of a commit may say how far it is."""
SETTLED = 900
"""So many may say that it has settled, as with a failure; the others are for those that end it."""
CLUSTERS_A_SECOND = 200
"""A report reads so many clusters for each second until the next one."""
SHARE = 20
"""A report is at most this part of the age of its plan behind."""
LONGEST = 300.0
"""Seconds between two reports, however old the plan is."""


def has_room(reports: int, *, settled: bool, ended: bool) -> bool:
    """Return whether one more status of a commit may be written, after so many reports."""
    return ended or reports < (SETTLED if settled else INTERIM)


def interval(age: timedelta, clusters: int) -> timedelta:
    """Return the time from one report to the next, by the age of the newest plan and the fleet's size."""
    by_age = min(age.total_seconds() / SHARE, LONGEST)
    return timedelta(seconds=max(ReportRequest.WINDOW, clusters / CLUSTERS_A_SECOND, by_age))
