"""What a reading of the health says, and what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from io import StringIO
from threading import Event
from typing import Any, get_args

import pytest
from rich.console import Console

from cli.commands.run.health import rendered as health
from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.runtime.options import ROOT
from shared.app.examination import command_of
from shared.app.health import GRACE, REUSED_SECONDS, Health, health_view, ready_view
from shared.app.outbox import request_whole_check, request_whole_sweep
from shared.app.recovery.missed_work import plan_missed_head
from shared.app.runs import record_run
from shared.cluster.failures.errors import Unauthenticated, Unauthorized, Unavailable
from shared.configuration.settings import GitHostName
from shared.ports import Capability, FleetConfig, Ports
from shared.ports.state import TimerRun
from tests.support import fleet_files
from tests.support.git_hosts import CAPABILITIES
from tests.support.pipeline_runs import push
from tests.support.replaced_ports import around

pytestmark = pytest.mark.lives

CONFIG = FleetConfig("example", "example/fleet", timers={"sweep": "0 10 */4 * * *"})


class Answering:
    """A service whose answer a test decides."""

    def __init__(self, answer: Callable[[], None] = lambda: None) -> None:
        self.answer, self.calls = answer, 0

    def probe(self) -> None:
        self.calls += 1
        self.answer()


@pytest.fixture
def cloud() -> MemoryCloud:
    cloud = MemoryCloud(config=CONFIG)
    push(cloud, fleet_files.fleet("one"))
    cloud.state.save_timer_run("sweep", cloud.clock())
    return cloud


def with_bus(cloud: MemoryCloud, bus: Answering) -> Ports:
    services = replace(cloud.ports.services, probes={"Service Bus": bus})
    return replace(cloud.ports, services=services)


def refuse(error: Exception) -> Callable[..., None]:
    def answer(*_: object) -> None:
        raise error

    return answer


def test_an_app_whose_services_answer_and_whose_timers_run_is_ready(cloud: MemoryCloud) -> None:
    reading = Health(with_bus(cloud, Answering())).read()
    assert reading.ready
    assert [service.name for service in reading.services] == [
        "Clock",
        "Table Storage",
        "GitHub",
        "Service Bus",
    ]
    assert [timer.name for timer in reading.timers] == ["sweep"]
    assert health_view(reading).status == ready_view(reading).status == 200


def table_of_hosts() -> dict[str, dict[str, str]]:
    """Return the table of docs/git-hosts.md: what each host has, by what is lost without it."""
    page = (ROOT / "docs" / "git-hosts.md").read_text()
    header, *table = (line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| "))
    columns = [command_of(name) for name in header[1:-1]]
    return {f"{cells[0]}: {cells[-1]}": dict(zip(columns, cells[1:-1], strict=True)) for cells in table}


@pytest.mark.parametrize("name", CAPABILITIES)
def test_what_a_git_host_lacks_is_a_line_of_health_and_of_the_table_and_makes_the_app_no_less_ready(
    cloud: MemoryCloud, name: str
) -> None:
    missing = [capability for capability in Capability if capability not in CAPABILITIES[name]]
    cloud.git_host.is_app, cloud.git_host.lacks = True, frozenset(missing)
    reading = Health(with_bus(cloud, Answering())).read()
    assert reading.ready
    view: Any = health_view(reading).body
    assert view["lacks"] == [capability.value for capability in missing]
    printed, table = StringIO(), table_of_hosts()
    Console(width=200, file=printed).print(health(view, cloud.clock()))
    lines = [line for line in printed.getvalue().splitlines() if line.startswith("without")]
    for capability in Capability:
        assert (table[capability][name] == "no") is (capability in missing), capability
        assert any(capability in line for line in lines if line.startswith("without")) is (
            capability in missing
        )


def test_the_table_of_git_hosts_has_a_column_for_each() -> None:
    hosts = {*next(iter(table_of_hosts().values()))}
    assert hosts == {*get_args(GitHostName)} == {"github", *CAPABILITIES}


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (Unauthenticated("the token has expired"), "Unauthenticated: the token has expired"),
        (RuntimeError("the secret is hunter2"), "the check has failed: RuntimeError"),
    ],
)
def test_a_service_that_fails_is_named_with_its_error(
    cloud: MemoryCloud, error: Exception, problem: str
) -> None:
    reading = Health(with_bus(cloud, Answering(refuse(error)))).read()
    assert reading.problems == {"Service Bus": problem}
    assert health_view(reading).status == ready_view(reading).status == 503
    assert ready_view(reading).body == {"live": True, "ready": False}


def test_a_repository_that_cannot_be_read_and_tables_that_are_away_are_named(cloud: MemoryCloud) -> None:
    around(cloud, "git_host", read_head=refuse(Unavailable("GitHub answered 502")))
    around(cloud, "state", timer_runs=refuse(Unavailable("no answer")))
    assert Health(cloud.ports).read().problems == {
        "GitHub": "Unavailable: GitHub answered 502",
        "Table Storage": "Unavailable: no answer",
        "sweep": "not known, because Table Storage does not answer",
    }


def test_a_late_timer_makes_the_app_not_ready(cloud: MemoryCloud) -> None:
    cloud.clock.advance(4 * 3600 + 16 * 60)
    reading = Health(cloud.ports).read()
    assert (reading.ready, list(reading.problems)) == (False, ["sweep"])


def test_a_timer_of_which_nothing_is_stored_is_expected_from_the_first_reading_on(cloud: MemoryCloud) -> None:
    first = cloud.clock()
    new = replace(CONFIG, timers={**CONFIG.timers, "check": "0 */5 * * * *"})
    ports = replace(cloud.ports, config=new)
    assert Health(ports).read().ready
    assert cloud.state.timer_runs() == {
        "sweep": TimerRun(first),
        **dict.fromkeys(("check", "sweep-end", "check-end"), TimerRun(first, ran=False)),
    }
    cloud.clock.advance(5 * 60 + GRACE.total_seconds() + 1)
    assert list(Health(ports).read().problems) == ["check"]


def test_an_app_that_cannot_store_since_when_its_timers_are_expected_is_not_ready(cloud: MemoryCloud) -> None:
    around(cloud, "state", expect_timers=refuse(Unauthorized("the role may only read")))
    ports = replace(cloud.ports, config=replace(CONFIG, timers={"check": "0 */5 * * * *"}))
    assert Health(ports).read().problems["Table Storage"] == "Unauthorized: the role may only read"


def test_a_service_that_hangs_delays_nobody_and_is_asked_once(cloud: MemoryCloud) -> None:
    end, bus = Event(), Answering()

    def hang() -> None:
        end.wait()

    bus.answer = hang
    health = Health(with_bus(cloud, bus), answer_seconds=0.05)
    for _ in range(3):
        assert health.read().problems == {"Service Bus": "no answer within 0.05 s"}
        cloud.clock.advance(REUSED_SECONDS)
    assert bus.calls == 1
    end.set()
    bus.answer = lambda: None
    ready = False
    for _ in range(100):
        cloud.clock.advance(REUSED_SECONDS)
        ready = ready or health.read().ready
    assert ready


def test_an_answer_that_comes_after_its_reading_says_nothing_of_a_later_one(cloud: MemoryCloud) -> None:
    end, over, bus = Event(), Event(), Answering()

    def late() -> None:
        end.wait()
        over.set()
        raise Unavailable("an hour ago")

    bus.answer = late
    health = Health(with_bus(cloud, bus), answer_seconds=0.05)
    assert health.read().problems == {"Service Bus": "no answer within 0.05 s"}
    bus.answer = lambda: None
    end.set()
    over.wait()
    said = list[str]()
    for _ in range(100):
        cloud.clock.advance(REUSED_SECONDS)
        said += health.read().problems.values()
    assert "Unavailable: an hour ago" not in said
    assert [service.problem for service in health.read().services] == ["", "", "", ""]


def test_a_flood_of_probes_calls_each_service_once_in_a_quarter_of_a_minute(cloud: MemoryCloud) -> None:
    calls, bus = Counter[str](), Answering()
    runs, head = cloud.state.timer_runs, cloud.repository.read_head

    def timer_runs() -> object:
        calls["tables"] += 1
        return runs()

    def read_head(branch: str) -> object:
        calls["github"] += 1
        return head(branch)

    around(cloud, "state", timer_runs=timer_runs)
    around(cloud, "git_host", read_head=read_head)
    health = Health(with_bus(cloud, bus))
    for _ in range(60):
        health.read()
        cloud.clock.advance(1)
    assert (calls, bus.calls) == ({"tables": 4, "github": 4}, 4)


BOTH = {"sweep": "0 10 */4 * * *", "check": "0 40 */4 * * *"}


def with_both() -> MemoryCloud:
    """Return a cloud in which a sweep and a check have come to their ends, and whose timers run on."""
    cloud = MemoryCloud(config=replace(CONFIG, timers=BOTH))
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    cloud.clock.advance(3600)
    request_whole_sweep(cloud.ports)
    request_whole_check(cloud.ports)
    cloud.run(seconds=300)
    return cloud


def later(cloud: MemoryCloud, seconds: float) -> Mapping[str, str]:
    """Return what is wrong after some time, of an app whose timers have just run."""
    cloud.clock.advance(seconds)
    for timer in BOTH:
        record_run(timer, cloud.ports)
    return Health(cloud.ports).read().problems


@pytest.mark.parametrize("work", list(BOTH))
def test_a_sweep_or_a_check_that_begins_and_never_ends_makes_the_app_not_ready(work: str) -> None:
    cloud = with_both()
    assert later(cloud, 3 * 3600 + 2400) == {}
    ended = {"sweep": request_whole_check, "check": request_whole_sweep}[work]
    ended(cloud.ports)
    cloud.run(seconds=300)
    problems = later(cloud, 3600)
    assert list(problems) == [work]
    assert problems[work].startswith(f"the {work} of 2026-01-01 04:")
    assert "did not come to its end; the last end was at 2026-01-01 01:" in problems[work]


def test_a_sweep_or_a_check_of_which_none_has_ended_is_expected_from_the_first_reading_on() -> None:
    cloud = MemoryCloud(config=replace(CONFIG, timers=BOTH))
    push(cloud, fleet_files.fleet("one"))
    assert later(cloud, 0) == {}
    problems = later(cloud, 6 * 3600)
    assert {work: text.rpartition("; ")[2] for work, text in problems.items()} == dict.fromkeys(
        BOTH, "none has ended yet"
    )


def test_a_check_of_a_fleet_without_clusters_and_a_sweep_of_it_end() -> None:
    cloud = MemoryCloud(config=replace(CONFIG, timers=BOTH))
    push(cloud, fleet_files.fleet())
    request_whole_sweep(cloud.ports)
    request_whole_check(cloud.ports)
    cloud.run(seconds=300)
    assert set(cloud.state.timer_runs()) == {"sweep-end", "check-end"}


def test_a_check_that_cannot_be_carried_out_has_not_ended_while_it_waits() -> None:
    cloud = with_both()
    before = cloud.state.timer_runs()["check-end"]
    around(cloud, "state", cluster=refuse(Unavailable("no answer")))
    cloud.clock.advance(3600)
    request_whole_check(cloud.ports)
    cloud.run(seconds=600, until=lambda: False)
    assert cloud.state.timer_runs()["check-end"] == before


def test_requests_to_plan_that_nobody_handles_make_the_app_not_ready_and_a_wrong_commit_does_not() -> None:
    config = replace(CONFIG, timers={"plan_missed_head": "0 */5 * * * *"})
    cloud = MemoryCloud(config=config)
    push(cloud, fleet_files.fleet("one"))
    cloud.run()

    def later(seconds: float, *, handled: bool = True) -> Mapping[str, str]:
        for _ in range(int(seconds // 300)):
            cloud.clock.advance(300)
            plan_missed_head(cloud.ports)
            record_run("plan_missed_head", cloud.ports)
            if handled:
                cloud.run(seconds=30)
        return Health(cloud.ports).read().problems

    assert later(7200) == {}
    cloud.repository.commit({"fleet.yaml": b"kind: ["})
    assert later(7200) == {}
    push(cloud, fleet_files.fleet("one", "two"))
    problems = later(7200, handled=False)
    assert list(problems) == ["plan_missed_head"]
    assert "did not come to its end; the last end was at " in problems["plan_missed_head"]
    assert later(600) == {}
