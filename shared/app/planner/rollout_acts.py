"""What lets the clusters of a rollout start between two plans: an act, a time, or the end of a job.

The end of a job asks for the next decision by a message in the planner's session, and so does the end of a
soak; a timer asks too, for messages that were lost.
"""

from __future__ import annotations

import logging
from datetime import datetime

from shared.app.outbox import send
from shared.app.planner.gate_checks import with_checks
from shared.app.planner.plan_problems import answer_act
from shared.app.planner.rollouts import CURRENT, read_members
from shared.app.records import again
from shared.cluster.messages import PromoteRequest, ReportRequest, RolloutAct, RolloutRequest
from shared.frozen import replace
from shared.ports import FleetRecord, Ports
from shared.ports.state import Override
from shared.rollouts.decide import decide
from shared.rollouts.estimate import with_completed
from shared.rollouts.rollout import ActKind, Decided, act_on, is_as_asked

log = logging.getLogger(__name__)


def advance(act: RolloutAct | None, ports: Ports) -> bool:
    """Carry out what a person decided, and return whether clusters may start, which a plan then does.

    A plan that is being handed over decides by itself. Checks of gates are read here alone.
    """
    fleet = ports.state.fleet()
    if act is not None:
        fleet = _act(act, fleet, ports)
    if fleet.planning:
        return False
    opened = _lets_items_start(act, fleet, ports)
    rollout = ports.state.rollout(fleet.rollout) if fleet.rollout else None
    if rollout is None:
        return opened
    seen = read_members(rollout, ports)
    decision = decide(rollout, seen, ports.clock())
    if decision.gated is not None:
        checked = with_checks(decision.rollout, decision.gated, ports)
        decision = decide(checked, seen, ports.clock())
    if decision.rollout != rollout:
        ports.state.save_rollout(decision.rollout)
        send(ReportRequest(), ports)
        if fleet.rules.promotions:
            send(PromoteRequest(), ports)
    if decision.rollout.state not in CURRENT:
        durations = with_completed(fleet.durations, decision.rollout, seen)
        ports.state.save_fleet(replace(fleet, rollout="", durations=durations))
    _ask_at(decision.next_at, ports)
    if decision.start and fleet.stands_still:
        log.info("%s starts nothing: fleet.yaml of %s is invalid", fleet.rollout[:8], fleet.commit[:8])
        return opened
    return bool(decision.start) or opened


def _lets_items_start(act: RolloutAct | None, fleet: FleetRecord, ports: Ports) -> bool:
    """Return whether what a freeze, a window or a suspension holds may start; ask again at its end."""
    if act is not None and act.kind == ActKind.OVERRIDE.value:
        return fleet.override is not None and fleet.override.commit == fleet.commit
    opened = fleet.lets_start(ports.clock())
    if not opened:
        _ask_at(fleet.opens, ports)
    return opened


def _act(act: RolloutAct, fleet: FleetRecord, ports: Ports) -> FleetRecord:
    """Save what a person decided; a planner that stands still meanwhile then starts nothing more.

    An override is of the items of its commit, too, which may have no rollout.
    """
    overrides = ActKind(act.kind) is ActKind.OVERRIDE
    overridden = overrides and fleet.override is not None and fleet.override.commit == act.commit
    if overrides and not overridden and act.commit in (fleet.planning, fleet.commit):
        override = Override(act.commit, act.by, act.at, act.reason)
        fleet, overridden = ports.state.save_fleet(replace(fleet, override=override)), True
    if not _act_on_rollout(act, ports, answered=overridden):
        return fleet
    send(ReportRequest(), ports)
    return ports.state.save_fleet(fleet)


@again
def _act_on_rollout(act: RolloutAct, ports: Ports, *, answered: bool) -> bool:
    """Return whether a rollout is as an act asks for; ``answered``: one without effect needs no answer."""
    kind, decided = ActKind(act.kind), Decided(act.by, act.at, act.reason, act.subject, act.person)
    rollout = ports.state.rollout(act.commit)
    after = act_on(rollout, kind, decided, act.lifts) if rollout else None
    if after is not None and after != rollout:
        ports.state.save_rollout(after)
        return True
    as_asked = rollout is not None and is_as_asked(rollout, kind, decided, act.lifts)
    if not (as_asked or answered):
        answer_act(act, rollout, ports)
    return as_asked


def _ask_at(at: datetime | None, ports: Ports) -> None:
    if at is not None:
        send(RolloutRequest(), ports, at=at)
