"""The outbox: the one place that writes to a queue.

The planner and the worker save a record first and then send its continuation. A worker that reads a record
ahead of its message sends the record's continuation again. Duplicate detection compares message ids, so
messages with the same id count as one.
"""

from shared.pipeline.outbox.checks import (
    CHECK_SESSIONS,
    CHECKED_TOGETHER,
    request_checks,
    request_next_check,
    request_rest,
    request_whole_check,
)
from shared.pipeline.outbox.jobs import (
    MAX_SKEW,
    postpone_message,
    send_continuation,
    send_continuations,
    send_copy,
    send_later,
    send_overdue,
)
from shared.pipeline.outbox.plans import (
    NOTIFY_SECONDS,
    PREVIEW_SECONDS,
    PREVIEWS,
    REPORT_SECONDS,
    request_awaited_plan,
    request_handover,
    request_notifications,
    request_outdated_marks,
    request_plan,
    request_plan_again,
    request_preview,
    request_proposals,
    request_report,
    request_report_now,
    request_review,
    request_rollout,
    request_rollout_act,
    request_status_again,
    request_sweep,
    request_unfinished_plan,
    request_whole_sweep,
)

__all__ = [
    "CHECKED_TOGETHER",
    "CHECK_SESSIONS",
    "MAX_SKEW",
    "NOTIFY_SECONDS",
    "PREVIEWS",
    "PREVIEW_SECONDS",
    "REPORT_SECONDS",
    "postpone_message",
    "request_awaited_plan",
    "request_checks",
    "request_handover",
    "request_next_check",
    "request_notifications",
    "request_outdated_marks",
    "request_plan",
    "request_plan_again",
    "request_preview",
    "request_proposals",
    "request_report",
    "request_report_now",
    "request_rest",
    "request_review",
    "request_rollout",
    "request_rollout_act",
    "request_status_again",
    "request_sweep",
    "request_unfinished_plan",
    "request_whole_check",
    "request_whole_sweep",
    "send_continuation",
    "send_continuations",
    "send_copy",
    "send_later",
    "send_overdue",
]
