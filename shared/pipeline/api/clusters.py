"""The fleet, its clusters and their events."""

from __future__ import annotations

from datetime import datetime, timedelta

from shared.fleet.planning.plan import Item
from shared.jobs.diagnosis import NewestPlan
from shared.jobs.record import ClusterRecord
from shared.pipeline.api import schema
from shared.pipeline.api.cluster_list import EVERYTHING, Selection, counts_of, names_of_page
from shared.pipeline.api.notify import failing_channels
from shared.pipeline.api.parts import (
    FIRST_PAGE,
    Page,
    condition_of,
    event_of,
    failure_of,
    fleet_problem,
    iso,
    items_of,
    not_created,
    plan_part,
)
from shared.pipeline.api.sweep_view import sweep_view
from shared.pipeline.http_result import unknown_cluster
from shared.ports import Ports

EVENTS_SHOWN = 20
NOT_CREATED_SHOWN = NEEDS_APPROVAL_SHOWN = 20
SAME_MOMENT = 100
"""More than a cluster's events of one millisecond."""


def fleet_view(ports: Ports, page: Page = FIRST_PAGE, selection: Selection = EVERYTHING) -> schema.Fleet:
    """Return the fleet: what was planned last, and a page of its clusters.

    The records of the page alone are read as a whole. Its counts need the summaries of all clusters, and so
    does a list of some; a later page of the list of all clusters has no counts.
    """
    fleet = ports.state.fleet()
    summaries = ports.state.summaries() if not page.after or not selection.everything else None
    if summaries is None or selection.everything:
        records = ports.state.clusters_page(page.after, page.limit)
        following = page.next([record.name for record in records])
    else:
        names, following = names_of_page(summaries, selection, page)
        records = ports.state.clusters_named(names)
    newest = ports.state.plan(fleet.commit)
    items = items_of(newest)
    missing = not_created(items, ports.state)
    approvable = sorted(newest.plan.deletes_needing_approval) if newest else []
    return {
        "fleet": ports.config.fleet,
        "repository": ports.config.repository,
        "branch": ports.config.branch,
        "commit": fleet.commit,
        "plannedAt": iso(fleet.at),
        **fleet_problem(fleet, newest),
        "deadLetterCount": ports.state.count_dead_letters(),
        "notCreated": missing[:NOT_CREATED_SHOWN],
        "notCreatedCount": len(missing),
        "needsApproval": approvable[:NEEDS_APPROVAL_SHOWN],
        "needsApprovalCount": len(approvable),
        "failingChannels": [] if page.after else failing_channels(fleet, ports),
        "counts": None if summaries is None else counts_of(summaries, selection),
        "sweep": None if page.after else sweep_view(ports),
        "clusters": [cluster_view(record, items.get(record.name), ports.clock()) for record in records],
        "next": following,
    }


def cluster_detail(name: str, ports: Ports) -> schema.Cluster | schema.MissingCluster | None:
    """Return one cluster with its spec and newest events; None when nothing is known of it."""
    record = ports.state.cluster(name)
    events = [event_of(event) for event in ports.state.events(name, EVENTS_SHOWN)]
    fleet = ports.state.fleet()
    item = items_of(ports.state.plan(fleet.commit)).get(name)
    problem = fleet_problem(fleet)
    if record is not None:
        spec = record.document["spec"]
        return {**cluster_view(record, item, ports.clock()), **problem, "spec": spec, "events": events}
    stopped = NewestPlan(fleet.commit, item).stopped
    if not events and stopped is None:
        return None
    phase = schema.NOT_CREATED if stopped else schema.DELETED
    part = plan_part(stopped) if stopped else None
    return {"name": name, "phase": phase, "plan": part, **problem, "events": events}


def describe_unknown(name: str, ports: Ports) -> str:
    """Return the error for an unknown cluster, and why a newer commit that may have it is not planned yet."""
    fleet = ports.state.fleet()
    error, not_yet = unknown_cluster(name, ports.config.fleet), str(fleet.problem or fleet.waiting)
    return f"{error}; a newer commit is not planned yet: {not_yet}" if not_yet else error


def cluster_view(record: ClusterRecord, item: Item | None, now: datetime) -> schema.ClusterSummary:
    """Return a cluster as it is now; ``item`` is its part of the newest plan."""
    job, spec = record.job, record.document["spec"]
    return {
        "name": record.name,
        "phase": record.phase.value,
        "step": job.step.name.value if job.active or job.step.failure else "",
        "reason": job.reason,
        "since": iso(job.step.since if job.active else record.updated),
        "actionRequired": job.next_run.action_required,
        "awaitsTakeover": record.contested,
        "nextCheckAt": iso(job.due(now) if job.active else None),
        "attempts": job.attempts,
        "failure": failure_of(record),
        "generation": record.generation,
        "observedGeneration": record.observed_generation,
        "commit": record.commit,
        "plan": plan_part(item) if item else None,
        "environment": record.desired.environment,
        "location": spec["location"],
        "resourceGroup": spec["resourceGroup"],
        "subscriptionId": spec["subscriptionId"],
        "kubernetesVersion": spec["kubernetesVersion"],
        "conditions": [condition_of(condition) for condition in record.conditions],
        "createdAt": iso(record.created),
        "updatedAt": iso(record.updated),
    }


def events_view(name: str, limit: int, before: datetime | None, ports: Ports) -> schema.Events | None:
    """Return a page of a cluster's events; None when nothing is known of it.

    ``before`` distinguishes whole milliseconds, so a page never ends within one: it may have a few
    more events than ``limit``.
    """
    events = list(ports.state.events(name, limit, before))
    if not events and before is None and ports.state.cluster(name) is None:
        return None
    next_before = None
    if len(events) == limit:
        last = events[-1].at
        since = last.replace(microsecond=last.microsecond // 1000 * 1000)
        same_moment = ports.state.events(name, SAME_MOMENT, since + timedelta(milliseconds=1))
        events += [event for event in same_moment if event.at >= since and event not in events]
        next_before = last.isoformat()
    return {"name": name, "events": [event_of(event) for event in events], "next": next_before}
