"""The outbox: the one place that writes to a queue.

The planner and the worker save a record first and then send its continuation. A worker that reads a record
ahead of its message sends the record's continuation again. Duplicate detection compares message ids, so
messages with the same id count as one.
"""

from shared.app.outbox.jobs import (
    CHECK_SESSIONS,
    CHECKED_TOGETHER,
    postpone_message,
    request_checks,
    request_next_check,
    request_rest,
    request_whole_check,
    send_continuation,
    send_continuations,
    send_copy,
    send_later,
    send_overdue,
)
from shared.app.outbox.plans import (
    request_awaited_deletes,
    request_awaited_plan,
    request_handover,
    request_outdated_marks,
    request_replacing_plan,
    request_sweep_at,
    request_unfinished_plan,
    request_whole_sweep,
    send,
    send_unlike,
)
from shared.app.outbox.times import WAITING, WAITING_SECONDS, is_at_time, send_again

__all__ = [
    "CHECKED_TOGETHER",
    "CHECK_SESSIONS",
    "WAITING",
    "WAITING_SECONDS",
    "is_at_time",
    "postpone_message",
    "request_awaited_deletes",
    "request_awaited_plan",
    "request_checks",
    "request_handover",
    "request_next_check",
    "request_outdated_marks",
    "request_replacing_plan",
    "request_rest",
    "request_sweep_at",
    "request_unfinished_plan",
    "request_whole_check",
    "request_whole_sweep",
    "send",
    "send_again",
    "send_continuation",
    "send_continuations",
    "send_copy",
    "send_later",
    "send_overdue",
    "send_unlike",
]
