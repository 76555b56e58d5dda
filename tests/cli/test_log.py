"""``roadstead log``: the commits that an environment does not have yet."""

from __future__ import annotations

import json

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support import fleet_files
from tests.support.pipeline_runs import push
from tests.support.roadstead_command import on_terminal, plain, roadstead
from tests.support.staged_fleets import staged
from tests.support.waiting_fleets import change, fleet


@pytest.fixture
def cloud() -> MemoryCloud:
    return fleet()


@pytest.mark.lives
def test_the_commits_are_listed_with_their_files_and_where_the_clusters_are(
    url: str, cloud: MemoryCloud
) -> None:
    first = cloud.repository.head("main")
    second, third = change(cloud, "ingress", "Add the ingress"), change(cloud, "metrics", "Add metrics")
    shown = roadstead("log", "--from", "production", ROADSTEAD_URL=url).stdout.splitlines()
    assert shown == [
        f"production: 2 commits up to main at {third[:8]}",
        f"{third[:8]}  Add metrics",
        "          platform/metrics.yaml",
        f"{second[:8]}  Add the ingress",
        "          platform/ingress.yaml",
        f"{first[:8]}  4 clusters: b1, b2, b3 and 1 more",
    ]
    wide = roadstead("log", "--from", "production", "-o", "wide", ROADSTEAD_URL=url).stdout
    assert f"{first[:8]}  4 clusters: b1, b2, b3, b4" in wide
    narrow = plain(on_terminal("log", "--from", "environment/production", ROADSTEAD_URL=url)[1])
    assert max(map(len, narrow.splitlines())) <= 80
    ahead = roadstead("log", "--from", "development", ROADSTEAD_URL=url).stdout.splitlines()
    assert ahead == [f"development: main at {third[:8]}", f"{third[:8]}  3 clusters: a1, a2, a3"]


@pytest.mark.lives
def test_scripts_get_the_object_of_the_api_and_the_names(url: str, cloud: MemoryCloud) -> None:
    commit = change(cloud, "ingress")
    found = json.loads(roadstead("log", "--from", "production", "-o", "json", ROADSTEAD_URL=url).stdout)
    assert [pulled["clusterCount"] for pulled in found["pulled"]] == [4]
    names = roadstead("log", "--from", "production", "-o", "name", ROADSTEAD_URL=url).stdout
    assert names == f"commit/{commit}\n"


@pytest.mark.lives
def test_clusters_whose_flux_follows_a_branch_have_no_distance(url: str, cloud: MemoryCloud) -> None:
    head = push(cloud, fleet_files.following_branch(staged(fleet_files.ALL_AT_ONCE.decode())))
    cloud.run()
    shown = roadstead("log", "--from", "development", ROADSTEAD_URL=url).stdout.splitlines()
    assert shown == [
        f"development: main at {head[:8]}",
        "  Flux pulls another source, or follows its branch by itself, on 3 clusters: a1, a2, a3",
    ]


def test_an_environment_without_a_cluster_is_an_error(url: str) -> None:
    done = roadstead("log", "--from", "staging", ROADSTEAD_URL=url)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "no cluster is in an environment staging" in done.stderr
    assert roadstead("log", ROADSTEAD_URL=url).returncode == 2
