"""No log line shows a secret, whoever writes it, and each says what it is about."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared import logs
from shared.app.recovery import missed_work
from shared.app.recovery.dead_letters import ReceivedDeadLetter, handle_dead_letter
from shared.cluster.failures.errors import NotOwned, TooLarge, Unavailable
from shared.cluster.queues.envelopes import job_message
from shared.cluster.queues.messages import SweepRequest
from shared.cluster.record import ClusterRecord
from shared.masking import Masker
from shared.ports.azure import GetCluster, PutCluster, PutGroup
from shared.ports.process import in_threads
from shared.resource_ids import ClusterId, GroupId
from tests.support import fleet_files
from tests.support.azure_ports import body
from tests.support.checks import check
from tests.support.notified import notified_fleet
from tests.support.pipeline_runs import cloud_with, push, step_until
from tests.support.replaced_ports import around, on_azure
from tests.support.sweeps import delete_by_hand, handle, sweep

NAME = "tokyo-aks"


def test_a_secret_is_masked_in_messages_arguments_and_tracebacks(written: io.StringIO) -> None:
    logs.configure(Masker(["canary-secret", "canary-secret-long"]))
    logger = logging.getLogger("some_client")
    logger.info("token canary-secret and %s", "canary-secret-long")
    try:
        int("canary-secret")
    except ValueError:
        logger.exception("failed")
    assert "canary" not in written.getvalue()
    assert written.getvalue().startswith("token *** and ***\n")
    assert "with base 10: '***'" in written.getvalue()


def test_short_values_are_not_masked(written: io.StringIO) -> None:
    logs.configure(Masker(["", "git"]))
    logging.getLogger("some_client").info("git %d", 5)
    assert written.getvalue() == "git 5\n"


def test_the_client_libraries_are_quiet() -> None:
    logs.configure(Masker([]))
    assert not logging.getLogger("azure.core.pipeline.policies.http_logging_policy").isEnabledFor(
        logging.INFO
    )


def test_a_line_says_what_it_is_about_at_its_end(written: io.StringIO) -> None:
    logs.configure(Masker(["canary-secret"]), "example")
    logger = logging.getLogger("some_client")
    with logs.about(cluster="one", generation=3):
        with logs.about(step="cluster", attempt=2):
            logger.info("a token: %s", "canary-secret")
        logger.info("done")
    logger.info("later")
    assert written.getvalue().splitlines() == [
        "a token: *** fleet=example cluster=one generation=3 step=cluster attempt=2",
        "done fleet=example cluster=one generation=3",
        "later fleet=example",
    ]


def test_what_is_done_in_several_threads_is_about_the_same(written: io.StringIO) -> None:
    logs.configure(Masker([]))
    with logs.about(commit="c0ffee"):
        in_threads(logging.getLogger("some_client").info, ["a", "b"])
    assert sorted(written.getvalue().splitlines()) == ["a commit=c0ffee", "b commit=c0ffee"]


SIX = re.compile(
    rf" fleet=example cluster={NAME} commit=[0-9a-f]{{40}} generation=\d+ step=[a-z-]+ attempt=[1-9]\d*$"
)
"""What a line about a cluster ends with whose record is known."""
OF_COMMIT = re.compile(r" fleet=example commit=[0-9a-f]{40}$")


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[str], list[str]]]:
    """Return what gives the lines of a module since it was asked last; each names its fleet."""
    factory = logging.getLogRecordFactory()
    logs.configure(Masker([]), "example")
    caplog.set_level(logging.INFO, logger="shared")

    def since(module: str) -> list[str]:
        found = [(record.name, record.getMessage()) for record in caplog.records]
        caplog.clear()
        assert all(" fleet=example" in text for _, text in found)
        named = [text for _, text in found if NAME in text.partition(" fleet=")[0]]
        assert [text for text in named if not SIX.search(text)] == []
        return [text for name, text in found if name == f"shared.app.{module}"]

    yield since
    logging.setLogRecordFactory(factory)


Lines = Callable[[str], list[str]]


def ready() -> tuple[MemoryCloud, ClusterId]:
    """Return a cloud with one Ready cluster."""
    cloud = cloud_with(fleet_files.fleet(NAME), throttle=False)
    (record,) = cloud.state.clusters()
    return cloud, record.desired.id


def test_every_line_about_a_job_or_a_plan_says_whose_it_is(lines: Lines, caplog: Any) -> None:
    cloud, _ = ready()
    push(cloud, fleet_files.fleet())
    cloud.run()
    of_jobs = [r.getMessage() for r in caplog.records if r.name.startswith("shared.app.worker")]
    of_plans = lines("planner.carry_out")
    assert len(of_jobs) > 10
    assert [text for text in of_jobs if not SIX.search(text)] == []
    assert len(of_plans) >= 2
    assert [text for text in of_plans if not OF_COMMIT.search(text)] == []


def test_what_a_sweep_finds_of_a_cluster_says_all_of_it(lines: Lines) -> None:
    cloud, one = ready()
    lines("")
    cloud.azure.interventions.stop(one)
    sweep(cloud)
    (stopped,) = lines("sweep.conclusions")
    assert "somebody stopped the cluster" in stopped
    delete_by_hand(cloud, one)
    sweep(cloud)
    (missing,) = lines("sweep.conclusions")
    assert "no longer exists" in missing
    on_azure(cloud, GetCluster, refused)
    handle(cloud, SweepRequest(sweep="1", clusters=(NAME,)))
    (unread,) = lines("sweep.clusters")
    assert f"{NAME} cannot be read: NotOwned" in unread


def test_an_orphan_is_named_although_nothing_more_is_known_of_it(lines: Lines) -> None:
    cloud, one = ready()
    tags = {**(cloud.azure.peek(one) or {})["tags"], "roadstead-cluster": "ghost"}
    cloud.ports.azure.call(PutGroup(GroupId(one.subscription, "old"), {"location": "eastus", "tags": {}}))
    ghost = ClusterId(one.subscription, "old", "ghost")
    cloud.ports.azure.call(PutCluster(ghost, {**body(dnsPrefix="ghost"), "tags": tags}, etag=None))
    sweep(cloud)
    (found,) = lines("sweep.sweep")
    assert found.endswith("and no record has it fleet=example cluster=ghost")


def test_a_check_that_cannot_read_a_cluster_says_all_of_it(lines: Lines) -> None:
    cloud, _ = ready()
    around(cloud, "kubernetes", connect=refused, open=refused)
    check(cloud)
    found = lines("check.check")
    assert any(f"{NAME} cannot be read" in text for text in found)


def test_a_route_that_fails_names_the_cluster_and_the_commit_of_its_message(lines: Lines) -> None:
    cloud = MemoryCloud()
    cloud.azure.interventions.fail_next(NAME, "QuotaExceeded", "no vCPUs are left")
    cloud.routes.unanswered["ops"] = Unavailable("no answer")
    commit = push(cloud, notified_fleet(NAME))
    cloud.run(300)
    found = lines("notifier")
    assert found
    assert {text.partition(": ")[2] for text in found} == {
        f"Unavailable: no answer fleet=example cluster={NAME} commit={commit}"
    }


def test_a_webhook_that_cannot_ask_the_state_names_its_commit(lines: Lines) -> None:
    cloud = MemoryCloud()
    around(cloud, "state", delivery_seen=unavailable, remember_delivery=unavailable)
    push(cloud, fleet_files.fleet(NAME))
    found = lines("intake.accept")
    assert len(found) == 2
    assert [text for text in found if not OF_COMMIT.search(text)] == []


def test_the_timers_name_the_commit_that_was_missed_and_all_of_what_is_overdue(lines: Lines) -> None:
    cloud = MemoryCloud()
    commit = cloud.repository.push(fleet_files.fleet(NAME))
    missed_work.plan_missed_head(cloud.ports)
    (missed,) = lines("recovery.missed_work")
    assert missed.endswith(f" fleet=example commit={commit}")
    step_until(cloud, lambda: bool(cloud.state.clusters()) and not cloud.state.fleet().planning)
    cloud.clock.advance(3600)
    missed_work.resend_overdue(cloud.ports)
    (overdue,) = lines("recovery.missed_work")
    assert "its continuation is overdue" in overdue
    (record,) = cloud.state.clusters()
    body = job_message(record).model_dump_json().encode()
    handle_dead_letter(ReceivedDeadLetter("jobs", "7:m", cloud.clock(), body, body.decode()), cloud.ports)
    (letter,) = lines("recovery.dead_letters")
    assert "the queue jobs gave up the message 7:m" in letter
    assert SIX.search(letter)


def test_a_record_that_cannot_be_stored_names_the_generation_that_was_not(lines: Lines) -> None:
    cloud = MemoryCloud()

    def too_large(_: object) -> ClusterRecord:
        raise TooLarge("the record has too many bytes")

    around(cloud, "state", save=too_large)
    push(cloud, fleet_files.fleet(NAME))
    cloud.run(seconds=60)
    found = lines("planner.handover")
    assert found
    assert all(" generation=1 step=" in text for text in found)


def test_a_commit_status_that_waits_names_its_commit(lines: Lines) -> None:
    cloud = MemoryCloud()
    around(cloud, "git_host", set_status=unavailable)
    push(cloud, fleet_files.fleet(NAME))
    cloud.run(seconds=60)
    found = lines("planner.reporter")
    assert found
    assert [text for text in found if not OF_COMMIT.search(text)] == []


def refused(*_: object, **__: object) -> Any:
    raise NotOwned("it is somebody else's")


def unavailable(*_: object, **__: object) -> Any:
    raise Unavailable("no answer")
