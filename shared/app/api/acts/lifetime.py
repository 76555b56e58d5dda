"""What an Operator does to the lifetime of a cluster: an extension, once for each end in git, and a hold."""

from __future__ import annotations

from datetime import timedelta

from shared.app.api import schema
from shared.app.api.acts import Refusal, answers, change_cluster, known_cluster
from shared.app.door import begin_epoch
from shared.app.records import Transition
from shared.cluster.history import by_whom
from shared.cluster.lifetime import lifetime_of, with_lifetime
from shared.cluster.queues.envelopes import Envelope
from shared.cluster.queues.messages import ProposeRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.events import event_of
from shared.plan.holds import Postponement
from shared.ports import Ports

LONGEST = timedelta(days=7)


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
            return Transition(after, [event_of(after, "Held", what)], then=[Envelope(ProposeRequest())])
        if life is None:
            raise Refusal(409, f"{name} has no end that is known: it has no lifetime, or was never Ready")
        before = life.state.extension
        if before is not None and before.of == life.in_git:
            once = f"{name} was extended until {_moment(before)} by {before.by}"
            raise Refusal(409, f"{once}, once for each end: give it another one in git")
        longer = Postponement(max(life.ends, now) + lasts, by, reason, life.in_git)
        after = with_lifetime(record, extension=longer, unsure=False)
        what = f"extended until {_moment(longer)} by {by_whom(by, reason)}"
        return Transition(after, [event_of(after, "Extended", what)], then=[Envelope(ProposeRequest())])

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
