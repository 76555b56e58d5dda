"""Parts that several objects of the API share, and the pages of a list of clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Protocol, TypeVar

from shared.app.api import schema
from shared.app.api.projection import iso, projected
from shared.azure.availability.retirements import retiring
from shared.azure.companions.policies import PolicyCompanion
from shared.cluster.failures.advice import explained
from shared.cluster.failures.catalogue import entry_of
from shared.cluster.failures.errors import Unreadable, is_wait
from shared.cluster.failures.remedies import suggested_action
from shared.cluster.findings.conditions import IN_SYNC, is_at_rest
from shared.cluster.forms import RecordList, UnreadableRecord
from shared.cluster.history import Event
from shared.cluster.lifetime import Lifetime, lifetime_of, spared
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Condition
from shared.cluster.reporting.diagnosis import CORRECT_FILE
from shared.cluster.reporting.events import RELEASED
from shared.frozen import dataclass
from shared.json_tree import path_text
from shared.kubernetes.kubeconfig import ending
from shared.plan.plan import Item, with_since
from shared.ports import FleetRecord, PlanRecord
from shared.ports.state import Clusters, SweepRecord
from shared.sentences import some_of

PAGE = 200
SHOWN = 5
SAME_MOMENT = 100
"""More than there is of one millisecond."""
TAKEOVER = (
    "`roadstead why NAME` says who, or what differs, and what ends it. Stop another app; or run "
    "`roadstead takeover NAME`, or with --all."
)


@dataclass(frozen=True)
class ClusterPage:
    """A page of a list of clusters: at most ``limit``, in order of their names, after the name ``after``."""

    after: str = ""
    limit: int = PAGE

    def next(self, names: Sequence[str]) -> str | None:
        """Return the ``after`` of the next page, None when this one was not full."""
        return names[-1] if len(names) >= self.limit else None


FIRST_PAGE = ClusterPage()


class _Dated(Protocol):
    @property
    def at(self) -> datetime: ...


Stored = TypeVar("Stored", bound=_Dated)


def whole_moments(
    read: Callable[[int, datetime | None], Sequence[Stored]], limit: int, before: datetime | None
) -> tuple[list[Stored], str | None]:
    """Return a page of what is listed by its time, newest first, and the ``before`` of the next one."""
    found = list(read(limit, before))
    if len(found) < limit:
        return found, None
    last = found[-1].at
    since = last.replace(microsecond=last.microsecond // 1000 * 1000)
    same_moment = read(SAME_MOMENT, since + timedelta(milliseconds=1))
    found += [item for item in same_moment if item.at >= since and item not in found]
    return found, last.isoformat()


def names_in(page: RecordList[ClusterRecord]) -> Sequence[str]:
    """Return the names of a page of clusters, with those whose records cannot be read."""
    return sorted(page.keyed(attrgetter("name")))


def unreadable_records(records: Iterable[UnreadableRecord]) -> list[schema.UnreadableRecordView]:
    """Return records that cannot be read, each once, and what to do."""
    action = suggested_action(Unreadable.__name__, failed=False)
    return [
        projected(schema.UnreadableRecordView, record, problem=str(record), suggestedAction=action)
        for record in dict.fromkeys(records)
    ]


RESUME = "`roadstead resume` ends the pause."


def fleet_problem(
    fleet: FleetRecord, now: datetime, newest: PlanRecord | None = None, contested: Sequence[str] = ()
) -> schema.FleetProblemView:
    """Return what prevents a newer commit from being carried out, and what an operator can do about it.

    ``contested`` are clusters that wait for a takeover.
    """
    underway = f"{fleet.planning[:8]}: {fleet.handed_over}" if fleet.handed_over else ""
    pause = fleet.paused(now)
    problem, action = "", ""
    if fleet.problem:
        problem, action = str(fleet.problem), fleet.problem.suggested_action
    elif contested:
        problem, action = _contested(contested), TAKEOVER
    elif newest and newest.plan.fleet_file_problem:
        problem, action = newest.plan.fleet_file_problem, CORRECT_FILE
    elif fleet.tables.recovery:
        since = f"{fleet.tables.recovery.since:%Y-%m-%d %H:%M:%S} UTC"
        problem = f"the tables were lost or restored: since {since} clusters are compared, and not written to"
        action = "Wait until every cluster was compared. Then decide about those that wait for a takeover."
    return {
        "problem": problem,
        "waiting": fleet.waiting or underway,
        "paused": str(pause or ""),
        "fleetSuggestedAction": action or (RESUME if pause else ""),
    }


def followed_sources(fleet: FleetRecord) -> list[schema.FollowedSource]:
    """Return the sources besides the fleet repository that clusters follow by rollout."""
    return [
        projected(
            schema.FollowedSource,
            known,
            repository=known.url,
            clusterCount=known.clusters,
            suggestedAction=known.remedy,
        )
        for known in fleet.origin.followed
    ]


def _contested(names: Sequence[str]) -> str:
    why = (
        "another app of this fleet may manage them, others have their places, or the tables were lost or are"
        " too old"
    )
    return f"clusters that are not written to, because {why}: {some_of(names, SHOWN)}"


def items_of(plan_record: PlanRecord | None) -> Mapping[str, Item]:
    """Return the items of a plan by cluster, with since when they are on hold; none without a plan."""
    if plan_record is None:
        return {}
    return {item.cluster: with_since(item, plan_record.held) for item in plan_record.plan.items}


def not_created(items: Mapping[str, Item], state: Clusters) -> list[str]:
    """Return the clusters that a plan does not create because their manifests are invalid."""
    return [name for name, item in items.items() if item.is_new_and_invalid and _is_absent(item, state)]


def _is_absent(item: Item, state: Clusters) -> bool:
    return not item.uid or not state.clusters_named([item.cluster]).keyed(attrgetter("name"))


def phase_of_gone(events: Sequence[Event]) -> str:
    """Return the phase of a cluster of which only events remain, newest first."""
    return schema.RELEASED if events and events[0].reason == RELEASED else schema.DELETED


def plan_part(item: Item) -> schema.PlanPart:
    """Return what a plan does to a cluster."""
    hold = item.hold
    return projected(
        schema.PlanPart,
        item,
        hold,
        remedy=hold.remedy() if hold else "",
        owner=hold.details.get("owner", "") if hold and hold.has_an_end else "",
        because=hold.details.get("reason", "") if hold and hold.has_an_end else "",
    )


def behind_of(record: ClusterRecord | None, item: Item | None) -> int | None:
    """Return how many commits follow the one that Flux pulls, until the record has what the plan gives it."""
    if record is None or item is None or item.uid != record.uid:
        return None
    return item.behind if item.keeps_pin or item.lags or record.generation < item.generation else None


def failure_of(record: ClusterRecord) -> schema.Failure | None:
    """Return the last error of a cluster's job, None for a job that only waits."""
    failure = record.job.step.failure
    if failure is None or (record.job.active and is_wait(failure.kind)):
        return None
    entry = entry_of(failure.entry)
    return {
        "class": failure.kind,
        "message": failure.message,
        "since": iso(failure.since),
        "code": failure.code,
        "requestId": failure.request_id,
        "entry": failure.entry,
        "meaning": explained(failure.kind, failure.entry),
        "who": entry.actor.value if entry else "",
        "link": entry.link if entry else "",
    }


