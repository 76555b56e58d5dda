"""``POST /api/sync``: a commit whose webhook was lost is planned when an operator asks."""

from __future__ import annotations

import json
from typing import Any

import azure.functions as func

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.clusters import fleet_view
from shared.cluster.failures.errors import Unavailable
from tests.support import fleet_files
from tests.support.function_calls import ADMIN, functions
from tests.support.pipeline_runs import push, ready
from tests.support.replaced_ports import around


def ask(cloud: MemoryCloud) -> tuple[int, Any]:
    headers = {**ADMIN, "Content-Type": "application/json"}
    request = func.HttpRequest("POST", "/api/sync", body=b'{"reason": "no answer"}', headers=headers)
    reply = functions(cloud.ports)["sync"].get_user_function()(request)
    return reply.status_code, json.loads(reply.get_body())


def test_a_lost_webhook_is_repaired_at_once_counted_shown_and_audited() -> None:
    cloud = ready("one")
    assert fleet_view(cloud.ports)["repairedGaps"] == {"count": 0, "last": None}
    cloud.clock.advance(100)
    asked, commit = cloud.clock(), cloud.repository.push(fleet_files.fleet("one", "two"))
    assert ask(cloud) == (202, {"commit": commit, "queued": True, "by": "the key of Admin"})
    cloud.step()
    assert cloud.state.fleet().commit == commit
    cloud.run()
    last = {"commit": commit, "foundAt": asked.isoformat(timespec="seconds"), "foundBy": "sync"}
    assert fleet_view(cloud.ports)["repairedGaps"] == {"count": 1, "last": last}
    (act,) = [act for act in cloud.state.acts(5) if act.action == "sync"]
    assert (act.target, act.reason, act.result) == ("main", "no answer", "accepted")


def test_a_head_that_was_planned_is_left_alone() -> None:
    cloud = ready("one")
    head = cloud.repository.head("main")
    assert ask(cloud) == (200, {"commit": head, "queued": False, "by": "the key of Admin"})
    assert not cloud.broker.peek("plans")


def test_a_pull_request_whose_webhook_was_lost_gets_its_plan() -> None:
    cloud = ready("one")
    git = cloud.repository
    git.reset(git.head("main"), "two")
    head = git.commit(dict(fleet_files.fleet("one", "two")), branch="two")
    number = git.pulls.open("Add two", "two", "main").number
    assert ask(cloud)[0] == 200
    cloud.run(seconds=60, until=lambda: False)
    record = cloud.state.pull(number)
    assert (record.head if record else "") == head


def test_a_second_sync_and_the_webhook_that_comes_late_count_nothing_twice() -> None:
    cloud = ready("one")
    commit = cloud.repository.push(fleet_files.fleet("one", "two"))
    assert ask(cloud)[0] == 202
    cloud.clock.advance(1)
    assert ask(cloud)[0] == 202
    cloud.run()
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    assert cloud.state.fleet().gaps.count == 1
    assert cloud.state.fleet().commit != commit


def test_a_branch_that_cannot_be_read_is_answered_with_the_reason() -> None:
    cloud = ready("one")

    def fails(_: str) -> object:
        raise Unavailable("GitHub answered 502")

    around(cloud, "git_host", read_head=fails)
    status, reply = ask(cloud)
    assert (status, "Unavailable: GitHub answered 502" in reply["error"]) == (503, True)
