"""Facts to be announced are stored before the record whose change they are: never missing, perhaps twice."""

from __future__ import annotations

from shared.jobs.record import ClusterRecord
from shared.notices.notice import deleted, notice_between
from shared.ports import Ports


def store_fact(before: ClusterRecord, after: ClusterRecord, ports: Ports) -> None:
    """Store what the change of a record is to whoever is notified; most changes are nothing."""
    notice = notice_between(before, after, retries=ports.config.retries)
    if notice is not None:
        ports.state.add_notice(notice)


def store_deletion(record: ClusterRecord, ports: Ports) -> None:
    """Store that a cluster no longer exists, as git asked."""
    ports.state.add_notice(deleted(record, ports.clock()))
