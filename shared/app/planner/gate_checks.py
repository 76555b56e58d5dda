"""What a rollout reads besides records: the checks of gates, and the strategy that a commit selects.

Only what was read and has succeeded passes. What cannot be read holds the stage, and says why. The readiness
of clusters for an upgrade is read from the tables, and clusters are asked for it by messages: all whose
upgrades wait when a rollout is planned, and before a stage with that gate those that were not read lately.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice

from shared.app.access.rate_limiter import RateLimited, RateLimiter
from shared.app.outbox import send_all
from shared.app.planner.approvals import pull_of
from shared.cluster.failures.errors import ReconcileError, Throttled, TooLarge
from shared.cluster.findings.readiness import ReadinessState, UpgradeReadiness, readiness_of
from shared.cluster.queues.envelopes import Envelope, readings_of
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.summary import summary_of
from shared.cluster.sleep import CHANGES_WAIT
from shared.frozen import replace
from shared.json_tree import Json
from shared.language.model.rollout import RolloutSpec as Written
from shared.masking import cut
from shared.plan.plan import Plan
from shared.ports import FleetRecord, Ports
from shared.ports.azure import ListAlerts, every_document
from shared.resource_ids import SubscriptionId
from shared.rollouts.candidates import (
    NOTHING,
    CommitRequest,
    asks,
    asks_labels,
    named_in,
    own_versions_of,
    upgrade_of,
)
from shared.rollouts.monitored import fired_alerts, judged
from shared.rollouts.rollout import CheckState, GateCheckResult, Rollout
from shared.rollouts.strategy import CheckKind, GateCheck
from shared.rollouts.waits import WAITS, checks_due, standing
from shared.sentences import some_of

log = logging.getLogger(__name__)

MAX_DETAIL = 200
_VALUES_SHOWN = 3
_ALERTS_SHOWN = 2
MOST_ALERTS = 1_000
"""So many alerts of a scope are read: four of the largest pages."""


def with_checks(rollout: Rollout, stage: int, ports: Ports) -> Rollout:
    """Return a rollout with what the checks of a stage say that are due; one call for each."""
    now, planned = ports.clock(), rollout.stages[stage]
    said, reached = rollout.said(planned.name), rollout.reached(stage) or now
    times = checks_due(rollout, stage, reached, now)
    names = {name for name, at in times.items() if name not in said or at <= now}

    def read(check: GateCheck) -> GateCheckResult:
        missing = GateCheckResult(planned.name, check.name, CheckState.MISSING, now)
        before = said.get(check.name, missing)
        match check.kind:
            case CheckKind.RUN:
                return _read(planned.commit or rollout.commit, before, ports)
            case CheckKind.READINESS:
                return ready_for_upgrades(rollout, stage, before, ports)
            case _:
                return _asked(before, check, ports)

    due = [check for check in planned.gate.checks if check.name in names]
    found = [read(check) for check in due if not check.asks]
    found += ports.together(read, [check for check in due if check.asks])
    others = (
        result for result in rollout.checked if result.stage != planned.name or result.check not in names
    )
    return replace(rollout, checked=(*others, *found)) if due else rollout


def _asked(before: GateCheckResult, asked: GateCheck, ports: Ports) -> GateCheckResult:
    """Ask what a check asks."""
    now = ports.clock()
    try:
        met, answer = _answer(asked, now, ports)
    except ReconcileError as error:
        log.warning("the check %s could not be asked: %s", asked.name, error)
        return before.unanswered(now, _detail(error))
    log.info("the check %s: %s, and a success is %s", asked.name, answer, asked.expected)
    return before.after(asked, met, now, answer)


def _answer(asked: GateCheck, now: datetime, ports: Ports) -> tuple[bool | None, str]:
    """Return whether the answer is a success, None for neither, and what it was."""
    match asked.kind:
        case CheckKind.HTTP:
            status = ports.services.endpoints.status(asked.url)
            return status == asked.status, f"status {status}"
        case CheckKind.PROMETHEUS:
            values = ports.services.endpoints.query(asked.url, asked.query)
            return asked.meets(values), _some(values)
        case CheckKind.AZURE_MONITOR:
            answer = ports.services.monitor.series(asked.workspace, asked.query, now - asked.over, now)
            return judged(asked, answer, now)
        case CheckKind.ALERTS:
            _, _, subscription, *group = asked.scope.split("/")
            alerts = _alerts(ListAlerts(SubscriptionId(subscription), group[1] if group else ""), ports)
            fired = fired_alerts(alerts, asked.severity)
            return not fired, some_of(fired, _ALERTS_SHOWN, between="; ") or "no alert"
        case _:
            raise TypeError(f"a {asked.kind} asks nothing")


def _alerts(first: ListAlerts, ports: Ports) -> Iterator[Json]:
    """Yield the alerts that fire; raise TooLarge where they are so many that reading them would take long."""
    azure = RateLimiter(None, ports).over(ports).azure
    try:
        for number, alert in enumerate(every_document(azure, first)):
            if number == MOST_ALERTS:
                raise TooLarge(f"more than {MOST_ALERTS} alerts fire in the scope; check a resource group")
            yield alert
    except RateLimited as limited:
        raise Throttled(str(limited)) from limited


def _some(values: Sequence[float]) -> str:
    """Return a few of the values of an answer."""
    return some_of([f"{value:g}" for value in values], _VALUES_SHOWN) or "no value"


def _read(commit: str, before: GateCheckResult, ports: Ports) -> GateCheckResult:
    """Read the check runs of a name."""
    now, check = ports.clock(), before.check
    try:
        ended = ports.git_host.conclusions(commit, check)
    except ReconcileError as error:
        log.warning("the check run %s of %s could not be read: %s", check, commit[:8], error)
        return before.unanswered(now, _detail(error))
    return replace(before, state=_state(ended), at=now, detail=", ".join(filter(None, ended)))


def _detail(error: ReconcileError) -> str:
    return cut(f"{error.kind}: {error}", MAX_DETAIL)


def _state(ended: Sequence[str]) -> CheckState:
    """Return what the conclusions of a check say together."""
    if not ended:
        return CheckState.MISSING
    if "" in ended:
        return CheckState.RUNNING
    return CheckState.PASSED if {*ended} == {"success"} else CheckState.FAILED


# What a commit says about its strategy: the trailers of its message, and the labels of its pull request.


def read_selection(commit: str, written: Written, fleet: FleetRecord, ports: Ports) -> CommitRequest:
    """Return what a commit says; no call where it may select nothing, and one for each of the two ways.

    Labels are those that the pull request has now. Raise an error of the host: what cannot be read selects
    nothing, so the plan waits.
    """
    if not asks(written.strategies):
        return NOTHING
    message, labels = "", frozenset[str]()
    if any(strategy.selectable for strategy in written.strategies):
        newest = ports.git_host.changes(commit, "", 1)
        message = next((change.message for change in newest if change.commit == commit), "")
    if asks_labels(written.strategies):
        repository = fleet.origin.source.repository if fleet.origin.source else 0
        pull = pull_of(commit, ports.config.branch, repository, ports.git_host.merged_as(commit))
        labels = pull.labels if pull else labels
    return CommitRequest(tuple(named_in(message)), labels)


FRESH = timedelta(minutes=30)
"""A reading opens a gate for so long: more than the longest pause between two reads of a check."""
_AGAIN = 60
"""A cluster is read once in so many seconds for a gate."""
MOST_PLANNED = 500
"""So many clusters are read when a rollout is planned: of more, the first would be old by the end."""
_NAMED, _DETAIL = 3, 500


def ready_for_upgrades(
    rollout: Rollout, stage: int, before: GateCheckResult, ports: Ports
) -> GateCheckResult:
    """Return whether the clusters of a stage are ready for upgrades; have those read that are not, or age."""
    now = ports.clock()
    try:
        found = _found(rollout, stage, ports)
        if found is None:
            return before.unanswered(now, "the clusters of the stage: the plan of the commit is not stored")
        left = [name for name, ready in found.items() if not _opens(ready, ports)]
        reading = f"gate:{rollout.commit[:12]}:{stage}:{int(now.timestamp()) // _AGAIN}"
        asked = [name for name, ready in found.items() if left and not _stays_fresh(ready, ports)]
        send_all(readings_of(asked, reading), ports)
    except ReconcileError as error:
        log.warning("the readiness of %s is not known: %s", before.stage, error)
        return before.unanswered(now, cut(f"the clusters of the stage: {error.kind}: {error}", _DETAIL))
    state, detail = _judged({name: found[name] for name in left}, ports)
    log.info("readiness of stage %s: %s %s", before.stage, state, detail)
    return replace(before, state=state, at=now, detail=cut(detail, _DETAIL))


def readings_before(plan: Plan, held: Collection[str], commit: str) -> list[Envelope]:
    """Return the messages that read the clusters whose upgrades wait for their stages, of many the first."""
    waiting = (item.cluster for item in plan.items if item.cluster in held and upgrade_of(item) is not None)
    return readings_of([*islice(waiting, MOST_PLANNED)], f"plan:{commit[:12]}")


def _found(rollout: Rollout, stage: int, ports: Ports) -> Mapping[str, UpgradeReadiness] | None:
    """Return the readiness of the clusters of a stage whose versions change; None without the plan.

    One that cannot begin now is not asked for: a cluster that is stopped can neither be read nor upgraded
    (learn.microsoft.com/azure/aks/start-stop-cluster), and its group passes without it. Nor is one that
    sleeps for days, and that its change wakes. Of one whose record cannot be read, nobody knows that.
    """
    stored, now = ports.state.plan(rollout.commit), ports.clock()
    if stored is None:
        return None
    own = {member.cluster: member for member in rollout.members if member.stage == stage}
    items = {item.cluster: item for item in stored.plan.items if item.cluster in own}
    targets = {name: to for name, item in items.items() if (to := upgrade_of(item)) is not None}
    targets = {name: to for name, to in targets.items() if not rollout.skips(name)}
    records = ports.state.clusters_named(list(targets))
    able = {
        record.name: record
        for record in records
        if standing(own[record.name], rollout, {record.name: summary_of(record)}, now) in WAITS
        and not (record.phase is Phase.SLEEPING and record.job.next_run.at - now > CHANGES_WAIT)
    }
    known = ports.state.readiness(list(able))

    def judged(record: ClusterRecord) -> UpgradeReadiness:
        last = known[record.name].of(record.uid)
        to, pools = targets[record.name], own_versions_of(items[record.name])
        return readiness_of(record, last.seen, last.room, to, now, pools)

    found = {name: judged(record) for name, record in able.items()}
    return found | {
        lost.key: UpgradeReadiness(targets[lost.key], (), (str(lost),), now) for lost in records.unreadable
    }


def _opens(ready: UpgradeReadiness, ports: Ports) -> bool:
    return ready.state is ReadinessState.READY and _is_fresh(ready, ports)


def _is_fresh(ready: UpgradeReadiness, ports: Ports) -> bool:
    return ready.at is not None and ports.clock() - ready.at <= FRESH


def _stays_fresh(ready: UpgradeReadiness, ports: Ports) -> bool:
    """Return whether it also opens the gate at the next read: if not, two clusters may age by turns."""
    young = ready.at is not None and ports.clock() - ready.at <= FRESH / 2
    return young and _opens(ready, ports)


def _judged(left: Mapping[str, UpgradeReadiness], ports: Ports) -> tuple[CheckState, str]:
    """Return what the clusters say together that are not known to be ready: what blocks comes first."""
    blocked = {
        name: f"{name}: {ready.blockers[0]} ({ready.blockers[0].who})"
        for name, ready in left.items()
        if ready.blockers and _is_fresh(ready, ports)
    }
    if blocked:
        return CheckState.FAILED, some_of([*blocked.values()], _NAMED, between="; ")
    waiting = [name for name, ready in left.items() if not _is_fresh(ready, ports)]
    if waiting:
        return CheckState.RUNNING, f"{some_of(waiting, _NAMED)}, which is being read"
    unknown = [f"{name}: {ready.first}" for name, ready in left.items()]
    if unknown:
        return CheckState.UNKNOWN, some_of(unknown, _NAMED, between="; ")
    return CheckState.PASSED, ""
