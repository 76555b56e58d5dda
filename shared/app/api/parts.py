"""Parts that several objects of the API share, and the pages of a list of clusters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any, Protocol, TypeVar, cast

from shared.app.api import schema
from shared.azure.policies import by_name
from shared.azure.retirements import retiring
from shared.cluster.failures.errors import Unreadable, is_wait
from shared.cluster.failures.remedies import suggested_action
from shared.cluster.forms import Listed, UnreadableRecord
from shared.cluster.history import Event
from shared.cluster.record import ClusterRecord, Condition
from shared.cluster.reporting.diagnosis import CORRECT_FILE
from shared.cluster.reporting.events import RELEASED
from shared.json_tree import path_text
from shared.kubernetes.kubeconfig import ending
from shared.plan.plan import Item, with_since
from shared.ports import FleetRecord, PlanRecord
from shared.ports.state import Clusters
from shared.sentences import some_of

PAGE = 200
SHOWN = 5
SAME_MOMENT = 100
"""More than there is of one millisecond."""
TAKEOVER = (
    "`roadstead why NAME` says who, or what differs. Stop the other app, or run `roadstead takeover NAME`, "
    "or with --all."
)


@dataclass(frozen=True)
class Page:
    """A page of a list of clusters: at most ``limit``, in order of their names, after the name ``after``."""

    after: str = ""
    limit: int = PAGE

    def next(self, names: Sequence[str]) -> str | None:
        """Return the ``after`` of the next page, None when this one was not full."""
        return names[-1] if len(names) >= self.limit else None


FIRST_PAGE = Page()


class _Dated(Protocol):
    @property
    def at(self) -> datetime: ...


Stored = TypeVar("Stored", bound=_Dated)


def whole_moments(
    read: Callable[[int, datetime | None], Sequence[Stored]], limit: int, before: datetime | None
) -> tuple[list[Stored], str | None]:
    """Return a page of what is listed by its time, newest first, and the ``before`` of the next one.

    ``before`` distinguishes whole milliseconds, so a page never ends within one: it may have a few more
    than ``limit``.
    """
    found = list(read(limit, before))
    if len(found) < limit:
        return found, None
    last = found[-1].at
    since = last.replace(microsecond=last.microsecond // 1000 * 1000)
    same_moment = read(SAME_MOMENT, since + timedelta(milliseconds=1))
    found += [each for each in same_moment if each.at >= since and each not in found]
    return found, last.isoformat()


def names_in(page: Listed[ClusterRecord]) -> Sequence[str]:
    """Return the names of a page of clusters, with those whose records cannot be read."""
    return sorted(page.keyed(attrgetter("name")))


def unreadable_records(records: Iterable[UnreadableRecord]) -> list[schema.UnreadableRecord]:
    """Return records that cannot be read, each once, and what to do."""
    action = suggested_action(Unreadable.__name__, failed=False)
    return [
        projected(schema.UnreadableRecord, record, problem=str(record), suggestedAction=action)
        for record in dict.fromkeys(records)
    ]


def fleet_problem(fleet: FleetRecord, newest: PlanRecord | None = None) -> schema.FleetProblem:
    """Return what prevents a newer commit from being planned, and what an operator can do about it.

    With the newest plan, an invalid fleet.yaml is such a problem too.
    """
    underway = f"{fleet.planning[:8]}: {fleet.handed_over}" if fleet.handed_over else ""
    problem, waiting = fleet.problem, fleet.waiting or underway
    if fleet.contested and not problem:
        return {"problem": _contested(fleet.contested), "waiting": waiting, "fleetSuggestedAction": TAKEOVER}
    invalid = newest.plan.fleet_file_problem if newest else ""
    if invalid and not problem:
        return {"problem": invalid, "waiting": waiting, "fleetSuggestedAction": CORRECT_FILE}
    return {
        "problem": str(problem or ""),
        "waiting": waiting,
        "fleetSuggestedAction": problem.suggested_action if problem else "",
    }


def _contested(names: Sequence[str]) -> str:
    whom = "another app of this fleet may manage them, or the tables were lost or are too old"
    return f"clusters that are not written to, because {whom}: {some_of(names, SHOWN)}"


def items_of(plan_record: PlanRecord | None) -> Mapping[str, Item]:
    """Return the items of a plan by cluster, with since when they are on hold; none without a plan."""
    if plan_record is None:
        return {}
    return {item.cluster: with_since(item, plan_record.held) for item in plan_record.plan.items}


def not_created(items: Mapping[str, Item], state: Clusters) -> list[str]:
    """Return the clusters that a plan does not create because their manifests are invalid.

    Reads the record of each that was being deleted at the time of the plan.
    """
    return [name for name, item in items.items() if item.is_new_and_invalid and _is_absent(item, state)]


def _is_absent(item: Item, state: Clusters) -> bool:
    return not item.uid or not state.clusters_named([item.cluster]).keyed(attrgetter("name"))


def phase_of_gone(events: Sequence[Event]) -> str:
    """Return the phase of a cluster of which only events remain, newest first."""
    return schema.RELEASED if events and events[0].reason == RELEASED else schema.DELETED


def plan_part(item: Item) -> schema.PlanPart:
    """Return what a plan does to a cluster."""
    hold, since = item.hold if item.hold and item.hold.has_an_end else None, item.hold and item.hold.since
    return {
        "action": item.action.value,
        "notCarriedOut": item.not_carried_out,
        "reason": item.reason,
        "cause": item.hold.cause if item.hold else "",
        "remedy": item.hold.remedy() if item.hold else "",
        "needsApproval": item.needs_approval,
        "releases": item.releases,
        "since": iso(since) if since else None,
        "until": iso(hold.until) if hold and hold.until else None,
        "owner": hold.details.get("owner", "") if hold else "",
        "because": hold.details.get("reason", "") if hold else "",
    }


def failure_of(record: ClusterRecord) -> schema.Failure | None:
    """Return the last error of a cluster's job, None for a job that only waits."""
    failure = record.job.step.failure
    if failure is None or (record.job.active and is_wait(failure.kind)):
        return None
    return {
        "class": failure.kind,
        "message": failure.message,
        "since": iso(failure.since),
        "code": failure.code,
        "requestId": failure.request_id,
    }


