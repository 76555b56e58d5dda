"""An instance whose clock is wrong handles nothing, until the clock is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import azure.functions as func
import pytest
from azure.functions.timer import TimerRequest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.door import COMPARE_SECONDS, SLOW, NotReady, enter
from shared.app.health import Health
from shared.cluster.failures.errors import Unavailable
from shared.cluster.record_parts import Phase
from shared.ports import Ports
from tests.support import fleet_files
from tests.support.function_calls import ADMIN, functions
from tests.support.pipeline_runs import accepted, phases, push, step_until

WRONG = [timedelta(days=30), timedelta(seconds=4), -timedelta(seconds=4), -timedelta(hours=1)]


class Instance:
    """An instance of the app, whose clock can be set."""

    def __init__(self, cloud: MemoryCloud) -> None:
        self.cloud, self.wrong, self.reads = cloud, timedelta(), 0
        self.table_time: Callable[[], datetime] = cloud.table_time
        cloud.with_ports(lambda ports: replace(ports, clock=self._clock, table_time=self._read))

    def _clock(self) -> datetime:
        return self.cloud.clock() + self.wrong

    def _read(self) -> datetime:
        self.reads += 1
        return self.table_time()

    @property
    def ports(self) -> Ports:
        return self.cloud.ports


@pytest.fixture
def instance() -> Instance:
    return Instance(MemoryCloud())


@pytest.mark.parametrize("wrong", WRONG)
def test_its_messages_wait_and_are_handled_once_the_clock_is_right(
    instance: Instance, wrong: timedelta
) -> None:
    cloud, instance.wrong = instance.cloud, wrong
    push(cloud, fleet_files.fleet("one"))
    cloud.run(900, until=lambda: False)
    assert (cloud.state.fleet().commit, phases(cloud), cloud.dead_letters) == ("", {}, [])
    instance.wrong = timedelta()
    cloud.run(900)
    assert phases(cloud) == {"one": Phase.READY}


@pytest.mark.parametrize("wrong", WRONG)
def test_another_instance_handles_them_meanwhile(instance: Instance, wrong: timedelta) -> None:
    cloud, right = instance.cloud, replace(instance.ports, clock=instance.cloud.clock)
    push(cloud, fleet_files.fleet("one"))
    instance.wrong = wrong
    cloud.step()
    cloud.ports = right
    cloud.run(600)
    assert phases(cloud) == {"one": Phase.READY}


def test_a_clock_that_jumps_inside_a_job_ends_the_message_before_the_next_write(instance: Instance) -> None:
    cloud = instance.cloud
    push(cloud, fleet_files.fleet("one"))
    step_until(cloud, lambda: phases(cloud) != {})
    usual = instance.ports.clock

    def jumping() -> datetime:
        instance.wrong = timedelta(days=30)
        return usual()

    cloud.with_ports(lambda ports: replace(ports, clock=jumping))
    cloud.run(300, until=lambda: False)
    assert accepted(cloud) == {}
    stored = cloud.state.clusters()[0]
    assert max(stored.updated, stored.job.next_run.at) < cloud.clock() + timedelta(hours=1)
    instance.wrong = timedelta()
    cloud.with_ports(lambda ports: replace(ports, clock=usual))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_its_timers_do_nothing(instance: Instance) -> None:
    instance.wrong = timedelta(hours=1)
    timers = functions(instance.ports)
    for name in ("plan_missed_head", "resend_overdue", "sweep", "check", "purge_expired"):
        timers[name].get_user_function()(TimerRequest())
    assert instance.cloud.state.timer_runs() == {}
    assert not instance.cloud.broker.peek("plans")


def ask(instance: Instance, function: str) -> tuple[int, str]:
    request = func.HttpRequest("GET", f"/api/{function}", body=b"", headers=ADMIN)
    reply = functions(instance.ports)[function].get_user_function()(request)
    return reply.status_code, reply.get_body().decode()


def test_the_api_answers_503_with_the_reason_and_health_says_it(instance: Instance) -> None:
    push(instance.cloud, fleet_files.fleet("one"))
    assert ask(instance, "clusters")[0] == 200
    instance.wrong = timedelta(minutes=10)
    status, body = ask(instance, "clusters")
    assert status == 503
    assert "the clock of this instance is 599 s ahead of that of Table Storage" in body
    status, body = ask(instance, "health")
    assert status == 503
    assert "the clock of this instance is 599 s ahead" in body
    assert list(Health(instance.ports).read().problems) == ["Clock"]
    instance.wrong = timedelta()
    assert ask(instance, "clusters")[0] == 200


def test_it_is_compared_when_an_instance_starts_and_every_few_minutes(instance: Instance) -> None:
    for _ in range(100):
        enter(instance.ports)
    assert instance.reads == 1
    for _ in range(10):
        instance.cloud.clock.advance(COMPARE_SECONDS / 2)
        enter(instance.ports)
    assert instance.reads == 4


@pytest.mark.parametrize("off", [timedelta(seconds=2.5), -timedelta(seconds=2.5), timedelta()])
@pytest.mark.parametrize("fraction", [0.0, 0.001, 0.5, 0.999])
def test_a_clock_within_the_setting_is_right_at_any_part_of_a_second(
    instance: Instance, off: timedelta, fraction: float
) -> None:
    instance.cloud.clock.advance(fraction)
    instance.wrong = off
    for _ in range(5):
        enter(instance.ports)
        instance.cloud.clock.advance(COMPARE_SECONDS + 0.3)


def away() -> datetime:
    raise Unavailable("no answer")


def test_without_table_storage_it_goes_by_what_it_knows_and_a_new_instance_waits(instance: Instance) -> None:
    enter(instance.ports)
    instance.table_time = away
    instance.cloud.clock.advance(10 * COMPARE_SECONDS)
    enter(instance.ports)
    instance.wrong = timedelta(hours=1)
    with pytest.raises(NotReady, match="3599 s ahead"):
        enter(instance.ports)
    fresh = Instance(MemoryCloud())
    fresh.table_time = away
    with pytest.raises(NotReady, match="Unavailable: no answer"):
        enter(fresh.ports)


def test_a_new_instance_whose_first_answer_took_long_asks_again_and_handles_its_first_event(
    instance: Instance,
) -> None:
    waits = [SLOW + 1, 0.1]
    read = instance.table_time

    def slow_at_first() -> datetime:
        found = read()
        instance.cloud.clock.advance(waits.pop(0))
        return found

    instance.table_time = slow_at_first
    enter(instance.ports)
    assert waits == []


def test_an_answer_that_takes_long_says_nothing_of_the_time(instance: Instance) -> None:
    read = instance.table_time

    def slow() -> datetime:
        found = read()
        instance.cloud.clock.advance(SLOW + 1)
        return found

    enter(instance.ports)
    instance.table_time = slow
    instance.cloud.clock.advance(COMPARE_SECONDS + 1)
    enter(instance.ports)
    instance.wrong = timedelta(seconds=5)
    with pytest.raises(NotReady):
        enter(instance.ports)
