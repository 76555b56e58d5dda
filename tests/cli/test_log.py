"""``roadstead log``: the commits that an environment does not pull yet."""

from __future__ import annotations

import json

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from tests.app.api.test_log import change, fleet
from tests.support.roadstead_command import on_terminal, plain, roadstead


@pytest.fixture
def cloud() -> MemoryCloud:
    return fleet()[0]


def test_the_commits_are_listed_with_their_files_and_where_the_clusters_are(
    url: str, cloud: MemoryCloud
) -> None:
    first = cloud.repository.changes(cloud.repository.head("main"), "", 2)[1].commit
    for number in range(5):
        cloud.repository.commit({f"platform/{number}.yaml": b"1"}, branch="next")
    newest = change(cloud, "platform/ingress.yaml", "Add the ingress")
    shown = roadstead("log", "--from", "production", ROADSTEAD_URL=url)
    lines = shown.stdout.splitlines()
    assert lines[0] == f"production: up to 2 commits behind main at {newest[:8]}"
    assert lines[1:3] == [f"{newest[:8]}  Add the ingress", "          platform/ingress.yaml"]
    assert lines[4].endswith("clusters/b3/cluster.yaml and 1 more")
    assert lines[5:] == [f"{first[:8]}  4 clusters: b1, b2, b3 and 1 more"]
    wide = roadstead("log", "--from", "production", "-o", "wide", ROADSTEAD_URL=url).stdout
    assert f"{first[:8]}  4 clusters: b1, b2, b3, b4" in wide
    narrow = plain(on_terminal("log", "--from", "environment/production", ROADSTEAD_URL=url)[1])
    assert max(map(len, narrow.splitlines())) <= 80


def test_scripts_get_the_object_of_the_api_and_the_names(url: str, cloud: MemoryCloud) -> None:
    found = json.loads(roadstead("log", "--from", "production", "-o", "json", ROADSTEAD_URL=url).stdout)
    assert [pulled["clusterCount"] for pulled in found["pulled"]] == [4]
    names = roadstead("log", "--from", "production", "-o", "name", ROADSTEAD_URL=url).stdout
    assert names == f"commit/{cloud.repository.head('main')}\n"


def test_clusters_whose_flux_follows_a_branch_have_no_distance(url: str) -> None:
    shown = roadstead("log", "--from", "development", ROADSTEAD_URL=url).stdout.splitlines()
    assert shown[0].startswith("development: main at ")
    assert shown[1:] == ["  Flux follows its source by itself on 3 clusters: a1, a2, a3"]


def test_an_environment_without_a_cluster_is_an_error(url: str) -> None:
    done = roadstead("log", "--from", "staging", ROADSTEAD_URL=url)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "no cluster is in an environment staging" in done.stderr
    assert roadstead("log", ROADSTEAD_URL=url).returncode == 2
