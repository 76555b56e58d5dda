"""What waits in a backlog is not lost: it is sent again only when others of a later time are served."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.recovery.missed_work import resend_overdue
from shared.cluster.record import ClusterRecord
from shared.frozen import replace
from shared.ports import Message
from shared.ports.state import Expectations
from tests.support import fleet_files
from tests.support.pipeline_runs import push
from tests.support.replaced_ports import around, calls_of

pytestmark = pytest.mark.lives

NAMES = [f"cluster-{number}" for number in range(10)]


def backlog() -> MemoryCloud:
    """Return a cloud in which ten clusters wait for their first step since ten minutes."""
    cloud = MemoryCloud()
    push(cloud, fleet_files.fleet(*NAMES, budget=10))
    while len(cloud.state.clusters()) < len(NAMES) or cloud.state.fleet().planning:
        assert cloud.step()
    cloud.clock.advance(600)
    return cloud


def test_a_backlog_that_is_served_gets_no_copies() -> None:
    cloud, sent = backlog(), list[int]()
    save = cloud.state.save

    def saving(record: ClusterRecord) -> ClusterRecord:
        saved = save(record)
        if saved.job.lease is not None and not sent:  # the timer runs while the first of them is handled
            sent.append(resend_overdue(cloud.ports))
        return saved

    around(cloud, "state", save=saving)
    while not sent:
        assert cloud.step()
    assert sent == [0]


def test_messages_that_nobody_serves_are_sent_again() -> None:
    cloud = backlog()
    assert resend_overdue(cloud.ports) == len(NAMES)


def test_a_job_that_went_on_since_the_list_was_read_gets_no_copy() -> None:
    cloud = backlog()
    listed = cloud.state.continuations()
    cloud.run()
    around(cloud, "state", continuations=lambda: listed)
    assert resend_overdue(cloud.ports) == 0


def test_the_records_of_jobs_that_are_not_overdue_are_not_read() -> None:
    cloud, read = MemoryCloud(), list[str]()
    push(cloud, fleet_files.fleet(*NAMES, budget=10))
    while len(cloud.state.clusters()) < len(NAMES) or cloud.state.fleet().planning:
        assert cloud.step()
    late = cloud.state.clusters()[3]
    due = replace(late.job, next_run=replace(late.job.next_run, at=cloud.clock() - timedelta(hours=1)))
    cloud.state.save(replace(late, job=due))
    named = cloud.state.clusters_named

    def reading(names: Sequence[str]) -> Sequence[ClusterRecord]:
        read.extend(names)
        return named(names)

    around(cloud, "state", clusters_named=reading)
    assert (resend_overdue(cloud.ports), read) == (1, [late.name])


def test_thousands_that_are_overdue_are_sent_again_as_one_batch() -> None:
    cloud, batches = backlog(), list[int]()
    for queue in ("jobs", "changes"):
        send = getattr(cloud.ports, queue).send

        def sending(*messages: Message, send: Callable[..., None] = send) -> None:
            batches.append(len(messages))
            send(*messages)

        around(cloud, queue, send=sending)
    assert resend_overdue(cloud.ports) == len(NAMES)
    assert batches == [len(NAMES)]


def test_the_records_that_a_plan_waits_for_are_read_several_at_a_time() -> None:
    cloud = backlog()
    awaited = dict.fromkeys(NAMES, 1)
    fleet = replace(cloud.state.fleet(), expects=Expectations(tuple(NAMES), awaited))
    cloud.state.save_fleet(fleet)
    one_by_one = calls_of(cloud, "state", "cluster")
    resend_overdue(cloud.ports)
    assert one_by_one == []
