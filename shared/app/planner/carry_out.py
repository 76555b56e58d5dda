"""A computed plan is carried out: saved, handed over, and then recorded as planned."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from datetime import datetime

from shared.app.notifications import store_act
from shared.app.outbox import send, send_all
from shared.app.planner.compute import ComputedPlan
from shared.app.planner.gate_checks import readings_before
from shared.app.planner.handover import HandoverResult, hand_over
from shared.app.planner.pins import ensure_branch
from shared.app.planner.plan_problems import answer_approval
from shared.app.repository import PlanInputs, save_fingerprints
from shared.cluster.failures.errors import ReconcileError, Unauthorized
from shared.cluster.queues.envelopes import Envelope
from shared.cluster.queues.message_parts import Approval
from shared.cluster.queues.messages import OutdatedRequest, PlanRequest, PromoteRequest, RolloutRequest
from shared.frozen import replace
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.notifications.routes import routes_of
from shared.plan.plan import Action, Plan
from shared.plan.replacements import awaited, remembered
from shared.ports import FleetRecord, Ports
from shared.ports.state import Expectations
from shared.promotions import (
    ARTIFACT_PATH,
    ChannelRule,
    EnvironmentValues,
    Promotable,
    Value,
    channels_of,
    planned,
    rules_of,
    value_at,
    values_in,
)

log = logging.getLogger(__name__)


def carry_out(computed: ComputedPlan, approval: Approval | None, ports: Ports) -> None:
    """Save a plan, hand its jobs over, and then record its commit as planned; raise Stale when superseded.

    In a pause it is only saved. ``approval`` is what the request gave. A hand-over may continue by another
    message.
    """
    plan_record, inputs, head = computed.plan_record, computed.inputs, computed.fleet.planning
    if computed.act is not None:
        store_act(computed.act, ports)
    for notification in computed.notifications:
        ports.state.add_notification(notification)
    ports.state.save_plan(plan_record)
    log.info("plan of %s: %s", head[:8], plan_record.plan.summary)
    handed_over = _start(computed, ports)
    if handed_over is None:
        return
    plan, fleet, ended = handed_over
    if approval is not None:
        answer_approval(approval, plan, ports)
    if not ended:
        log.info("%s: %s; continuing by another message", head[:8], fleet.handed_over)
        save_fingerprints(plan, inputs, ports)
        send_all([_rest(fleet, computed, ports)], ports)
        return
    ports.state.save_plan(replace(plan_record, plan=replace(plan, applied=True)))
    save_fingerprints(plan, inputs, ports)
    after = as_planned(computed, plan, fleet)
    ports.state.save_fleet(after)
    if after.rules.proposes:
        send(PromoteRequest(), ports)
    if head != fleet.commit:
        _mark_outdated(head, ports)


def carry_out_part(computed: ComputedPlan, ports: Ports) -> None:
    """Start the clusters of a partial plan; raise Stale."""
    handed_over = _start(computed, ports)
    if handed_over is None:
        return
    plan, fleet, ended = handed_over
    if not ended or plan.items != computed.plan_record.plan.items:
        send_all([_rest(fleet, computed, ports)], ports)
        return
    ports.state.save_fleet(replace(fleet, planning="", handover=None, problem=None))
    if fleet.rules.proposes:
        send(PromoteRequest(), ports)


def _is_paused(fleet: FleetRecord, ports: Ports) -> bool:
    pause = fleet.paused(ports.clock())
    if pause is not None:
        log.info("%s is not handed over: %s", fleet.planning[:8], pause)
    return pause is not None


def _start(computed: ComputedPlan, ports: Ports) -> HandoverResult | None:
    """Save what the rollout decided, send what was asked for meanwhile, and hand the jobs over.

    None in a pause, after whose end the plan is carried out, and where the app may write no branches.
    """
    fleet, plan = computed.fleet, computed.plan_record.plan
    if _is_paused(fleet, ports):
        return None
    ports.state.add_group_members(computed.members)  # before the first record of a new cluster
    for rollout in computed.rollouts:
        ports.state.save_rollout(rollout)
    send_all([*computed.then, *readings_before(plan, computed.held, fleet.planning)], ports)
    if not write_pins(computed, ports):
        _plan_without_branches(fleet, ports)
        return None
    return hand_over(computed, ports)


def _plan_without_branches(fleet: FleetRecord, ports: Ports) -> None:
    """Have the commit planned again with pins that are no branches, because the app may write none."""
    saved = ports.state.save_fleet(replace(fleet, app=replace(fleet.app, pins_directly=True)))
    request = PlanRequest(again=True, reason="pins without branches", read_from=ports.clock())
    send(request, ports, message_id=f"pins:{fleet.planning[:12]}:{saved.etag}")


def _rest(fleet: FleetRecord, computed: ComputedPlan, ports: Ports) -> Envelope:
    """Return what continues a hand-over; requests that wait in its session come before.

    The plan of the commit that was planned last is the only one that needs ``again``: without it, the request
    has no effect once a newer push has been planned.
    """
    again, kind = fleet.planning == fleet.commit, RolloutRequest if computed.continues else PlanRequest
    request = kind(again=again, reason="handover", read_from=ports.clock())
    return Envelope(request, f"handover:{fleet.planning[:12]}:{fleet.etag}")


def _mark_outdated(commit: str, ports: Ports) -> None:
    """Ask that the plans of pull requests are marked as out of date. An error must not prevent a plan."""
    try:
        send(OutdatedRequest(commit=commit), ports)
    except ReconcileError as error:
        log.warning("pull requests are not marked as out of date: %s: %s", error.kind, error)


def as_planned(computed: ComputedPlan, plan: Plan, fleet: FleetRecord) -> FleetRecord:
    """Return the fleet's record once a plan was carried out as ``plan``."""
    inputs, at, rules = computed.inputs, computed.plan_record.at, fleet.rules
    desired = inputs.desired
    if desired.notifications is not None:
        rules = replace(
            rules,
            routes=routes_of(desired.notifications),
            subscriptions=desired.subscriptions,
            promotions=rules_of(desired.promotions),
            channels=tuple(_channels(desired)),
            had=tuple(_had(rules.had, inputs, at)),
            asks_by_issue=desired.asks_by_issue,
        )
    again = (item for item in plan.items if item.awaits_deletion or item.action is Action.REBUILD)
    unread = {old: new for old, new in fleet.expects.replacing.items() if old in inputs.unreadable}
    expects = Expectations(
        deletion=tuple(item.cluster for item in again),
        ready=awaited(plan.items),
        replacing={**unread, **remembered(computed.replaced, plan.items)},
        unreadable=plan.unreadable,
    )
    if fleet.is_behind and fleet.tables.recovery is not None:  # every record is a part of it
        fleet = replace(fleet, tables=replace(fleet.tables, epoch=fleet.tables.recovery.epoch))
    return replace(
        fleet,
        commit=plan.commit,
        at=at,
        planning="",
        handover=None,
        problem=None,
        rules=rules,
        expects=expects,
    )


