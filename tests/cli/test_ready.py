"""``roadstead ready``: what blocks an upgrade, and the exit code that says so."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import read_readiness
from tests.support.one_cluster import ENTRA, api, ready
from tests.support.roadstead_command import on_terminal, plain, roadstead
from tests.support.upgrade_blockers import webhook
from tests.support.workloads import pod

pytestmark = pytest.mark.lives


@pytest.fixture
def cloud() -> MemoryCloud:
    return ready(ENTRA)


def read(cloud: MemoryCloud) -> None:
    read_readiness(["one"], "ann", cloud.ports)
    cloud.run(seconds=5)


def bare_pod(cloud: MemoryCloud) -> None:
    node = api(cloud).list("v1", "Node")[0]["metadata"]["name"]
    api(cloud).apply(pod("debug", node))


@contextmanager
def running(cloud: MemoryCloud) -> Iterator[None]:
    """Deliver the messages of a cloud meanwhile."""
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            cloud.run(seconds=1)
            time.sleep(0.05)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_cluster_that_nobody_has_read_is_not_ready(url: str) -> None:
    asked = roadstead("ready", "--to", "1.38", ROADSTEAD_URL=url)
    assert asked.returncode == 1
    assert "one: unknown for Kubernetes 1.38\n  unknown: nobody has read it yet" in asked.stdout
    assert "roadstead ready one --wait reads it" in asked.stdout


def test_what_blocks_is_shown_with_who_acts_in_80_columns(url: str, cloud: MemoryCloud) -> None:
    bare_pod(cloud)
    api(cloud).apply(webhook())
    read(cloud)
    code, shown = on_terminal("ready", "one", "--to", "1.38", ROADSTEAD_URL=url)
    text = plain(shown)
    assert code == 1
    assert max(map(len, text.splitlines())) <= 80
    flat = " ".join(text.split())
    assert "1 cluster: 1 blocked one: blocked for Kubernetes 1.38, read" in flat
    assert (
        "Pod default/debug has no controller: nothing creates it again owner of the workload: delete it"
        in flat
    )
    assert "administrator of the cluster: repair the Service" in flat
    assert "it proves use, and never that there is none" in flat
    assert "https://" not in flat
    assert "https://kubernetes.io" in roadstead("ready", "-o", "wide", ROADSTEAD_URL=url).stdout


def test_a_ready_fleet_ends_with_0(url: str, cloud: MemoryCloud) -> None:
    read(cloud)
    asked = roadstead("ready", "--to", "1.38", "-o", "json", ROADSTEAD_URL=url)
    assert (asked.returncode, json.loads(asked.stdout)["clusters"][0]["state"]) == (0, "ready")
    assert roadstead("ready", "-o", "name", ROADSTEAD_URL=url).stdout == "cluster/one\n"


def test_with_wait_the_clusters_are_read_now(url: str, cloud: MemoryCloud) -> None:
    bare_pod(cloud)
    with running(cloud):
        asked = roadstead("ready", "--to", "1.38", "--wait", "--reason", "1.38 is due", ROADSTEAD_URL=url)
    assert asked.returncode == 1, asked.stderr
    assert "Pod default/debug" in asked.stdout
    (act,) = [act for act in cloud.state.acts(9) if act.action == "readiness"]
    assert (act.clusters, act.reason) == (("one",), "1.38 is due")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--to", "next"), "to must be a version of Kubernetes, such as 1.38"),
        (("other",), "there is no cluster other"),
    ],
)
def test_a_wrong_question_is_refused(url: str, arguments: tuple[str, ...], said: str) -> None:
    asked = roadstead("ready", *arguments, ROADSTEAD_URL=url)
    assert (asked.returncode, said in asked.stderr) == (1, True)


def test_a_selection_without_a_cluster_says_so(url: str) -> None:
    asked = roadstead("ready", "--label", "team=nobody", ROADSTEAD_URL=url)
    assert (asked.returncode, asked.stdout) == (0, "no cluster is selected\n")
