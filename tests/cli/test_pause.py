"""``roadstead pause`` and ``resume``, and what ``status``, ``why`` and ``health`` show of a pause."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.pipeline_runs import ready
from tests.support.roadstead_command import on_terminal, plain, roadstead

pytestmark = pytest.mark.lives


@pytest.fixture
def cloud() -> MemoryCloud:
    return ready("one")


def test_a_pause_is_shown_until_it_is_resumed(url: str, cloud: MemoryCloud) -> None:
    paused = roadstead("pause", "--reason", "errors in the shop", "--until", "2099-05-12", ROADSTEAD_URL=url)
    assert paused.stdout == "paused until 2099-05-12T00:00:00+00:00\n", paused.stderr
    for command in (("status",), ("status", "one"), ("why", "one"), ("health",)):
        shown = " ".join(plain(on_terminal(*command, ROADSTEAD_URL=url)[1]).split())
        assert "until 2099-05-12 00:00 UTC: errors in the shop" in shown, command
    resumed = roadstead("resume", ROADSTEAD_URL=url)
    assert resumed.stdout.startswith("resumed: what waited starts within a minute"), resumed.stderr
    assert "paused" not in plain(on_terminal("status", ROADSTEAD_URL=url)[1])
    assert cloud.state.fleet().pause is None
    again = roadstead("resume", ROADSTEAD_URL=url)
    assert (again.returncode, again.stderr.count("the fleet is not paused")) == (1, 1)


@pytest.mark.parametrize(("given", "said"), [((), "--reason"), (("--reason", "x", "--until", "soon"), "2h")])
def test_a_pause_without_a_reason_or_with_an_end_that_is_no_time_is_refused(
    url: str, given: tuple[str, ...], said: str
) -> None:
    refused = roadstead("pause", *given, ROADSTEAD_URL=url)
    assert refused.returncode == 2
    assert said in refused.stderr


def test_an_end_may_be_a_duration(url: str, cloud: MemoryCloud) -> None:
    assert roadstead("pause", "--reason", "x", "--until", "87600h", ROADSTEAD_URL=url).returncode == 0
    pause = cloud.state.fleet().pause
    assert pause is not None
    assert pause.until is not None
    assert pause.until > cloud.clock()