def retirements_of(record: ClusterRecord, now: datetime) -> list[schema.Retirement]:
    """Return what AKS retires of a cluster, by its accepted spec and the version that it runs."""
    running = record.running.kubernetes_version if record.running else ""
    return [
        {
            "field": path_text(each.path),
            "what": each.announced.what,
            "on": each.announced.on.isoformat(),
            "message": str(each),
            "source": each.announced.source,
        }
        for each in retiring(record.document["spec"], now.date(), running=running)
    ]


def certificates_of(record: ClusterRecord, now: datetime) -> list[schema.EndingCertificate]:
    """Return the certificates of a cluster's API server that end soon, as the last check saw them."""
    seen, in_azure = record.inside.certificates if record.inside else (), not record.desired.is_existing
    found = ending(seen, now, in_azure=in_azure)
    return [{"of": each.of, "endsAt": iso(each.ends), "message": text} for each, text in found]


def policies_of(record: ClusterRecord) -> list[schema.Policy]:
    """Return the policies of a cluster's accepted spec, with what the last check read of each."""
    desired, read = record.desired, record.compliance
    if desired.problem:
        return []
    found = {each.assignment: each for each in read.states} if read else {}
    policies: list[schema.Policy] = []
    for name, entry in by_name(desired.id, desired.spec.policies).items():
        state = found.get(name)
        policies.append(
            {
                "name": entry.name,
                "definition": entry.definition,
                "enforcementMode": entry.enforcement_mode,
                "state": state.state if state else "",
                "nonCompliant": state.non_compliant if state else 0,
                "evaluatedAt": iso(state.evaluated if state else None),
                "readAt": iso(read.read if read and state else None),
            }
        )
    return policies


def condition_of(condition: Condition, listed: datetime | None = None) -> schema.Condition:
    """Return a condition as Kubernetes writes one; ``listed`` is when a sweep confirmed it, if one has."""
    verified = max(condition.verified, listed or condition.verified)
    return projected(
        schema.Condition,
        condition,
        status="Unknown" if condition.status is None else str(condition.status),
        lastTransitionTime=iso(condition.since),
        lastVerifiedTime=iso(verified),
    )


def event_of(event: Event) -> schema.Event:
    """Return an event as Kubernetes writes one."""
    kind = "Warning" if event.warning else "Normal"
    return projected(schema.Event, event, type=kind, startedAt=iso(event.started))


def iso(moment: datetime | None) -> str | None:
    """Return a time as the API writes it."""
    return moment.isoformat(timespec="seconds") if moment else None


Shape = TypeVar("Shape")


def projected(shape: type[Shape], source: object, **computed: Any) -> Shape:
    """Return an object of the API: what is not computed are the source's fields of the same names.

    Times, enums and collections become what JSON has of them. A field that the source lacks is an
    AttributeError.
    """
    found = {
        name: computed[name] if name in computed else _plain(getattr(source, _attribute(name)))
        for name in shape.__annotations__
    }
    return cast("Shape", found)


@cache
def _attribute(name: str) -> str:
    return re.sub("[A-Z]", r"_\g<0>", name).lower()


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return dict(value) if isinstance(value, Mapping) else value