def retirements_of(record: ClusterRecord, now: datetime) -> list[schema.RetirementView]:
    """Return what AKS retires of a cluster, by its accepted spec and the version that it runs."""
    running = record.running.kubernetes_version
    found = retiring(record.document["spec"], now.date(), running=running)
    return [
        projected(
            schema.RetirementView,
            retirement.announced,
            field=path_text(retirement.path),
            message=str(retirement),
        )
        for retirement in found
    ]


def certificates_of(record: ClusterRecord, now: datetime) -> list[schema.EndingCertificate]:
    """Return the certificates of a cluster's API server that end soon, as the last check saw them."""
    seen, in_azure = (
        record.observation.inside.certificates if record.observation.inside else (),
        not record.desired.is_attached,
    )
    found = ending(seen, now, in_azure=in_azure)
    return [projected(schema.EndingCertificate, certificate, message=text) for certificate, text in found]


def lifetime_view(record: ClusterRecord, now: datetime) -> schema.LifetimeView | None:
    """Return when a cluster ends, None for never, and for one that was never Ready."""
    life, state = lifetime_of(record), record.azure.lifetime
    if life is None:
        return None
    held = state.hold if state.hold and state.hold.until > now else None
    asked = held or state.extension
    return projected(
        schema.LifetimeView,
        endsAt=life.ends,
        extended=state.extension is not None and state.extension.until == life.ends,
        heldUntil=held.until if held else None,
        by=asked.by if asked else "",
        reason=asked.reason if asked else "",
        pullRequest=state.pull.url if state.pull and life.is_proposed else "",
        waits=_stays(record, life, now) if now >= life.ends else "",
    )


def _stays(record: ClusterRecord, life: Lifetime, now: datetime) -> str:
    """Return why a cluster stays whose end has come."""
    state = record.azure.lifetime
    if life.over > now and state.hold:
        return f"{state.hold.by} holds it until {life.over:%Y-%m-%d %H:%M} UTC: {state.hold.reason}"
    if life.is_proposed:
        declined = state.pull is not None and state.pull.declined
        return (
            "its pull request was closed: remove its folder, or give it another end"
            if declined
            else "its pull request is not merged yet"
        )
    asked = "a pull request that removes it is opened by a timer, unless the fleet is paused or frozen"
    return spared(record, now) or state.problem or asked


def policies_of(record: ClusterRecord) -> list[schema.Policy]:
    """Return the policies of a cluster's accepted spec, with what the last check read of each."""
    desired, read = record.desired, record.observation.companions.compliance
    if desired.problem:
        return []
    found = {state.assignment: state for state in read.states} if read else {}
    names = [policy.azure_name for policy in PolicyCompanion.of(desired)]
    return [
        projected(schema.Policy, entry, found.get(name), readAt=read.read if read and name in found else None)
        for name, entry in zip(names, desired.spec.policies, strict=True)
    ]


def condition_of(condition: Condition, listed: datetime | None = None) -> schema.ConditionView:
    """Return a condition as Kubernetes writes one; ``listed`` is when a sweep confirmed it, if one has."""
    verified = max(condition.verified, listed or condition.verified)
    return projected(
        schema.ConditionView,
        condition,
        status="Unknown" if condition.status is None else str(condition.status),
        lastTransitionTime=condition.since,
        lastVerifiedTime=verified,
    )


def event_of(event: Event) -> schema.EventView:
    """Return an event as Kubernetes writes one."""
    return projected(schema.EventView, event, type="Warning" if event.warning else "Normal")


def compared_at(record: ClusterRecord, sweep: SweepRecord) -> datetime | None:
    """Return when a cluster was compared with Azure last: by a list, by itself or at the end of a job."""
    in_sync = record.condition(IN_SYNC)
    known = in_sync.verified if in_sync and in_sync.status is not None else None
    listed = sweep.listed_at(record.desired.id.subscription, record.name) if is_at_rest(record) else None
    return max(filter(None, (known, listed, record.observation.compared)), default=None)
