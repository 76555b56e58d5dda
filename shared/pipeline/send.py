"""Sending continuations: the second half of "save, then send"."""

from __future__ import annotations

from shared.jobs.messages import continuation_id, job_message
from shared.jobs.row import ClusterRow
from shared.ports import Message, Ports


def send_continuation(row: ClusterRow, ports: Ports, *, again: bool = False) -> None:
    """Send the message that the row waits for, for its time; duplicate detection drops an extra one.

    ``again``: a deliberate second copy, for when the first may have been spent without an effect.
    """
    if not row.job.active:
        return
    now = ports.clock()
    due = row.job.next_at
    if row.job.claim is not None and row.job.claim.until > due:
        due = row.job.claim.until
    at = due if due > now else None
    message_id = continuation_id(row, (at or now) if again else None)
    ports.jobs.send(Message(row.name, message_id, job_message(row).model_dump_json(), at))
