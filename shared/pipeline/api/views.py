"""What the API shows: JSON objects in the words of the field, for people and scripts.

No answer grows with the fleet: lists of clusters come in pages, in order of their names. ``next`` is the
``after`` of the next page, None at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from shared.fleet.planning.plan import Action, Item, Plan
from shared.jobs.diagnosis import Diagnosis, NewestPlan, diagnose, diagnose_absent, diagnose_deleted
from shared.jobs.events import Event
from shared.jobs.messages import Approval
from shared.jobs.record import ClusterRecord, Condition
from shared.pipeline.planner.commit_status import progress_of
from shared.pipeline.recovery.dead_letters import DEAD_LETTERS_SHOWN
from shared.ports import FleetRecord, PlanRecord, Ports

EVENTS_SHOWN = 20
SAME_MOMENT = 100
"""More events than a cluster has in one millisecond."""
PLANS_SHOWN = 50
PLANS_SHOWN_DAYS = 30
PROBLEMS_SHOWN = 100
ABSENT_SHOWN = 20
PAGE = 200
DELETED = "Deleted"
NOT_MADE = "Absent"
"""A cluster that git has and the newest plan does not make, for its manifest has a mistake."""


@dataclass(frozen=True)
class Page:
    """Which part of a list of clusters: at most ``limit``, of those after a name."""

    after: str = ""
    limit: int = PAGE

    def next(self, names: Sequence[str]) -> str | None:
        """Return the ``after`` of the next page, None when this one was not full."""
        return names[-1] if len(names) >= self.limit else None


def fleet_view(ports: Ports, page: Page = Page()) -> dict[str, Any]:
    """Return the fleet: what was planned last, and its clusters in short.

    ``absent`` are the first of those that the newest plan does not make, for a mistake in their manifests.
    """
    fleet = ports.state.fleet()
    records = ports.state.clusters_page(page.after, page.limit)
    items = _items(ports.state.plan(fleet.commit))
    absent = [name for name, item in items.items() if item.action is Action.INVALID and not item.uid]
    return {
        "fleet": ports.config.fleet,
        "repository": ports.config.repository,
        "branch": ports.config.branch,
        "commit": fleet.commit,
        "plannedAt": _time(fleet.at),
        **_hindrance(fleet),
        "deadLetters": ports.state.count_dead_letters(),
        "absent": absent[:ABSENT_SHOWN],
        "absentCount": len(absent),
        "clusters": [cluster_view(record, items.get(record.name)) for record in records],
        "next": page.next([record.name for record in records]),
    }


def _hindrance(fleet: FleetRecord) -> dict[str, Any]:
    """Return what keeps the fleet from its newest commit, and what a person can do about a problem."""
    problem = fleet.problem
    return {
        "problem": str(problem or ""),
        "waiting": fleet.waiting,
        "fleetNeeds": problem.suggested_action if problem else "",
    }


def _items(plan_record: PlanRecord | None) -> Mapping[str, Item]:
    return {item.cluster: item for item in plan_record.plan.items} if plan_record else {}


def cluster_detail(name: str, ports: Ports) -> dict[str, Any] | None:
    """Return one cluster with its spec and newest events; None when there is no trace of it."""
    record = ports.state.cluster(name)
    events = [_event(event) for event in ports.state.events(name, EVENTS_SHOWN)]
    fleet = ports.state.fleet()
    item = _items(ports.state.plan(fleet.commit)).get(name)
    beside = {**_hindrance(fleet), "events": events}
    if record is not None:
        return {**cluster_view(record, item), "spec": record.document["spec"], **beside}
    wanted = NewestPlan(fleet.commit, item).stopped
    if not events and wanted is None:
        return None
    phase = NOT_MADE if wanted else DELETED
    return {"name": name, "phase": phase, "plan": _part(wanted) if wanted else None, **beside}


def unknown(name: str, ports: Ports) -> str:
    """Say that there is no such cluster, and why a newer commit that may have it is not planned yet."""
    fleet = ports.state.fleet()
    not_yet = str(fleet.problem or fleet.waiting)
    words = f"there is no cluster {name[:63]} in the fleet {ports.config.fleet}"
    return f"{words}; a newer commit is not planned yet: {not_yet}" if not_yet else words


def cluster_view(record: ClusterRecord, item: Item | None) -> dict[str, Any]:
    """Return a cluster: where it is, what it waits for and since when, and when we look again.

    ``item`` is its part of the newest plan; ``plan`` says what that does, and why it does not.
    """
    job, spec = record.job, record.document["spec"]
    return {
        "name": record.name,
        "phase": record.phase.value,
        "step": job.step.name.value if job.active or job.step.failure else "",
        "waitingFor": job.reason,
        "since": _time(job.step.since if job.active else record.updated),
        "youCan": job.next_run.action_required,
        "nextLook": _time(job.next_run.at if job.active else None),
        "attempts": job.attempts,
        "failure": _failure(record),
        "generation": record.generation,
        "observedGeneration": record.observed_generation,
        "commit": record.commit,
        "plan": _part(item) if item else None,
        "location": spec["location"],
        "resourceGroup": spec["resourceGroup"],
        "subscriptionId": spec["subscriptionId"],
        "kubernetesVersion": spec["kubernetesVersion"],
        "conditions": [_condition(condition) for condition in record.conditions],
        "createdAt": _time(record.created),
        "updatedAt": _time(record.updated),
    }


def events_view(name: str, limit: int, before: datetime | None, ports: Ports) -> dict[str, Any] | None:
    """Return a page of a cluster's events, newest first; ``next`` is the ``before`` of the next page.

    A page is whole milliseconds, for that is what ``before`` tells apart: it may have a few more events than
    ``limit``. None when there is no trace of the cluster.
    """
    events = list(ports.state.events(name, limit, before))
    if not events and before is None and ports.state.cluster(name) is None:
        return None
    more = None
    if len(events) == limit:
        last = events[-1].at
        since = last.replace(microsecond=last.microsecond // 1000 * 1000)
        of_moment = ports.state.events(name, SAME_MOMENT, since + timedelta(milliseconds=1))
        events += [event for event in of_moment if event.at >= since and event not in events]
        more = last.isoformat()
    return {"name": name, "events": [_event(event) for event in events], "next": more}


def why_view(name: str, ports: Ports) -> dict[str, Any] | None:
    """Return why a cluster is as it is, in sentences; None when there is no trace of it.

    ``plan`` is what the newest plan does to it; ``problem`` and ``waiting`` keep the fleet from a newer one.
    """
    fleet, record = ports.state.fleet(), ports.state.cluster(name)
    plan_record = ports.state.plan(fleet.commit)
    newest = NewestPlan(fleet.commit, _items(plan_record).get(name), fleet.problem)
    phase = record.phase.value if record else NOT_MADE
    if record is not None:
        found: Diagnosis | None = diagnose(record, newest, now=ports.clock(), retries=ports.config.retries)
    else:
        found = diagnose_absent(newest, plan_record.at) if plan_record else None
    if found is None:
        events = ports.state.events(name, 1)
        if not events:
            return None
        last = events[0]
        phase, found = DELETED, diagnose_deleted(last.reason, last.message, last.at)
    return {
        "name": name,
        "phase": phase,
        "doing": found.activity,
        "since": _time(found.since),
        "attempts": found.attempts,
        "lastError": _failure(record) if record else None,
        "plan": _part(newest.item) if newest.item else None,
        **_hindrance(fleet),
        "next": found.next,
        "nextAt": _time(found.next_at),
        "youCan": found.suggested_action,
    }


def dead_letters_view(ports: Ports) -> dict[str, Any]:
    """Return the newest messages that nobody understood."""
    letters = ports.state.dead_letters(DEAD_LETTERS_SHOWN)
    return {"deadLetters": [{**vars(letter), "at": _time(letter.at)} for letter in letters]}


def recorded_view(ports: Ports, page: Page = Page()) -> dict[str, Any]:
    """Return what a plan is made against: the clusters as they were accepted, and the fleet's last commit.

    ``approval`` is the one given at that commit; each cluster says whether its delete is held or approved.
    """
    commit = ports.state.fleet().commit
    records = ports.state.clusters_page(page.after, page.limit)
    plan_record = ports.state.plan(commit)
    held = plan_record.plan.held_deletes if plan_record else frozenset[str]()
    approved = frozenset(plan_record.approval.clusters if plan_record and plan_record.approval else ())
    return {
        "fleet": ports.config.fleet,
        "commit": commit,
        "approval": _approval(plan_record.approval if plan_record else None),
        "clusters": [
            {**_recorded(record), "heldDelete": record.name in held, "approved": record.name in approved}
            for record in records
        ],
        "next": page.next([record.name for record in records]),
    }


def _recorded(record: ClusterRecord) -> dict[str, Any]:
    return {
        "name": record.name,
        "document": record.document,
        "digest": record.digest,
        "generation": record.generation,
        "uid": record.uid,
        "deleting": record.deleting,
        "givenUp": record.retryable_failure,
    }


def plan_view(commit: str, ports: Ports, page: Page = Page()) -> dict[str, Any] | None:
    """Return the plan of a commit and how far it is; None when that commit was not planned.

    ``heldDeletes`` are those of this page; an approval names the ones of all pages.
    """
    plan_record = ports.state.plan(commit)
    if plan_record is None:
        return None
    records = {record.name: record for record in ports.state.clusters()}
    newest = commit == ports.state.fleet().commit
    progress = progress_of(plan_record.plan, records, newest=newest)
    items = [item for item in sorted(plan_record.plan.items, key=_name) if item.cluster > page.after][
        : page.limit
    ]
    return {
        **_plan(plan_record, newest=newest),
        "problems": list(plan_record.plan.problems[:PROBLEMS_SHOWN]),
        "heldDeletes": [item.cluster for item in items if item.held_delete],
        "items": [_item(item) for item in items],
        "next": page.next([item.cluster for item in items]),
        "progress": {
            "total": progress.total,
            "ready": progress.ready,
            "failed": progress.failed,
            "firstProblem": progress.first_problem,
        },
    }


def _plan(plan_record: PlanRecord, *, newest: bool) -> dict[str, Any]:
    plan = plan_record.plan
    return {
        "commit": plan.commit,
        "plannedAt": _time(plan_record.at),
        "summary": plan.summary,
        "status": plan_record.reported,
        "problemCount": len(plan.problems),
        "heldDeleteCount": len(plan.held_deletes),
        "approval": _approval(plan_record.approval),
        "release": _release(plan) if newest else "",
    }


def _item(item: Item) -> dict[str, Any]:
    changes = [vars(change) for change in item.changes]
    return {"cluster": item.cluster, **_part(item), "generation": item.generation, "changes": changes}


def _part(item: Item) -> dict[str, Any]:
    return {"action": item.action.value, "reason": item.reason, "heldDelete": item.held_delete}


def _name(item: Item) -> str:
    return item.cluster


def _release(plan: Plan) -> str:
    """Return how the held deletes of the newest plan are released, "" when it holds none."""
    if not plan.held_deletes:
        return ""
    return (
        f"roadstead approve {plan.commit[:8]}, or POST api/plans/{plan.commit}/approve "
        'with {"clusters": [...]} naming exactly the held deletes; a newer commit needs a new approval'
    )


def plans_view(ports: Ports) -> dict[str, Any]:
    """Return the plans of the last days in short, newest first; the planned commit's however old it is."""
    since, newest = ports.clock() - timedelta(days=PLANS_SHOWN_DAYS), ports.state.fleet().commit
    plan_records = list(ports.state.plans_since(since)[:PLANS_SHOWN])
    current = None if any(r.plan.commit == newest for r in plan_records) else ports.state.plan(newest)
    if current is not None:
        plan_records.append(current)
    return {
        "plans": [
            _plan(plan_record, newest=plan_record.plan.commit == newest) for plan_record in plan_records
        ]
    }


def _approval(given: Approval | None) -> dict[str, Any] | None:
    return {"by": given.by, "at": _time(given.at), "clusterCount": len(given.clusters)} if given else None


def _failure(record: ClusterRecord) -> dict[str, Any] | None:
    failure = record.job.step.failure
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
        "startedAt": _time(event.started),
        "requestIds": list(event.request_ids),
    }


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="seconds") if moment else None
