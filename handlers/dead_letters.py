"""The triggers of the dead-letter queues, which have no sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

import azure.functions as func

from shared.logs import mask, maskable
from shared.pipeline.recovery.dead_letters import ReceivedDeadLetter, handle_dead_letter
from shared.ports import Ports


def blueprint(ports: Ports, *, secrets: Sequence[str]) -> func.Blueprint:
    """Return a function for the dead letters of each queue; ``secrets`` are masked in what is stored."""
    bp = func.Blueprint()
    hidden = maskable(secrets)

    @bp.function_name("dead_jobs")
    @bp.service_bus_queue_trigger("message", "ServiceBus", "jobs/$deadletterqueue")
    def dead_jobs(message: func.ServiceBusMessage) -> None:
        handle_dead_letter(received("jobs", message), ports)

    @bp.function_name("dead_plans")
    @bp.service_bus_queue_trigger("message", "ServiceBus", "plans/$deadletterqueue")
    def dead_plans(message: func.ServiceBusMessage) -> None:
        handle_dead_letter(received("plans", message), ports)

    def received(queue: str, message: func.ServiceBusMessage) -> ReceivedDeadLetter:
        body, at = message.get_body(), message.enqueued_time_utc or ports.clock()
        return ReceivedDeadLetter(
            queue,
            id=mask(f"{message.sequence_number or 0}:{message.message_id or ''}", hidden),
            at=at if at.tzinfo else at.replace(tzinfo=UTC),
            body=body,
            shown=mask(body.decode(errors="backslashreplace"), hidden),
            reason=mask(message.dead_letter_reason or "", hidden),
            description=mask(message.dead_letter_error_description or "", hidden),
        )

    return bp
