"""What the API shows: JSON objects in the words of the field, for people and scripts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from shared.jobs.row import ClusterRow, Condition
from shared.jobs.settle import Event
from shared.jobs.why import why
from shared.pipeline.report import progress_of
from shared.ports import PlanRecord, Ports

EVENTS_SHOWN = 20
LETTERS_SHOWN = 100
PLANS_SHOWN = 50
PLANS_SHOWN_DAYS = 30


def fleet_view(ports: Ports) -> dict[str, Any]:
    """Return the fleet: what was planned last, and every cluster in short."""
    fleet = ports.state.fleet()
    return {
        "fleet": ports.config.fleet,
        "repository": ports.config.repository,
        "branch": ports.config.branch,
        "commit": fleet.commit,
        "plannedAt": _time(fleet.at),
        "problem": fleet.problem,
        "deadLetters": ports.state.count_dead_letters(),
        "clusters": [cluster_view(row) for row in ports.state.clusters()],
    }


def cluster_detail(name: str, ports: Ports) -> dict[str, Any] | None:
    """Return one cluster with its spec and newest events; None when there is no trace of it."""
    row = ports.state.cluster(name)
    events = ports.state.events(name, EVENTS_SHOWN)
    if row is None and not events:
        return None
    if row is None:
        return {"name": name, "phase": "Deleted", "events": [_event(event) for event in events]}
    return {**cluster_view(row), "spec": row.document["spec"], "events": [_event(event) for event in events]}


def cluster_view(row: ClusterRow) -> dict[str, Any]:
    """Return a cluster: where it is, what it waits for and since when, and when we look again."""
    job, spec = row.job, row.document["spec"]
    return {
        "name": row.name,
        "phase": row.phase.value,
        "step": job.step.value if job.active or job.failure else "",
        "waitingFor": job.reason,
        "since": _time(job.step_since if job.active else row.updated),
        "nextLook": _time(job.next_at if job.active else None),
        "attempts": job.attempts,
        "failure": _failure(row),
        "generation": row.generation,
        "observedGeneration": row.observed_generation,
        "commit": row.commit,
        "location": spec["location"],
        "resourceGroup": spec["resourceGroup"],
        "subscriptionId": spec["subscriptionId"],
        "kubernetesVersion": spec["kubernetesVersion"],
        "conditions": [_condition(condition) for condition in row.conditions],
        "createdAt": _time(row.created),
        "updatedAt": _time(row.updated),
    }


def events_view(name: str, limit: int, before: datetime | None, ports: Ports) -> dict[str, Any] | None:
    """Return a page of a cluster's events, newest first; ``next`` is the ``before`` of the next page.

    None when there is no trace of the cluster.
    """
    events = ports.state.events(name, limit, before)
    if not events and before is None and ports.state.cluster(name) is None:
        return None
    more = events[-1].at.isoformat() if len(events) == limit else None
    return {"name": name, "events": [_event(event) for event in events], "next": more}


def why_view(name: str, ports: Ports) -> dict[str, Any] | None:
    """Return why a cluster is as it is, in sentences; None when there is no trace of it."""
    row = ports.state.cluster(name)
    if row is not None:
        found = why(row, now=ports.clock(), retries=ports.config.retries)
        return {
            "name": name,
            "phase": row.phase.value,
            "doing": found.doing,
            "since": _time(found.since),
            "attempts": found.attempts,
            "lastError": _failure(row),
            "next": found.next,
            "nextAt": _time(found.next_at),
            "youCan": found.person,
        }
    events = ports.state.events(name, 1)
    if not events:
        return None
    return {
        "name": name,
        "phase": "Deleted",
        "doing": f"nothing: the cluster is gone ({events[0].reason}: {events[0].message})",
        "since": _time(events[0].at),
        "attempts": 0,
        "lastError": None,
        "next": "a commit that adds it again",
        "nextAt": None,
        "youCan": "",
    }


def dead_letters_view(ports: Ports) -> dict[str, Any]:
    """Return the newest messages that nobody understood."""
    letters = ports.state.dead_letters(LETTERS_SHOWN)
    return {"deadLetters": [{**vars(letter), "at": _time(letter.at)} for letter in letters]}


def recorded_view(ports: Ports) -> dict[str, Any]:
    """Return what a plan is made against: every cluster as it was accepted, and the fleet's last commit."""
    return {
        "fleet": ports.config.fleet,
        "commit": ports.state.fleet().commit,
        "clusters": [_recorded(row) for row in ports.state.clusters()],
    }


def _recorded(row: ClusterRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "document": row.document,
        "digest": row.digest,
        "generation": row.generation,
        "uid": row.uid,
        "deleting": row.deleting,
        "givenUp": row.given_up,
    }


def plan_view(commit: str, ports: Ports) -> dict[str, Any] | None:
    """Return the plan of a commit and how far it is; None when that commit was not planned."""
    record = ports.state.plan(commit)
    if record is None:
        return None
    rows = {row.name: row for row in ports.state.clusters()}
    progress = progress_of(record.plan, rows, newest=commit == ports.state.fleet().commit)
    return {
        **_plan(record),
        "progress": {
            "total": progress.total,
            "ready": progress.ready,
            "failed": progress.failed,
            "firstProblem": progress.first_problem,
        },
    }


def _plan(record: PlanRecord) -> dict[str, Any]:
    plan = record.plan
    items = [
        {
            "cluster": item.cluster,
            "action": item.action.value,
            "generation": item.generation,
            "reason": item.reason,
            "changes": [vars(change) for change in item.changes],
        }
        for item in plan.items
    ]
    return {
        "commit": plan.commit,
        "plannedAt": _time(record.at),
        "summary": plan.summary,
        "status": record.reported,
        "problems": list(plan.problems),
        "heldDeletes": sorted(plan.held_deletes),
        "approval": _approval(record),
        "items": items,
    }


def plans_view(ports: Ports) -> dict[str, Any]:
    """Return the plans of the last days in short, newest first."""
    since = ports.clock() - timedelta(days=PLANS_SHOWN_DAYS)
    records = ports.state.plans_since(since)[:PLANS_SHOWN]
    return {"plans": [{key: value for key, value in _plan(r).items() if key != "items"} for r in records]}


def _approval(record: PlanRecord) -> dict[str, Any] | None:
    return record.approval.model_dump(mode="json") if record.approval else None


def _failure(row: ClusterRow) -> dict[str, Any] | None:
    failure = row.job.failure
    if failure is None:
        return None
    return {
        "class": failure.kind,
        "message": failure.message,
        "since": _time(failure.since),
        "code": failure.code,
        "requestId": failure.request_id,
    }


def _condition(condition: Condition) -> dict[str, Any]:
    return {
        "type": condition.type,
        "status": "True" if condition.status else "False",
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": _time(condition.since),
    }


def _event(event: Event) -> dict[str, Any]:
    return {
        "at": _time(event.at),
        "type": "Warning" if event.warning else "Normal",
        "reason": event.reason,
        "step": event.step,
        "message": event.message,
        "generation": event.generation,
    }


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="seconds") if moment else None
