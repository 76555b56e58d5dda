"""``roadstead suspend``: one pull request for some clusters."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support import fleet_files
from tests.support.pipeline_runs import cloud_with
from tests.support.roadstead_command import roadstead
from tests.support.rollbacks import open_pulls


@pytest.fixture
def cloud() -> MemoryCloud:
    return cloud_with(fleet_files.fleet("one", "two"))


def test_a_suspension_is_proposed_and_shown(url: str, cloud: MemoryCloud) -> None:
    asked = roadstead("suspend", "one", "two", "--for", "7d", "--reason", "an audit", ROADSTEAD_URL=url)
    (pull,) = open_pulls(cloud)
    lines = asked.stdout.splitlines()
    assert lines[0].startswith("one, two: a pull request is open, for a suspension until 2026-"), asked.stderr
    assert lines[1].endswith(f"/pull/{pull.number}")
    (act, *_) = cloud.state.acts(1, None)
    assert (act.action, act.clusters, act.result) == ("suspend", ("one", "two"), "accepted")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--for", "7d"), "Missing option '--reason'"),
        (("--for", "soon", "--reason", "an audit"), "--for 'soon' must be a number with a unit"),
        (("--for", "900d", "--reason", "an audit"), "365d at most"),
    ],
)
def test_what_lacks_something_is_a_mistake(url: str, arguments: tuple[str, ...], why: str) -> None:
    refused = roadstead("suspend", "one", *arguments, ROADSTEAD_URL=url)
    assert (refused.returncode != 0, why in " ".join(refused.stderr.split())) == (True, True), refused.stderr
