"""When the next message of a job is due, when it counts as lost, and when it only waits in a backlog."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.cluster.job import JobQueue, Lease
from shared.cluster.queues.continuations import LONGEST_BACKLOG, continuation_of, overdue, served_until
from shared.cluster.record import ClusterRecord
from tests.support.cluster_records import NOW, later, record


@pytest.mark.parametrize(
    ("current", "times"),
    [
        (record(at=later(-59)), 0),
        (record(at=later(-61)), 1),
        (record(at=later(-119)), 1),
        (record(at=later(-121)), 2),
        (record(at=later(-60 * 60)), 6),
        (record(at=later(-61), lease=Lease("other", later(-1), NOW)), 0),
    ],
)
def test_a_continuation_is_overdue_after_its_grace_and_again_as_its_lateness_doubles(
    current: ClusterRecord, times: int
) -> None:
    assert overdue(continuation_of(current), now=NOW, grace=60) == times


def test_a_message_that_is_due_later_than_what_is_served_now_waits_and_is_not_lost() -> None:
    current = record()
    assert overdue(continuation_of(current), now=later(600), grace=60, served=later(30)) == 0
    assert overdue(continuation_of(current), now=later(600), grace=60, served=later(61)) > 0
    assert overdue(continuation_of(current), now=later(LONGEST_BACKLOG), grace=60, served=later(30)) > 0


def test_what_is_served_is_the_newest_time_of_the_live_leases_of_a_recipe() -> None:
    def handled(due: float, until: float) -> ClusterRecord:
        lease = Lease("me", later(until), due=later(due))
        return replace(record(), job=replace(record().job, lease=lease))

    leased = record(lease=Lease("me", later(60), NOW))
    records = [handled(10, 60), handled(30, 60), handled(50, 39), record()]
    assert served_until(map(continuation_of, records), JobQueue.JOBS, later(40)) == later(30)
    assert served_until(map(continuation_of, records), JobQueue.DELETES, later(40)) is None
    assert served_until(map(continuation_of, [leased, record()]), JobQueue.JOBS, later(61)) is None
