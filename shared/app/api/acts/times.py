"""What operators order about when a cluster sleeps and when it ends, each for once: git stays.

An order of sleep ends by itself; an end is put off once for each end in git, or a hold puts it off.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from shared.app.api import schema
from shared.app.api.acts import Refusal, answers, change_cluster, known_cluster
from shared.app.api.projection import exact
from shared.app.door import begin_epoch
from shared.app.records import Transition
from shared.cluster.history import by_whom
from shared.cluster.lifetime import lifetime_of, with_lifetime
from shared.cluster.queues.envelopes import Envelope, continuation
from shared.cluster.queues.messages import ProposeRequest, ReportRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.events import lifetime_event, order_event
from shared.cluster.sleep import SleepOrder, next_turn, time_text
from shared.cluster.transitions.acceptance import accept_order
from shared.language.model.cluster.schedules import LONGEST
from shared.plan.plan import Postponement
from shared.ports import Ports


class OrderKind(StrEnum):
    """What an operator orders."""

    WAKE = "wake"
    """A cluster that sleeps is started; it is awake until its schedule stops it next."""
    SLEEP = "sleep"
    """A cluster that is awake is stopped; it sleeps until its schedule starts it next."""
    POSTPONE = "postpone"
    """A cluster that is awake stays so until a time."""


@answers(202)
def order_sleep(
    kind: OrderKind, name: str, until: datetime | None, by: str, ports: Ports, reason: str = ""
) -> schema.SleepReceipt:
    """Have a cluster awake or asleep until a time, or, without one, until its schedule changes that."""
    awake = kind is not OrderKind.SLEEP

    def decide(record: ClusterRecord) -> Transition:
        now = ports.clock()
        end = _end(kind, record, until, now)
        if not now < end <= now + LONGEST:
            days = LONGEST // timedelta(days=1)
            raise Refusal(
                409, f"until must be a time in the next {days} days; AKS keeps the state for 12 months"
            )
        order = SleepOrder(awake, now, end, by, reason)
        after = accept_order(record, order, now)
        then = [*continuation(after, now), Envelope(ReportRequest())]
        return Transition(after, [order_event(after, order)], then=then)

    saved = change_cluster(name, decide, ports)
    order = saved.divergence.order
    return {"cluster": name, "awake": awake, "until": exact(order.until) if order else "", "by": by}


def _end(kind: OrderKind, record: ClusterRecord, until: datetime | None, now: datetime) -> datetime:
    """Return the end of an order; refuse one that makes no sense now, or has no end."""
    name, decision = record.name, record.sleep_at(now)
    sleep = record.desired.spec.sleep if decision is not None else None
    if decision is None or sleep is None or record.deleting:
        raise Refusal(409, f"{name} never sleeps: spec.sleep in its manifest says whether a cluster may")
    if kind is OrderKind.WAKE and decision.awake:
        raise Refusal(
            409,
            f"{name} is to be awake: `roadstead postpone {name} --until TIME --reason TEXT` keeps it so",
        )
    if kind is OrderKind.POSTPONE and not decision.awake:
        raise Refusal(409, f"{name} is to sleep: `roadstead wake {name} --reason TEXT` has it awake")
    if kind is OrderKind.SLEEP and not decision.awake and decision.until:
        raise Refusal(409, f"{name} is to sleep until {time_text(sleep, decision.until, now)} already")
    awake = kind is not OrderKind.SLEEP
    end = until or next_turn(sleep, record.desired.labels, now, awake=awake)
    if end is None:
        raise Refusal(409, f"no schedule of {name} ends this: say until when, with --until TIME")
    return end


LONGEST_EXTENSION = timedelta(days=7)


@answers(202)
def extend(
    name: str, lasts: timedelta, by: str, ports: Ports, reason: str, *, hold: bool
) -> schema.LifetimeReceipt:
    """Put the end of a cluster off by a time, or hold the cluster for a time from now on.

    No job follows, so an epoch of its own lets older tables be known that do not have it.
    """

    def decide(record: ClusterRecord) -> Transition:
        life, now = lifetime_of(record), ports.clock()
        if record.deleting:
            raise Refusal(409, f"{name} is being deleted: restore its folder to keep it")
        if hold:
            until = now + lasts
            asked = Postponement(until, by, reason, life.in_git if life else until)
            after = with_lifetime(record, hold=asked, unsure=False)
            what = f"on hold until {_moment(asked)} by {by_whom(by, reason)}"
            event = lifetime_event(after, "Held", what, now)
            return Transition(after, [event], then=[Envelope(ProposeRequest())])
        if life is None:
            raise Refusal(409, f"{name} has no end that is known: it has no lifetime, or was never Ready")
        before = life.state.extension
        if before is not None and before.of == life.in_git:
            once = f"{name} was extended until {_moment(before)} by {before.by}"
            raise Refusal(409, f"{once}, once for each end: give it another one in git")
        longer = Postponement(max(life.ends, now) + lasts, by, reason, life.in_git)
        after = with_lifetime(record, extension=longer, unsure=False)
        what = f"extended until {_moment(longer)} by {by_whom(by, reason)}"
        event = lifetime_event(after, "Extended", what, now)
        return Transition(after, [event], then=[Envelope(ProposeRequest())])

    decide(known_cluster(name, ports.state.cluster(name), ports))  # what is refused begins no epoch
    begin_epoch(ports)
    after = change_cluster(name, decide, ports)
    life, asked = lifetime_of(after), after.lifetime_hold if hold else None
    return {
        "cluster": name,
        "ends": life.ends.isoformat() if life else None,
        "heldUntil": asked.until.isoformat() if asked else None,
        "by": by,
    }


def _moment(asked: Postponement) -> str:
    return f"{asked.until:%Y-%m-%d %H:%M} UTC"
