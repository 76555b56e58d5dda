"""Refreshes: an operator has clusters compared with Azure, and checked from inside, now instead of later."""

from __future__ import annotations

from collections.abc import Sequence

from shared.jobs.findings.at_rest import is_at_rest
from shared.jobs.messages import SweepPart
from shared.jobs.reporting.diagnosis import diagnose
from shared.pipeline.api import schema
from shared.pipeline.api.acts.approval import operator
from shared.pipeline.http_result import HttpResult, rejected, unknown_cluster
from shared.pipeline.outbox import request_checks, request_sweep, request_whole_check, request_whole_sweep
from shared.ports import Ports

MAX_CLUSTERS = 100
WRONG_BODY = (
    f'the body must be {{"all": true}}, or {{"clusters": ["name", ...]}} with 1 to {MAX_CLUSTERS} names'
)


def refresh(names: Sequence[str], actor: str, ports: Ports) -> HttpResult:
    """Ask for a sweep, or that these clusters are read; one that only its job reads is refused."""
    for name in names:
        record = ports.state.cluster(name)
        if record is None:
            return rejected(404, unknown_cluster(name, ports))
        if not is_at_rest(record):
            activity = diagnose(record, now=ports.clock(), retries=ports.config.retries).activity
            if record.job.active:
                return rejected(
                    409, f"{name} is not refreshed, because its job reads Azure itself: it {activity}"
                )
            again = f"`roadstead replay {name}` starts its job again"
            return rejected(409, f"{name} is not refreshed: it {activity}; {again}")
    if names:
        request_sweep(SweepPart(sweep=ports.unique(), clusters=tuple(names)), ports)
        request_checks(names, ports.unique(), ports)
    else:
        request_whole_sweep(ports)
        request_whole_check(ports)
    receipt: schema.RefreshReceipt = {"clusters": list(names), "all": not names, "by": operator(actor)}
    return HttpResult(202, receipt)
