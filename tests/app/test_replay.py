"""An operator starts a failed job again."""

from __future__ import annotations

from datetime import datetime

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import replay
from shared.app.api.views.clusters import events_view
from shared.app.api.views.why import why_view
from shared.cluster.record_parts import Phase
from tests.support import fleet_files
from tests.support.pipeline_runs import failed, phases, push, status


def test_a_replayed_job_becomes_ready_without_a_commit() -> None:
    cloud, commit = failed()
    answer = replay("one", "an operator", cloud.ports)
    assert (answer.status, answer.body) == (202, {"target": "one", "by": "an operator"})
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert status(cloud, commit)[0] == "success"
    messages = [event.message for event in cloud.state.events("one", 100) if event.reason == "Replayed"]
    assert messages == ["replayed by an operator"]


def test_a_job_that_has_not_failed_is_not_replayed_and_the_reply_says_why() -> None:
    cloud, _ = failed()
    before = cloud.state.cluster("two")
    answer = replay("two", "", cloud.ports)
    assert answer.status == 409
    assert answer.body["error"] == "two has not failed: it is idle: generation 1 was verified Ready"
    assert cloud.state.cluster("two") == before


def test_a_second_replay_is_rejected_while_the_job_runs() -> None:
    cloud, _ = failed()
    assert replay("one", "", cloud.ports).status == 202
    answer = replay("one", "", cloud.ports)
    assert (answer.status, "is about to run" in answer.body["error"]) == (409, True)


def test_an_unknown_cluster_is_404() -> None:
    assert replay("nope", "", MemoryCloud().ports).status == 404


def test_why_and_events_explain_a_failure_and_a_deleted_cluster() -> None:
    cloud, _ = failed()
    view = why_view("one", cloud.ports)
    assert view is not None
    assert view["lastError"] is not None
    assert view["lastError"]["class"] == "InvalidManifest"
    assert "Correct the value" in view["suggestedAction"]
    push(cloud, fleet_files.fleet("two"))
    cloud.run()
    deleted = why_view("one", cloud.ports)
    assert deleted is not None
    assert deleted["phase"] == "Deleted"
    assert why_view("nope", cloud.ports) is None
    assert events_view("nope", 5, None, cloud.ports) is None


def test_events_come_in_pages() -> None:
    cloud, _ = failed()
    whole = events_view("two", 1000, None, cloud.ports)
    page = events_view("two", 2, None, cloud.ports)
    assert whole is not None
    read = []
    while page is not None:
        read.append(page["events"])
        older = page["next"]
        page = events_view("two", 2, datetime.fromisoformat(older), cloud.ports) if older else None
    assert len(read) > 2
    assert [event for events in read for event in events] == whole["events"]
    assert whole["next"] is None
