"""A person begins a failed job anew."""

from __future__ import annotations

from datetime import datetime

from localcloud.memory.memory_cloud import MemoryCloud
from shared.jobs.record import Phase
from shared.pipeline.api import views
from shared.pipeline.api.replay import replay
from tests import fleetfiles
from tests.pipeline.test_main_job import phases, push, status


def failed() -> tuple[MemoryCloud, str]:
    cloud = MemoryCloud()
    cloud.azure.fail_next("one", "QuotaExceeded", "no vCPUs are left")
    commit = push(cloud, fleetfiles.fleet("one", "two"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED, "two": Phase.READY}
    return cloud, commit


def test_a_replayed_job_becomes_ready_without_a_commit() -> None:
    cloud, commit = failed()
    answer = replay("one", "an operator", cloud.ports)
    assert (answer.status, answer.body["replayed"]) == (202, "provision")
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert status(cloud, commit)[0] == "success"
    told = [event.message for event in cloud.state.events("one", 100) if event.reason == "Replayed"]
    assert told == ["replayed by an operator"]


def test_what_has_not_failed_is_left_alone_and_told_of() -> None:
    cloud, _ = failed()
    before = cloud.state.cluster("two")
    answer = replay("two", "", cloud.ports)
    assert answer.status == 409
    assert answer.body["error"] == "two has not failed: it does nothing: generation 1 was verified Ready"
    assert cloud.state.cluster("two") == before


def test_a_second_replay_finds_the_job_at_work() -> None:
    cloud, _ = failed()
    assert replay("one", "", cloud.ports).status == 202
    answer = replay("one", "", cloud.ports)
    assert (answer.status, "is about to run" in answer.body["error"]) == (409, True)


def test_an_unknown_cluster_is_404() -> None:
    assert replay("nope", "", MemoryCloud().ports).status == 404


def test_why_and_events_tell_of_a_failure_and_of_a_cluster_that_is_gone() -> None:
    cloud, _ = failed()
    why = views.why_view("one", cloud.ports) or {}
    assert why["lastError"]["class"] == "QuotaExceeded"
    assert "Raise the quota" in why["youCan"]
    push(cloud, fleetfiles.fleet("two"))
    cloud.run()
    gone = views.why_view("one", cloud.ports) or {}
    assert gone["phase"] == "Deleted"
    assert views.why_view("nope", cloud.ports) is None
    assert views.events_view("nope", 5, None, cloud.ports) is None


def test_events_come_in_pages() -> None:
    cloud, _ = failed()
    whole = views.events_view("two", 1000, None, cloud.ports) or {}
    read, page = [], views.events_view("two", 2, None, cloud.ports) or {}
    while page["next"]:
        read.append(page["events"])
        page = views.events_view("two", 2, datetime.fromisoformat(page["next"]), cloud.ports) or {}
    read.append(page["events"])
    assert len(read) > 2
    assert [event for events in read for event in events] == whole["events"]
    assert whole["next"] is None