def _channels(desired: DesiredFleet) -> Iterator[ChannelRule]:
    """Yield which environments follow channels, with the artifacts from which their Flux comes."""
    for rule in channels_of(desired.environments, rules_of(desired.promotions)):
        clusters = desired.clusters.values() if rule.what is Promotable.COMPONENTS else ()
        own = [cluster for cluster in clusters if cluster.environment == rule.environment]
        specs = [cluster.document()["spec"] for cluster in own if cluster.has_operator]
        found = {found.value for spec in specs if (found := value_at(ARTIFACT_PATH, spec))}
        by_operator = not any(cluster.has_extension for cluster in own)
        yield replace(rule, artifacts=tuple(sorted(found)) if by_operator else ())


def _had(
    before: Iterable[EnvironmentValues], inputs: PlanInputs, at: datetime
) -> Iterator[EnvironmentValues]:
    """Yield what a plan gives to the targets of promotions and channels, and what they had before."""
    known, desired = {had.environment: had for had in before}, inputs.desired
    rules = rules_of(desired.promotions)
    followed = (rule.environment for rule in channels_of(desired.environments, rules))
    for target in dict.fromkeys((*(rule.target for rule in rules), *followed)):
        written = desired.environments.get(target)
        own = [cluster for cluster in desired.clusters.values() if cluster.environment == target]
        clusters = {value for cluster in own for value in values_in(cluster.document()["spec"])}
        names = {*desired.invalid, *(cluster.name for cluster in own)}
        stay, leave = set[Value](), set[Value]()
        for name, record in inputs.records.items():
            if record.document.get("environment", "") == target:
                (stay if name in names else leave).update(values_in(record.document["spec"]))
        file = values_in(written.spec.defaults) if written else frozenset()
        yield planned(known.get(target), target, file, clusters, at, leave - stay)


def write_pins(computed: ComputedPlan, ports: Ports) -> bool:
    """Write the branches of the pins that a plan hands over; return False where the app may write none."""
    clusters = computed.inputs.desired.clusters
    acting = (item.cluster for item in computed.plan_record.plan.items if item.acts)
    pins = {clusters[name].pin for name in acting if name in clusters and name not in computed.held}
    try:
        for pin in sorted(filter(None, pins), key=lambda pin: pin.commit):
            ensure_branch(pin, ports)
    except Unauthorized as error:
        log.warning("a pin is no branch, because the app may write none: %s", error)
        return False
    return True
