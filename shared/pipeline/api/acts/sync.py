"""Syncs: an operator has the branch read now, instead of with the timer, and its head planned."""

from __future__ import annotations

from shared.jobs.gaps import FoundBy
from shared.pipeline.api import schema
from shared.pipeline.api.acts.approval import operator
from shared.pipeline.http_result import HttpResult
from shared.pipeline.recovery.missed_work import request_missing_plan
from shared.ports import Ports


def sync(actor: str, ports: Ports) -> HttpResult:
    """Read the head of the branch, and queue its plan unless it was planned or is being planned."""
    read = ports.repository.read_head(ports.config.branch)
    queued = request_missing_plan(read, FoundBy.SYNC, ports)
    receipt: schema.SyncReceipt = {"commit": read.commit, "queued": queued, "by": operator(actor)}
    return HttpResult(202 if queued else 200, receipt)
