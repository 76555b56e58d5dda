"""``roadstead try``: a cluster gets the head of a pull request, and goes back."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.proposals import Repo
from tests.support.roadstead_command import roadstead
from tests.support.staged_fleets import NAMESPACE, ready_fleet, with_file

pytestmark = pytest.mark.lives


@pytest.fixture
def cloud() -> MemoryCloud:
    return ready_fleet()


def words(text: str) -> str:
    return " ".join(text.split())


def test_a_try_is_shown_everywhere_and_ended(url: str, cloud: MemoryCloud) -> None:
    number = str(Repo(cloud).propose(with_file("monitoring.yaml", NAMESPACE)))
    head = cloud.repository.head("topic")
    begun = roadstead("try", number, "--on", "a1", "--for", "2h", "--reason", "ingress", ROADSTEAD_URL=url)
    assert begun.returncode == 0, begun.stderr
    assert words(begun.stdout).startswith(f"a1 tries pull request {number} at {head[:8]} until 2026-")
    cloud.run(seconds=600, until=lambda: False)
    says = f"tries pull request {number} at {head[:8]} until"
    for command in (("why", "a1"), ("status", "a1"), ("status",), ("tree", "a1"), ("events", "a1")):
        assert says in words(roadstead(*command, ROADSTEAD_URL=url).stdout), command
    (act, *_) = cloud.state.acts(1, None)
    assert (act.action, act.target, act.reason) == ("try", f"a1/{number}", "ingress")
    ended = roadstead("try", number, "--on", "a1", "--end", ROADSTEAD_URL=url)
    assert f"a1 goes back from pull request {number}" in words(ended.stdout)
    cloud.run(seconds=600, until=lambda: False)
    assert says not in words(roadstead("why", "a1", ROADSTEAD_URL=url).stdout)
    again = roadstead("try", number, "--on", "a1", "--end", ROADSTEAD_URL=url)
    assert (again.returncode, "a1 does not try pull request" in again.stderr) == (1, True)


@pytest.mark.parametrize("lasts", ["4", "0h", "2w", "h"])
def test_a_time_without_a_unit_is_a_mistake(url: str, lasts: str) -> None:
    wrong = roadstead("try", "1", "--on", "a1", "--for", lasts, ROADSTEAD_URL=url)
    assert (wrong.returncode, "must be a number with a unit, such as 30m" in wrong.stderr) == (2, True)


def test_a_time_beyond_a_day_and_an_unknown_pull_request_are_refused(url: str) -> None:
    longer = roadstead("try", "1", "--on", "a1", "--for", "25h", ROADSTEAD_URL=url)
    assert "24h at most" in words(longer.stderr)
    unknown = roadstead("try", "99", "--on", "a1", ROADSTEAD_URL=url)
    assert "there is no pull request 99" in words(unknown.stderr)
