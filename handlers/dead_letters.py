"""The triggers of the dead-letter queues, which have no sessions.

The host gives a dead letter's reason to a function only among the application properties. The triggers ask
for bytes: of a string, the host would lose what is not UTF-8.
"""

from __future__ import annotations

from datetime import UTC

import azure.functions as func

from handlers.executions import counted
from shared.app.door import enter
from shared.app.recovery.dead_letters import ReceivedDeadLetter, handle_dead_letter
from shared.ports import Ports
from shared.ports.tally import RECEIVED


def blueprint(ports: Ports, queue: str) -> func.Blueprint:
    """Return a function for the dead letters of a queue."""
    bp = func.Blueprint()

    @bp.function_name(f"dead_{queue}")
    @bp.service_bus_queue_trigger(
        "message", "ServiceBus", f"{queue}/$deadletterqueue", data_type=func.DataType.BINARY
    )
    @counted(f"dead_{queue}", ports)
    def dead_letter(message: func.ServiceBusMessage) -> None:
        ports.process.tally.add(f"{RECEIVED} {queue}")
        handle_dead_letter(received(message), enter(ports))

    def received(message: func.ServiceBusMessage) -> ReceivedDeadLetter:
        body, at = message.get_body(), message.enqueued_time_utc or ports.clock()
        properties = message.application_properties or {}
        return ReceivedDeadLetter(
            queue,
            id=f"{message.sequence_number or 0}:{message.message_id or ''}",
            at=at if at.tzinfo else at.replace(tzinfo=UTC),
            body=body,
            shown=body.decode(errors="backslashreplace"),
            reason=str(properties.get("DeadLetterReason", "")),
            description=str(properties.get("DeadLetterErrorDescription", "")),
        )

    return bp
