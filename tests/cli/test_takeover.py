"""``roadstead takeover``, run against the functions over HTTP."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from tests.support.one_cluster import files, ready
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import around
from tests.support.roadstead_command import on_terminal, plain, roadstead
from tests.support.served_api import served

pytestmark = pytest.mark.lives


@pytest.fixture
def cloud() -> MemoryCloud:
    """Return a cloud whose app has lost its tables."""
    lost = ready()
    lost.state.lose()
    push(lost, files() | {"README.md": b"the next push"})
    lost.run(seconds=600, until=lambda: False)
    return lost


def test_status_and_why_say_that_a_cluster_waits_for_a_takeover(url: str) -> None:
    shown = " ".join(plain(on_terminal("status", ROADSTEAD_URL=url)[1]).split())
    assert "clusters that are not written to, because another app of this fleet may manage them" in shown
    why = json.loads(roadstead("why", "one", "-o", "json", "--url", url).stdout)
    assert "manages it too" in why["doing"]
    assert "roadstead takeover one" in why["suggestedAction"]


@pytest.mark.parametrize("which", ["one", "cluster/one", "--all"])
def test_a_cluster_is_taken_over_after_a_yes(cloud: MemoryCloud, url: str, which: str) -> None:
    shown = roadstead("takeover", which, "--yes", ROADSTEAD_URL=url)
    assert shown.returncode == 0, shown.stderr
    assert "manages it too" in " ".join(shown.stdout.split())
    assert shown.stdout.endswith("one: taken over\n")
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    events = json.loads(roadstead("events", "one", "-o", "json", "--url", url).stdout)["events"]
    assert any(event["reason"] == "TakenOver" for event in events)
    again = roadstead("takeover", which, "--yes", ROADSTEAD_URL=url)
    assert again.returncode == 1
    assert "takeover" in again.stderr


@pytest.mark.parametrize("which", [[], ["one", "--all"]])
def test_a_takeover_names_one_cluster_or_all(which: list[str]) -> None:
    shown = roadstead("takeover", *which)
    assert shown.returncode == 2
    assert "give a cluster, or --all, or --repository" in shown.stderr


def test_a_takeover_that_takes_nothing_over_is_a_failure(cloud: MemoryCloud) -> None:
    read = cloud.ports.state.cluster

    def settled(name: str) -> ClusterRecord | None:
        record = read(name)
        if record is None:
            return None
        next_run = replace(record.job.next_run, contest=None)
        return replace(record, job=replace(record.job, next_run=next_run))

    around(cloud, "state", cluster=settled)  # the other installation has left since the list was read
    with served(cloud.ports) as address:
        shown = roadstead("takeover", "--all", "--yes", ROADSTEAD_URL=address)
    assert (shown.returncode, shown.stderr) == (1, "roadstead: took over none of 1\n")
    assert "one does not wait for a takeover" in shown.stdout
