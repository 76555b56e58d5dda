"""The token for GitHub is announced 30 days before it ends, and once more when it was replaced."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.recovery.missed_work import plan_missed_head, wake_notifier
from shared.language.model.notification_kinds import NotificationKind
from shared.ports import BranchHead
from tests.support.notified import kinds, notified_fleet, titles
from tests.support.pipeline_runs import push
from tests.support.replaced_ports import around

SOON, OVER = (NotificationKind.TOKEN, "GITHUB_TOKEN", False), (NotificationKind.TOKEN, "GITHUB_TOKEN", True)


class Token:
    """When the token ends, as GitHub says it with each read of the branch."""

    def __init__(self, cloud: MemoryCloud) -> None:
        self.ends: datetime | None = cloud.clock() + timedelta(days=40)
        read = cloud.repository.read_head

        def read_head(branch: str) -> BranchHead:
            return replace(read(branch), credential_expires=self.ends)

        around(cloud, "git_host", read_head=read_head)


def notified() -> tuple[MemoryCloud, Token]:
    cloud = MemoryCloud(throttle=False)
    token = Token(cloud)
    push(cloud, notified_fleet("one"))
    cloud.run()
    return cloud, token


def later(cloud: MemoryCloud, days: float) -> None:
    """Let time pass without a push; then the timer comes, and the notifier twice."""
    cloud.clock.advance(days * 86400)
    plan_missed_head(cloud.ports)
    for _ in range(2):
        wake_notifier(cloud.ports)
        cloud.run(700)


def test_a_token_that_ends_soon_is_one_message_with_what_to_do() -> None:
    cloud, _ = notified()
    later(cloud, 1)
    assert kinds(cloud) == []
    later(cloud, 20)
    assert titles(cloud) == ["example: 1 token that will end soon"]
    text = cloud.routes.delivered["ops"][0].text
    assert "Create another token, set it as GITHUB_TOKEN, and deploy." in text
    later(cloud, 1)
    assert kinds(cloud) == [SOON]


def test_its_replacement_is_announced_without_a_push() -> None:
    cloud, token = notified()
    later(cloud, 20)
    token.ends = cloud.clock() + timedelta(days=90)
    later(cloud, 0.1)
    assert kinds(cloud) == [SOON, OVER]
    token.ends = None
    later(cloud, 0.1)
    assert kinds(cloud) == [SOON, OVER]


def test_a_token_that_has_ended_is_not_said_to_be_replaced() -> None:
    cloud, token = notified()
    later(cloud, 20)
    assert kinds(cloud) == [SOON]
    later(cloud, 20)
    assert kinds(cloud) == [SOON]
    token.ends = cloud.clock() + timedelta(days=90)
    later(cloud, 0.1)
    assert kinds(cloud) == [SOON, OVER]
