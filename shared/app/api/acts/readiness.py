"""What an operator asks of clusters before an upgrade: that they are read."""

from __future__ import annotations

from collections.abc import Sequence

from shared.app.api import schema
from shared.app.api.acts import Refusal, answers, known_cluster, operator
from shared.app.api.parts import exact
from shared.app.outbox import send_all
from shared.cluster.queues.envelopes import Envelope, readings_of
from shared.cluster.queues.messages import ReadinessMessage
from shared.ports import Ports


@answers(202)
def read_readiness(names: Sequence[str], actor: str, ports: Ports) -> schema.ReadingReceipt:
    """Have clusters read, all without names; one that is being deleted is refused."""
    asked, reading = ports.clock(), ports.unique()
    for name in names:
        if known_cluster(name, ports.state.cluster(name), ports).deleting:
            raise Refusal(409, f"{name} is not read: it is being deleted")
    send_all(readings_of(names, reading) or [Envelope(ReadinessMessage(reading=reading))], ports)
    return {"clusters": list(names), "all": not names, "by": operator(actor), "at": exact(asked)}
