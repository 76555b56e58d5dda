"""A cluster that is not known to be healthy: each check of it asks for the next one, until it is healthy."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.servicebus.world.broker_values import StoredMessage
from shared.app.check import check as checks
from shared.app.outbox import send_all
from shared.app.recovery.dead_letters import ReceivedDeadLetter, handle_dead_letter
from shared.app.worker import worker
from shared.cluster.queues.envelopes import checks_of
from shared.cluster.queues.messages import CheckMessage
from shared.cluster.record_parts import Phase
from tests.support.checks import check, condition, pass_time, refused_since, take_tokens
from tests.support.one_cluster import ENTRA, ONE, branch_files, files, ready, record
from tests.support.pipeline_runs import another_worker_for_each_message, phases, push
from tests.support.sweeps import sweep

pytestmark = pytest.mark.lives


def unread() -> MemoryCloud:
    """Return a cloud whose cluster a check could not read."""
    cloud = ready(ENTRA)
    another_worker_for_each_message(cloud)
    cloud.kubernetes.set_power(ONE, on=False)
    check(cloud)
    assert condition(record(cloud)).status is None
    return cloud


def scheduled_checks(cloud: MemoryCloud) -> list[StoredMessage]:
    """Return the checks of the cluster that wait for their time."""
    return [message for message in cloud.broker.peek("jobs") if message.draft.at is not None]


def test_a_cluster_that_could_not_be_read_is_read_again_without_the_timer() -> None:
    cloud = unread()
    cloud.kubernetes.set_power(ONE, on=True)
    cloud.run(seconds=400)
    assert condition(record(cloud)).status is True
    assert cloud.idle(), "and then no longer"


def test_a_cluster_is_checked_again_by_one_message_at_a_time_however_often_it_is_checked() -> None:
    cloud = unread()
    assert len(scheduled_checks(cloud)) == 1
    for number in range(5):
        send_all(checks_of(["one"], f"a check {number}"), cloud.ports)
        cloud.run(seconds=1)
        cloud.sleep(45)
    assert len(scheduled_checks(cloud)) == 1
    cloud.run(seconds=3600)
    assert len(scheduled_checks(cloud)) == 1


def test_a_check_on_an_instance_whose_clock_is_behind_is_not_the_last_one() -> None:
    cloud = unread()
    behind = timedelta(seconds=2)
    with_clock(cloud, behind)
    cloud.run(seconds=400, until=lambda: False)
    with_clock(cloud, -behind)
    assert len(scheduled_checks(cloud)) == 1


def test_a_check_on_such_an_instance_asks_for_no_check_that_has_just_been() -> None:
    cloud = unread()
    cloud.kubernetes.set_power(ONE, on=True)
    cloud.run(seconds=400)
    assert condition(record(cloud)).status is True
    cloud.kubernetes.set_power(ONE, on=False)
    with_clock(cloud, timedelta(seconds=2))
    send_all(checks_of(["one"], "a check"), cloud.ports)
    cloud.run(seconds=1)
    assert condition(record(cloud)).status is None
    assert len(scheduled_checks(cloud)) == 1


def with_clock(cloud: MemoryCloud, behind: timedelta) -> None:
    clock = cloud.ports.clock
    cloud.with_ports(lambda ports: replace(ports, clock=lambda: clock() - behind))


def test_a_cluster_that_was_not_read_is_checked_after_its_job_even_if_the_request_of_the_job_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cloud = unread()
    monkeypatch.setattr(worker, "checks_of", lambda *_: [])
    cloud.kubernetes.set_power(ONE, on=True)
    wanted = branch_files(ENTRA + "  tags: {a: b}\n")
    push(cloud, wanted | {"platform/broken.yaml": b"kind: [unfinished"})
    cloud.run(seconds=1200, until=lambda: False)
    assert record(cloud).job.active
    push(cloud, wanted)
    cloud.run(seconds=1200)
    assert (phases(cloud), condition(record(cloud)).status) == ({"one": Phase.READY}, True)


def test_a_cluster_that_a_sweep_found_stopped_is_checked_again_once_it_runs() -> None:
    cloud = ready(ENTRA)
    cloud.azure.interventions.stop(ONE)
    sweep(cloud)
    check(cloud)
    assert condition(record(cloud)).status is None
    assert cloud.idle(), "the sweep says when it runs again"
    cloud.azure.interventions.start(ONE)
    sweep(cloud)
    cloud.run(seconds=600)
    assert condition(record(cloud)).status is True


def test_a_cluster_whose_spec_this_version_refuses_is_left_to_the_timer() -> None:
    cloud = ready(ENTRA)
    refused_since(cloud, "one")
    check(cloud)
    assert "this version refuses" in condition(record(cloud)).message
    assert cloud.idle(), "no check reads it"
    push(cloud, files(ENTRA + "  tags: {a: b}\n"))
    cloud.run(seconds=1200)
    check(cloud)
    assert condition(record(cloud)).status is True


def test_an_unhealthy_cluster_that_waited_too_often_for_a_token_is_checked_again_all_the_same() -> None:
    cloud = unread()
    cancel_checks(cloud)
    take_tokens(cloud, ONE, 60)
    message = CheckMessage(check="1", clusters=("one",), attempt=checks.MOST_WAITS)
    checks.handle(message, cloud.ports)
    assert len(scheduled_checks(cloud)) == 1


def test_a_healthy_cluster_that_waited_too_often_for_a_token_is_unknown_and_checked_again() -> None:
    cloud = ready(ENTRA)
    check(cloud)
    assert condition(record(cloud)).status is True
    cloud.state.save(replace(record(cloud), observation=replace(record(cloud).observation, api_server=None)))
    another_worker_for_each_message(cloud)
    take_tokens(cloud, ONE, 60)
    message = CheckMessage(check="paths:1", clusters=("one",), attempt=checks.MOST_WAITS)
    checks.handle(message, cloud.ports)
    found = condition(record(cloud))
    assert (found.status, found.reason) == (None, "NotRead")
    assert "left no token" in found.message
    assert len(scheduled_checks(cloud)) == 1
    cloud.run(seconds=1200)
    assert condition(record(cloud)).status is True


def cancel_checks(cloud: MemoryCloud) -> None:
    for message in scheduled_checks(cloud):
        cloud.broker.cancel_scheduled("jobs", message.sequence)
    pass_time(cloud)


def test_an_unhealthy_cluster_whose_message_the_queue_gave_up_is_checked_again_all_the_same() -> None:
    cloud = unread()
    (message,) = scheduled_checks(cloud)
    cancel_checks(cloud)
    body = message.draft.body
    letter = ReceivedDeadLetter("jobs", "7:m", cloud.clock(), body, body.decode())
    handle_dead_letter(letter, cloud.ports)
    assert len(scheduled_checks(cloud)) == 1


def test_a_cluster_whose_job_has_failed_is_not_checked_until_its_next_job() -> None:
    cloud = unread()
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs are left")
    push(cloud, files(ENTRA + "  tags: {a: b}\n"))
    cloud.run(seconds=1200, until=lambda: phases(cloud) == {"one": Phase.FAILED})
    assert phases(cloud) == {"one": Phase.FAILED}
    cloud.run(seconds=1200)
    assert scheduled_checks(cloud) == []
