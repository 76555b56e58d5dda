"""Credentials that end: known where a service states it, a problem 30 days before, and no outage."""

from __future__ import annotations

from datetime import timedelta, timezone
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.health import Health, health_view
from shared.cluster.failures.errors import Unavailable
from tests.support import fleet_files
from tests.support.pipeline_runs import push
from tests.support.replaced_ports import around


@pytest.fixture
def cloud() -> MemoryCloud:
    cloud = MemoryCloud()
    push(cloud, fleet_files.fleet("one"))
    return cloud


def view(cloud: MemoryCloud) -> dict[str, Any]:
    return dict(health_view(Health(cloud.ports).read()).body)


def test_a_token_without_an_end_is_no_line(cloud: MemoryCloud) -> None:
    assert view(cloud)["credentials"] == []


def test_a_token_that_ends_soon_is_a_problem_and_the_app_is_as_ready_as_before(cloud: MemoryCloud) -> None:
    cloud.repository.token_expires = cloud.clock() + timedelta(days=30, minutes=1)
    before = view(cloud)
    (token,) = before["credentials"]
    assert (token["name"], token["ok"], token["problem"]) == ("GITHUB_TOKEN", True, "")
    cloud.repository.token_expires = cloud.clock() + timedelta(days=12, minutes=1)
    after = view(cloud)
    (token,) = after["credentials"]
    assert not token["ok"]
    assert token["problem"].startswith("ends in 12 days: create another one")
    assert after["ready"] == before["ready"]


def test_nothing_is_known_of_a_token_while_github_does_not_answer(cloud: MemoryCloud) -> None:
    cloud.repository.token_expires = cloud.clock() + timedelta(days=1)

    def silent(_: str) -> object:
        raise Unavailable("no answer")

    around(cloud, "git_host", read_head=silent)
    found = view(cloud)
    assert (found["ready"], found["credentials"]) == (False, [])


@pytest.mark.parametrize("hours", [-8, 0, 14])
def test_the_day_on_which_a_token_ends_is_that_of_the_app_whatever_offset_github_states(
    cloud: MemoryCloud, hours: int
) -> None:
    cloud.clock.advance(3 * 3600)
    offset = timezone(timedelta(hours=hours))
    cloud.repository.token_expires = (cloud.clock() + timedelta(hours=1)).astimezone(offset)
    (token,) = view(cloud)["credentials"]
    assert token["problem"].startswith("ends today:")


@pytest.mark.parametrize(("days", "words"), [(1, "ends in 1 day:"), (0, "ends today:"), (-1, "has ended:")])
def test_a_token_that_ends_at_once_says_when_in_words(cloud: MemoryCloud, days: int, words: str) -> None:
    cloud.repository.token_expires = cloud.clock() + timedelta(days=days, minutes=1)
    (token,) = view(cloud)["credentials"]
    assert token["problem"].startswith(words)
