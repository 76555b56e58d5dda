"""The fleet, its clusters and their events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial

from shared.app.api import schema
from shared.app.api.parts import (
    FIRST_PAGE,
    ClusterPage,
    behind_of,
    certificates_of,
    compared_at,
    condition_of,
    event_of,
    failure_of,
    fleet_problem,
    followed_sources,
    items_of,
    lifetime_view,
    names_in,
    not_created,
    phase_of_gone,
    plan_part,
    policies_of,
    retirements_of,
    unreadable_records,
    whole_moments,
)
from shared.app.api.projection import iso, projected
from shared.app.api.views.cluster_list import (
    EVERYTHING,
    ClusterSelection,
    cause_id,
    cause_of,
    counts_of,
    names_of_page,
)
from shared.app.api.views.notifications import failing_routes
from shared.app.api.views.rollouts import waiting_now, waits_now
from shared.app.http_result import unknown_cluster
from shared.app.planner.commit_status import reached
from shared.cluster.findings.conditions import IN_SYNC, exempt_text, is_at_rest, shown_phase
from shared.cluster.findings.health import problem_of
from shared.cluster.forms import RecordList, UnreadableRecord
from shared.cluster.history import Gap
from shared.cluster.recipes import STEPS
from shared.cluster.record import READY, ClusterRecord, of_health
from shared.cluster.record_parts import Condition
from shared.cluster.reporting.diagnosis import NewestPlan
from shared.cluster.reporting.job_diagnosis import with_name
from shared.cluster.reporting.summary import ClusterSummary, since_of
from shared.frozen import replace
from shared.plan.plan import Item
from shared.ports import FleetRecord, Ports
from shared.ports.state import SweepRecord
from shared.rollouts.report import describe

# What the sweeps of a fleet have found that no cluster's record shows.

SHOWN = 20


def sweep_view(record: SweepRecord) -> schema.Sweep:
    """Return when the fleet was swept, which lists concluded nothing, and the orphans."""
    problems = [listing for listing in record.listings if listing.problem]
    orphans = [orphan for listing in record.listings for orphan in listing.orphans]
    return projected(
        schema.Sweep,
        record,
        problems=[
            projected(schema.SweepProblem, listing, problem=listing.problem, listedAt=listing.at)
            for listing in problems[:SHOWN]
        ],
        problemCount=len(problems),
        orphans=orphans[:SHOWN],
        orphanCount=len(orphans),
    )


EVENTS_SHOWN = CAUSES_SHOWN = 20
PLACES_SHOWN = 5
NOT_CREATED_SHOWN = NEEDS_APPROVAL_SHOWN = 20


View = Callable[[ClusterRecord, Item | None, SweepRecord, datetime], schema.ClusterSummaryView]
"""Returns a cluster as it is now, as ``cluster_view`` does."""


def fleet_view(
    ports: Ports,
    page: ClusterPage = FIRST_PAGE,
    selection: ClusterSelection = EVERYTHING,
    *,
    view: View | None = None,
) -> schema.FleetView:
    """Return the fleet: what was planned last, and a page of its clusters; raise UnknownCommit.

    ``view`` is for a caller that knows the views of unchanged clusters; the default is ``cluster_view``. The
    records of the page alone are read as a whole. Its counts need the summaries of all clusters, and so
    does a list of some; a later page of the list of all clusters has no counts.
    """
    fleet, sweep = ports.state.fleet(), ports.state.sweep()
    summaries: RecordList[ClusterSummary] | None = None
    matching: Sequence[ClusterSummary] = ()
    if not page.after or not selection.everything:
        summaries = ports.state.summaries(details=selection.needs_details)
        selection = _with_names(selection, summaries, fleet, ports)
        matching = selection.of(summaries)
    if summaries is None or selection.everything:
        records = ports.state.clusters_page(page.after, page.limit)
        following = page.next(names_in(records))
    else:
        names, following = names_of_page(matching, selection, page)
        records = ports.state.clusters_named(names)
    newest = ports.state.plan(fleet.commit)
    items = items_of(newest)
    missing = not_created(items, ports.state)
    approvable = sorted(newest.plan.deletes_needing_approval) if newest else []
    corrections = [summary.name for summary in summaries or () if summary.divergence.to_approve]
    today = ports.clock().date()
    ending = [summary.name for summary in summaries or () if summary.warned and summary.warned <= today]
    stuck = [summary for summary in summaries or () if summary.stuck]
    contested = [summary.name for summary in summaries or () if summary.contested]
    return projected(
        schema.FleetView,
        ports.config,
        fleet_problem(fleet, ports.clock(), newest, contested),
        commit=fleet.commit,
        plannedAt=fleet.at,
        rollout="" if page.after else _rollout(fleet, ports),
        unreadable=unreadable_records(_lacking(records, summaries, page, selection)),
        deadLetterCount=ports.state.count_dead_letters(),
        notCreated=missing[:NOT_CREATED_SHOWN],
        notCreatedCount=len(missing),
        needsApproval=approvable[:NEEDS_APPROVAL_SHOWN],
        needsApprovalCount=len(approvable),
        needsReleaseCount=len(newest.plan.releases.intersection(approvable)) if newest else 0,
        corrections=corrections[:NEEDS_APPROVAL_SHOWN],
        correctionCount=len(corrections),
        ending=ending[:NEEDS_APPROVAL_SHOWN],
        endingCount=len(ending),
        attention=attention_of(stuck)[:CAUSES_SHOWN],
        attentionCount=len(stuck),
        followed=followed_sources(fleet),
        failingRoutes=[] if page.after else failing_routes(fleet, ports),
        counts=None if summaries is None else counts_of(summaries, len(matching)),
        sweep=None if page.after else sweep_view(sweep),
        repairedGaps=projected(schema.GapsView, fleet.gaps, last=_repaired(fleet.gaps.last)),
        clusters=[
            (view or cluster_view)(record, items.get(record.name), sweep, ports.clock()) for record in records
        ],
        next=following,
    )


def attention_of(stuck: Iterable[ClusterSummary]) -> list[schema.AttentionView]:
    """Return why clusters wait for a person: those with the same cause together, the most clusters first."""
    found: dict[tuple[str, str, str], list[ClusterSummary]] = {}
    for summary in stuck:
        found.setdefault(cause_of(summary), []).append(summary)
    return [
        {
            "cause": cause_id(same[0]),
            "phase": phase,
            "places": _places_of(same),
            "detail": detail if len(same) > 1 else _detail_of(same[0]),
            "who": who,
            "since": iso(min((at for summary in same if (at := summary.times.failed_since)), default=None)),
            "clusterCount": len(same),
            "clusters": [summary.name for summary in same[:NEEDS_APPROVAL_SHOWN]],
        }
        for (phase, who, detail), same in sorted(found.items(), key=lambda item: -len(item[1]))
    ]


def _places_of(summaries: Iterable[ClusterSummary]) -> list[schema.AttentionPlace]:
    """Return where clusters are: the first places, the one with the most of them first."""
    counts = Counter((summary.place.environment, summary.place.location) for summary in summaries)
    frequent = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:PLACES_SHOWN]
    return [
        {"environment": environment, "location": location, "clusterCount": count}
        for (environment, location), count in frequent
    ]


def _detail_of(summary: ClusterSummary) -> str:
    action = summary.cause.action_required.replace("NAME", summary.name)
    return "; ".join(filter(None, (summary.reason, action)))


def _lacking(
    records: RecordList[ClusterRecord],
    summaries: RecordList[ClusterSummary] | None,
    page: ClusterPage,
    selection: ClusterSelection,
) -> Iterable[UnreadableRecord]:
    """Return the records that a page lacks: of the whole list, each is on the page where it would be.

    Nobody knows whether a selection has those without a summary: they are on its first page.
    """
    if summaries is None or selection.everything:
        return records.unreadable
    unknown = summaries.unreadable
    return [
        *(() if page.after else unknown),
        *(record for record in records.unreadable if record not in unknown),
    ]


def _rollout(fleet: FleetRecord, ports: Ports) -> str:
    """Return how far the rollout is that is under way, or has left clusters as they were; "" for none."""
    now = waits_now(fleet, ports)
    shown = now is not None and (fleet.rollout or now[1].waits)
    return f"{now[0][:8]}: {describe(now[1].rollout, now[1])}" if now and shown else ""


class UnknownCommit(LookupError):
    """A commit by which clusters were to be selected was not planned."""


def _with_names(
    selection: ClusterSelection, summaries: Sequence[ClusterSummary], fleet: FleetRecord, ports: Ports
) -> ClusterSelection:
    """Return the selection with the clusters that have its commit: as its plan asks, or newer."""
    if not selection.commit:
        return selection
    plan_record = ports.state.plan(selection.commit)
    if plan_record is None:
        raise UnknownCommit(selection.commit)
    items, newest = items_of(plan_record), selection.commit == fleet.commit
    has = (summary for summary in summaries if summary.name in items)
    names = frozenset(summary.name for summary in has if reached(items[summary.name], summary, newest=newest))
    return replace(selection, names=names)


def _repaired(last: Gap | None) -> schema.GapView | None:
    """Return the newest head that no webhook had planned."""
    return projected(schema.GapView, last, foundBy=last.by) if last else None


def cluster_detail(name: str, ports: Ports) -> schema.ClusterView | schema.MissingCluster | None:
    """Return one cluster with its spec and newest events; None when nothing is known of it."""
    record = ports.state.cluster(name)
    newest = ports.state.events(name, EVENTS_SHOWN)
    events = [event_of(event) for event in newest]
    fleet = ports.state.fleet()
    item = items_of(ports.state.plan(fleet.commit)).get(name)
    contested = [name] if record is not None and record.contested else []
    problem = fleet_problem(fleet, ports.clock(), contested=contested)
    if record is not None:
        spec = record.document["spec"]
        view = cluster_view(record, item, ports.state.sweep(), ports.clock())
        behind = view["behind"] or (item is not None and item.lags)
        waits, policies = waiting_now(name, fleet, ports) if behind else None, policies_of(record)
        return {**view, **problem, "rollout": waits, "policies": policies, "spec": spec, "events": events}
    stopped = NewestPlan(fleet.commit, item).stopped
    if not events and stopped is None:
        return None
    phase = schema.NOT_CREATED if stopped else phase_of_gone(newest)
    part = plan_part(stopped) if stopped else None
    return {"name": name, "phase": phase, "plan": part, **problem, "events": events}


def describe_unknown(name: str, ports: Ports) -> str:
    """Return the error for an unknown cluster, and why a newer commit that may have it is not planned yet."""
    fleet = ports.state.fleet()
    error, not_yet = unknown_cluster(name, ports), str(fleet.problem or fleet.waiting)
    if not not_yet:
        return error
    return f"{error}{' A' if error.endswith('?') else '; a'} newer commit is not planned yet: {not_yet}"


def cluster_view(
    record: ClusterRecord, item: Item | None, sweep: SweepRecord, now: datetime
) -> schema.ClusterSummaryView:
    """Return a cluster as it is now; ``item`` is its part of the newest plan.

    A sweep saves nothing of a cluster that is as its record says: the list of its subscription says when.
    """
    job, spec = record.job, record.document["spec"]
    listed = sweep.listed_at(spec["subscriptionId"])
    steps, running = STEPS[job.recipe], record.running
    confirmed = listed if is_at_rest(record) else None
    found = bool(record.finding) and not of_health(record.finding)
    failure = failure_of(record)
    return projected(
        schema.ClusterSummaryView,
        record,
        record.desired,
        spec,
        running,
        phase=shown_phase(record),
        step=job.step.name if job.active or job.step.failure else "",
        stepNumber=steps.index(job.step.name) + 1,
        stepCount=len(steps),
        jobStartedAt=job.started,
        reason=_reason(record),
        since=since_of(record),
        actionRequired=with_name(job.next_run.action_required, record),
        awaitsTakeover=record.contested,
        nextCheckAt=job.due(now) if job.active else None,
        attempts=0 if record.finding or failure is None else job.attempts,
        failure=failure,
        plan=plan_part(item) if item else None,
        runningVersion=running.kubernetes_version,
        fluxRevision=running.flux.revision if running.flux else "",
        fluxReadAt=running.flux.read_at if running.flux else None,
        behind=behind_of(record, item),
        conditions=[
            condition_of(condition, confirmed if _is_confirmed(condition, found=found) else None)
            for condition in record.conditions
        ],
        trial=projected(schema.TrialView, record.trial, startedAt=record.trial.at) if record.trial else None,
        lifetime=lifetime_view(record, now),
        sleep=_sleep_view(record, now),
        retirements=retirements_of(record, now),
        certificates=certificates_of(record, now),
        comparedAt=compared_at(record, sweep),
    )


def _sleep_view(record: ClusterRecord, now: datetime) -> schema.SleepView | None:
    decision = None if record.deleting else record.sleep_at(now)
    if decision is None:
        return None
    by, reason = (decision.order.by, decision.order.reason) if decision.order else ("", "")
    return projected(schema.SleepView, decision, by=by, reason=reason)


def _is_known(name: str, ports: Ports) -> bool:
    """Return whether there is a cluster of a name, or was one, or git has one that is not created."""
    if ports.state.cluster(name) is not None or ports.state.events(name, 1):
        return True
    commit = ports.state.fleet().commit
    return NewestPlan(commit, items_of(ports.state.plan(commit)).get(name)).stopped is not None


def events_view(name: str, limit: int, before: datetime | None, ports: Ports) -> schema.Events | None:
    """Return a page of a cluster's events; None when nothing is known of it."""
    events, next_before = whole_moments(partial(ports.state.events, name), limit, before)
    if not events and not _is_known(name, ports):
        return None
    return {"name": name, "events": [event_of(event) for event in events], "next": next_before}


def _is_confirmed(condition: Condition, *, found: bool) -> bool:
    """Return whether a list confirms a condition of a cluster that no job works on.

    That is ``InSync``, and ``Ready`` where the list is what shows that it is so, or is not: it is what
    ``found`` something of the whole cluster.
    """
    if condition.status is None:
        return False
    return condition.type == IN_SYNC or (condition.type == READY and (bool(condition.status) or found))


def _reason(record: ClusterRecord) -> str:
    told = record.job.reason or problem_of(record) or _difference(record)
    return "; ".join(filter(None, (str(record.trial or ""), told, exempt_text(record))))


def _difference(record: ClusterRecord) -> str:
    drift = record.divergence.drift
    return "; ".join(filter(None, (f"differs from git in {drift}", drift.waits))) if drift else ""
