"""Pull requests of a host that announces none: a timer finds those with a new head."""

from __future__ import annotations

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.recovery.missed_work import plan_missed_pulls
from shared.ports import Capability
from tests.support import fleet_files
from tests.support.pipeline_runs import ready


def planned(cloud: MemoryCloud, number: int) -> str:
    """Return the head of a pull request that was planned last."""
    plan_missed_pulls(cloud.ports)
    for _ in range(15):
        while cloud.step():
            pass
        cloud.clock.advance(1)
    record = cloud.state.pull(number)
    return record.head if record else ""


def opened(cloud: MemoryCloud) -> tuple[int, str]:
    git = cloud.repository
    git.reset(git.head("main"), "two")
    head = git.commit(dict(fleet_files.fleet("one", "two")), branch="two")
    return git.pulls.open("Add two", "two", "main").number, head


def test_a_new_head_is_planned_once_where_no_webhook_announces_it() -> None:
    cloud = ready("one")
    number, head = opened(cloud)
    cloud.git_host.lacks = frozenset({Capability.WEBHOOKS})
    assert planned(cloud, number) == head
    cloud.clock.advance(60)
    later = cloud.repository.commit({"README.md": b"more"}, branch="two")
    assert planned(cloud, number) == later
    plan_missed_pulls(cloud.ports)
    assert not cloud.step(), "it is planned already"


def test_a_new_head_is_planned_where_the_host_has_disabled_its_webhook() -> None:
    cloud = ready("one")
    number, head = opened(cloud)
    cloud.git_host.stopped = "the host has disabled the webhook"
    assert planned(cloud, number) == head


def test_a_host_with_webhooks_or_without_pull_requests_is_not_asked() -> None:
    cloud = ready("one")
    number, _ = opened(cloud)
    assert planned(cloud, number) == ""
    cloud.git_host.lacks = frozenset({Capability.WEBHOOKS, Capability.PULLS})
    assert planned(cloud, number) == ""
