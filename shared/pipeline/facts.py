"""Facts to be announced are stored before the record whose change they are: never missing, perhaps twice."""

from __future__ import annotations

from shared.jobs.record import ClusterRecord
from shared.notices.notice import approved, deleted, notice_between
from shared.ports import PlanRecord, Ports


def store_fact(before: ClusterRecord, after: ClusterRecord, ports: Ports) -> None:
    """Store what the change of a record is to whoever is notified; most changes are nothing."""
    notice = notice_between(before, after, retries=ports.config.retries)
    if notice is not None:
        ports.state.add_notice(notice)


def store_approval(before: PlanRecord | None, after: PlanRecord, ports: Ports) -> None:
    """Store that somebody approved deletes of a plan, unless the plan that was saved before says so."""
    if after.approval is not None and (before is None or before.approval != after.approval):
        ports.state.add_notice(approved(after.approval))


def store_deletion(record: ClusterRecord, ports: Ports) -> None:
    """Store that a cluster no longer exists, as git asked."""
    ports.state.add_notice(deleted(record, ports.clock()))
