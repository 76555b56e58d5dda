"""``roadstead drift``: a diff of what git has and of what Azure has."""

from __future__ import annotations

import json

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.one_cluster import ONE, cluster, pool, ready
from tests.support.roadstead_command import on_terminal, plain, roadstead
from tests.support.sweeps import sweep


@pytest.fixture
def cloud() -> MemoryCloud:
    return ready(pool(count=2) + "  tags: {cost: a}\n")


def changed(cloud: MemoryCloud) -> None:
    """Scale a pool and change tags by hand, and let a sweep see that."""
    cloud.azure.interventions.scale(ONE, "apps", 5)
    tags = {**cluster(cloud)["tags"], "cost": "b", "example.com/own": "x"}
    cloud.azure.patch_cluster(ONE, {"tags": tags})
    sweep(cloud)


DIFF = """\
--- one in git
+++ one in Azure
@@ -1,6 +1,7 @@
 spec:
   tags:
-    cost: a
+    cost: b
+    example.com/own: x
   nodePools:
   - name: apps
-    count: 2
+    count: 5
"""


@pytest.mark.parametrize("arguments", [(), ("one",)])
def test_the_drift_is_a_diff_of_yaml_with_the_age_of_each_field(
    url: str, cloud: MemoryCloud, arguments: tuple[str, ...]
) -> None:
    changed(cloud)
    code, shown = on_terminal("drift", *arguments, ROADSTEAD_URL=url)
    text = "\n".join(row.rstrip() for row in plain(shown).splitlines())
    assert code == 0
    assert DIFF in text
    words = " ".join(text.split())
    count = words.partition("nodePools[apps].count: for ")[2]
    assert "; set in clusters/one/cluster.yaml:11" in count
    assert "tags.example.com/own: for" in words
    assert "no job changes it: put it into the manifest, or undo it in Azure" in words


def test_a_fleet_without_drift_says_so(url: str, cloud: MemoryCloud) -> None:
    _, shown = on_terminal("drift", ROADSTEAD_URL=url)
    assert "The fleet: the last comparison with Azure found no difference from git" in plain(shown)


def test_scripts_get_the_fields(url: str, cloud: MemoryCloud) -> None:
    changed(cloud)
    view = json.loads(roadstead("drift", "-o", "json", ROADSTEAD_URL=url).stdout)
    fields = {
        each["path"]: (each["git"], each["live"], each["source"]) for each in view["clusters"][0]["fields"]
    }
    assert fields["nodePools[apps].count"] == ("2", "5", "clusters/one/cluster.yaml:11")
    assert roadstead("drift", "-o", "name", ROADSTEAD_URL=url).stdout == "cluster/one\n"


def test_a_cluster_that_the_fleet_does_not_have_is_an_error(url: str, cloud: MemoryCloud) -> None:
    asked = roadstead("drift", "two", ROADSTEAD_URL=url)
    assert asked.returncode == 1
    assert "two" in asked.stderr


def test_the_status_and_why_name_the_fields(url: str, cloud: MemoryCloud) -> None:
    changed(cloud)
    _, shown = on_terminal("status", ROADSTEAD_URL=url)
    text = " ".join(plain(shown).split())
    assert "1 of 1 clusters Ready" in text
    assert "differs from git in tags.cost, nodePools[apps].count, tags.example.com/own" in text
    _, shown = on_terminal("why", "one", ROADSTEAD_URL=url)
    assert "`roadstead drift one` shows both values" in " ".join(plain(shown).split())
