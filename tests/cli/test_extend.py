"""``roadstead extend`` and ``roadstead request``: answers, refusals, and what the audit has."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.one_cluster import files, record
from tests.support.pipeline_runs import push
from tests.support.roadstead_command import roadstead
from tests.support.rollbacks import open_pulls

pytestmark = pytest.mark.lives

RULE = b"spec:\n  selfService: [{classes: [small], environments: [development], locations: [eastus]}]\n"
REASON = ("--reason", "a load test")


@pytest.fixture
def cloud() -> MemoryCloud:
    cloud = MemoryCloud(throttle=False)
    wanted = files("  lifetime: 72h\n")
    push(cloud, {**wanted, "fleet.yaml": wanted["fleet.yaml"].replace(b"spec:\n", RULE, 1)})
    cloud.run()
    return cloud


def test_an_extension_is_shown_once_and_refused_the_second_time(url: str, cloud: MemoryCloud) -> None:
    extended = roadstead("extend", "one", "--for", "2h", *REASON, ROADSTEAD_URL=url)
    state = record(cloud).azure.lifetime
    assert state.extension is not None
    ends = state.extension.until.replace(microsecond=0).isoformat()
    assert extended.stdout == f"one ends {ends}\n", extended.stderr
    again = roadstead("extend", "one", "--for", "2h", *REASON, ROADSTEAD_URL=url)
    assert (again.returncode, "once for each end" in " ".join(again.stderr.split())) == (1, True)
    shown = " ".join(roadstead("status", "one", ROADSTEAD_URL=url).stdout.split())
    assert "extended by" in shown
    assert "a load test" in shown


def test_a_hold_is_shown_and_audited(url: str, cloud: MemoryCloud) -> None:
    assert (
        "one is on hold until"
        in roadstead("extend", "one", "--hold", "--for", "2h", *REASON, ROADSTEAD_URL=url).stdout
    )
    (act, *_) = cloud.state.acts(1, None)
    assert (act.action, act.clusters, act.reason, act.result) == ("hold", ("one",), "a load test", "accepted")
    assert "on hold, which ends in" in " ".join(roadstead("why", "one", ROADSTEAD_URL=url).stdout.split())


def test_a_request_opens_a_pull_request_and_what_is_not_allowed_says_why(
    url: str, cloud: MemoryCloud
) -> None:
    place = ("--class", "small", "--location", "eastus", *REASON)
    asked = roadstead("request", "new-aks", "--lifetime", "8h", *place, ROADSTEAD_URL=url)
    (pull,) = open_pulls(cloud)
    assert asked.stdout.splitlines()[0] == "new-aks in development for 8h:", asked.stderr
    assert asked.stdout.splitlines()[1].endswith(f"/pull/{pull.number}")
    refused = roadstead("request", "other-aks", "--lifetime", "48h", *place, ROADSTEAD_URL=url)
    assert "a cluster lasts 24h at most" in " ".join(refused.stderr.split())


def test_both_need_a_reason(url: str, cloud: MemoryCloud) -> None:
    for command in (("extend", "one"), ("request", "x", "--class", "small", "--lifetime", "8h")):
        refused = roadstead(*command, ROADSTEAD_URL=url)
        assert (refused.returncode, "--reason" in refused.stderr) == (2, True)
