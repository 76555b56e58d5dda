"""``roadstead refresh``, and what ``roadstead status`` shows of sweeps."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.parts import FIRST_PAGE
from shared.app.api.views.drift import drift_of_cluster, drift_view
from shared.cluster.queues.messages import SweepRequest
from shared.ports.state import Listing, Orphan, SweepRecord
from tests.support.one_cluster import ONE, ready, record
from tests.support.roadstead_command import on_terminal, plain, roadstead
from tests.support.sweeps import delete_by_hand, handle, sweep, tag_by_hand

pytestmark = pytest.mark.lives


@pytest.fixture
def cloud() -> MemoryCloud:
    return ready()


def test_a_cluster_is_compared_with_azure_and_its_status_is_true(url: str, cloud: MemoryCloud) -> None:
    delete_by_hand(cloud, ONE)
    asked = roadstead("refresh", "one", "--reason", "deleted", ROADSTEAD_URL=url)
    assert asked.stdout.startswith("one: will be compared with Azure"), asked.stderr
    cloud.run()
    assert record(cloud).finding == "ClusterMissing"
    _, shown = on_terminal("status", ROADSTEAD_URL=url)
    text = " ".join(plain(shown).split())
    assert "0 of 1 clusters Ready" in text
    assert "ClusterMissing: the cluster no longer exists in Azure" in text
    _, shown = on_terminal("why", "one", ROADSTEAD_URL=url)
    assert "is not Ready any more" in " ".join(plain(shown).split())
    assert "tried" not in plain(shown)
    _, shown = on_terminal("status", "one", ROADSTEAD_URL=url)
    assert "failure" in plain(shown)
    assert "tried" not in plain(shown)


def test_the_whole_fleet_is_swept(url: str, cloud: MemoryCloud) -> None:
    asked = roadstead("refresh", "--all", ROADSTEAD_URL=url)
    assert asked.stdout.startswith("The fleet: will be compared"), asked.stderr
    cloud.run()
    assert cloud.state.sweep().finished is not None


@pytest.mark.parametrize("arguments", [(), ("one", "--all")])
def test_a_refresh_is_of_a_cluster_or_of_all(url: str, arguments: tuple[str, ...]) -> None:
    asked = roadstead("refresh", *arguments, ROADSTEAD_URL=url)
    assert (asked.returncode, "give a cluster, or --all" in asked.stderr) == (2, True)


def test_the_status_shows_lists_that_failed_and_orphans(url: str, cloud: MemoryCloud) -> None:
    now = cloud.clock()
    orphan = Orphan("/subscriptions/s/managedClusters/ghost", "ghost", "", now)
    problem = Listing("s-2", None, "its clusters cannot be listed: Unauthorized: no role")
    others = [replace(problem, subscription=f"s-{number}") for number in (3, 4, 5)]
    listings = (Listing("s", now, "", (orphan,)), problem, *others)
    cloud.state.save_sweep(SweepRecord(now, now, listings))
    _, shown = on_terminal("status", ROADSTEAD_URL=url)
    text = " ".join(plain(shown).split())
    assert "sweep of s-2: its clusters cannot be listed: Unauthorized: no role" in text
    assert "and 1 more subscription " in text
    assert "1 cluster with this fleet's tags that git does not have: /subscriptions/s" in text
    assert max(len(line) for line in plain(shown).splitlines()) <= 80


@pytest.mark.parametrize("arguments", [("one",), ("--all",)])
def test_a_refresh_that_waits_ends_once_it_was_compared_and_says_what_differs(
    url: str, cloud: MemoryCloud, arguments: tuple[str, ...]
) -> None:
    cloud.clock.advance(3600)
    tag_by_hand(cloud, ONE, owner="ann")
    done = threading.Event()

    def app() -> None:
        while not done.wait(0.1):
            cloud.run(5, until=lambda: False)

    runner = threading.Thread(target=app)
    runner.start()
    asked = roadstead("refresh", *arguments, "--wait", ROADSTEAD_URL=url)
    done.set()
    runner.join()
    assert "compared with Azure: 1 cluster with drift; see roadstead drift" in asked.stdout, asked.stderr


def test_each_view_of_drift_says_how_old_it_is(url: str, cloud: MemoryCloud) -> None:
    tag_by_hand(cloud, ONE, owner="ann")
    sweep(cloud)
    for command in (("drift",), ("drift", "one"), ("why", "one")):
        _, shown = on_terminal(*command, ROADSTEAD_URL=url)
        assert "compared" in plain(shown), command
    cloud.clock.advance(3600)
    before = drift_of_cluster("one", cloud.ports)
    handle(cloud, SweepRequest(clusters=("one",)))
    after = drift_of_cluster("one", cloud.ports)
    assert before is not None
    assert after is not None
    assert (after["comparedAt"] or "") > (before["comparedAt"] or "")
    assert (drift_view(cloud.ports, FIRST_PAGE)["comparedAt"] or "") < (after["comparedAt"] or "")
