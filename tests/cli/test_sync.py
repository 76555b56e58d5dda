"""``roadstead sync``, and what ``roadstead status`` shows of lost webhooks."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support import fleet_files
from tests.support.pipeline_runs import ready
from tests.support.roadstead_command import on_terminal, plain, roadstead


@pytest.fixture
def cloud() -> MemoryCloud:
    return ready("one")


def test_a_commit_without_a_webhook_is_planned_and_shown(url: str, cloud: MemoryCloud) -> None:
    assert "webhook" not in plain(on_terminal("status", ROADSTEAD_URL=url)[1])
    commit = cloud.repository.push(fleet_files.fleet("one", "two"))[:8]
    asked = roadstead("sync", "--reason", "nothing happens", ROADSTEAD_URL=url)
    assert asked.stdout == f"{commit}: will be planned within a minute; see roadstead status\n", asked.stderr
    cloud.run()
    shown = plain(on_terminal("status", ROADSTEAD_URL=url)[1])
    assert f"1 lost webhook repaired, the last one of {commit}, " in shown
    assert "by roadstead sync" in shown
    assert max(len(line) for line in shown.splitlines()) <= 80
    again = roadstead("sync", ROADSTEAD_URL=url)
    assert again.stdout == f"{commit}: was planned already, or is being planned\n"
