"""Approvals of corrections of drift: exactly those that were shown, of one cluster.

The approval is stored with the drift. The sweep compares the cluster once more, and starts the job only if
the corrections that need an approval are still the same: their fields, both values, and the generation.
"""

from __future__ import annotations

from shared.app.api import schema
from shared.app.api.acts.approval import operator
from shared.app.http_result import HttpResult, rejected, unknown_cluster
from shared.app.outbox import send
from shared.app.records import Transition, change
from shared.cluster.drift import CorrectionApproval
from shared.cluster.history import by_whom
from shared.cluster.messages import SweepRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.diagnosis import diagnose
from shared.cluster.reporting.events import correction_approved_event
from shared.cluster.transitions.acceptance import accept_correction
from shared.notices.notice import correction_approved
from shared.ports import Ports


def approve_correction(
    name: str, correction: str, actor: str, ports: Ports, *, reason: str = ""
) -> HttpResult:
    """Approve the corrections of a cluster that ``correction`` identifies, as ``GET drift`` shows them.

    The same approval twice is one.
    """
    by = operator(actor)

    def decide(record: ClusterRecord | None) -> Transition | ClusterRecord | HttpResult:
        if record is None:
            return rejected(404, unknown_cluster(name, ports))
        problem = _why_not(record, correction, ports)
        if problem:
            return rejected(409, problem)
        if record.drift is None or record.drift.approval is not None:
            _request_sweep(record, ports)
            return record
        approval = CorrectionApproval(by, ports.clock(), reason)
        after = accept_correction(record, record.drift, approval, now=approval.at)
        event = correction_approved_event(after, by_whom(by, reason))
        return Transition(after, [event], then=[_announce, _request_sweep])

    record: ClusterRecord | HttpResult = change(name, decide, ports)
    if isinstance(record, HttpResult):
        return record
    fields = [field.path for field in record.drift.by_approval] if record.drift else []
    receipt: schema.CorrectionReceipt = {"cluster": name, "approved": fields, "by": by}
    return HttpResult(202, receipt)


def _announce(record: ClusterRecord, ports: Ports) -> None:
    ports.state.add_notice(correction_approved(record))


def _request_sweep(record: ClusterRecord, ports: Ports) -> None:
    send(SweepRequest(sweep=ports.unique(), clusters=(record.name,)), ports)


def _why_not(record: ClusterRecord, correction: str, ports: Ports) -> str:
    """Return why the corrections cannot be approved now, "" when they can."""
    name, drift = record.name, record.drift
    if not record.idle:
        activity = diagnose(record, now=ports.clock(), retries=ports.config.retries).activity
        return f"no correction of {name} can be approved while its job has not ended: it {activity}"
    if record.finding:
        return f"{name} is not Ready, so nothing of it is corrected: {record.job.reason}"
    if drift is None or not drift.correction:
        return f"no correction of {name} needs an approval; `roadstead drift {name}` shows what differs"
    if correction != drift.correction:
        return (
            f"what differs at {name} is not what was shown: `roadstead drift {name}` has what needs approval"
        )
    return ""
