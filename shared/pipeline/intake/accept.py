"""From a delivery to a plan request: queue, then remember, then answer. No call to GitHub, no scan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.jobs.messages import PlanRequest
from shared.pipeline.intake.webhook import Delivery, Ignored, PullChanged, Refused
from shared.pipeline.outbox import request_plan
from shared.ports import Ports


@dataclass(frozen=True)
class Receipt:
    """The answer to a delivery: HTTP status and a JSON object."""

    status: int
    body: Mapping[str, str] = field(default_factory=dict)


def accept(delivery: Delivery, ports: Ports) -> Receipt:
    """Queue what the delivery asks for and return the receipt."""
    if isinstance(delivery, Refused):
        return Receipt(delivery.status, {"error": delivery.reason})
    if isinstance(delivery, Ignored):
        return Receipt(200, {"ignored": delivery.reason})
    if ports.state.delivery_seen(delivery.delivery):
        return Receipt(200, {"ignored": "this delivery was queued before", "delivery": delivery.delivery})
    if isinstance(delivery, PullChanged):
        request = PlanRequest(
            kind="pull", pull=delivery.number, head=delivery.head, reason=f"pull request {delivery.action}"
        )
        message_id, commit = f"pull:{delivery.delivery}", delivery.head
    else:
        request = PlanRequest(commit=delivery.commit, reason="push", at=delivery.at)
        message_id, commit = f"push:{delivery.delivery}", delivery.commit
    request_plan(request, message_id=message_id, ports=ports)
    # Remembered only now: a crash before this line costs a second, harmless plan, never a lost push.
    ports.state.remember_delivery(delivery.delivery, ports.clock())
    return Receipt(202, {"queued": "plan", "commit": commit, "delivery": delivery.delivery})
