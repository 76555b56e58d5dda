"""``roadstead drift``: a diff of what git has and of what Azure has."""

from __future__ import annotations

import json
import re

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.failures.errors import Unauthorized, Unavailable
from shared.kubernetes.flux_objects import KUSTOMIZATION
from shared.ports.azure.clusters import ListActivity
from tests.support.attached_clusters import attached
from tests.support.checks import check
from tests.support.drift_proposals import PROPOSE
from tests.support.one_cluster import ONE, api, cluster, files, pool, ready
from tests.support.pipeline_runs import push
from tests.support.replaced_ports import around, on_azure
from tests.support.roadstead_command import on_terminal, plain, roadstead
from tests.support.served_api import served
from tests.support.sweeps import sweep

pytestmark = pytest.mark.lives


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


@pytest.mark.parametrize("columns", [80, 120])
def test_who_changed_a_field_stands_below_the_diff(url: str, cloud: MemoryCloud, columns: int) -> None:
    with cloud.azure.called_by("ann@example.com"):
        changed(cloud)
    _, shown = on_terminal("drift", "one", columns=columns, rows=60, ROADSTEAD_URL=url)
    rows = [row.rstrip() for row in plain(shown).splitlines()]
    assert max(map(len, rows)) <= columns
    words = " ".join(" ".join(rows).split())
    assert re.search(
        r"tags\.cost: for \w+; may have been changed 2026-01-01 00:\d\d UTC by ann@example\.com", words
    )
    assert "nodePools[apps].count: for" in words
    assert "Who changed what" not in words


def test_a_log_that_may_not_be_read_is_said_once_and_the_command_succeeds(
    url: str, cloud: MemoryCloud
) -> None:
    def refuse(_: object) -> object:
        raise Unauthorized("no role")

    on_azure(cloud, ListActivity, refuse)
    changed(cloud)
    code, shown = on_terminal("drift", columns=120, ROADSTEAD_URL=url)
    assert code == 0
    text = " ".join(plain(shown).split())
    assert text.count("not permitted to read the activity log") == 1


def test_a_field_that_is_proposed_has_the_address_of_its_pull_request(url: str, cloud: MemoryCloud) -> None:
    push(cloud, files(pool(count=2) + "  tags: {cost: a}\n" + PROPOSE))
    cloud.run()
    changed(cloud)
    _, shown = on_terminal("drift", "one", columns=160, ROADSTEAD_URL=url)
    words = " ".join(plain(shown).split())
    proposed = "; proposed in https://github.example/pull/1"
    assert words.count(proposed) == 2
    assert "512 characters without <>%&\\?/, got example.com/own" in words, "no manifest has such a tag"
    assert "Pull requests:" not in words


def test_why_pull_requests_are_not_opened_stands_below_the_diffs(url: str, cloud: MemoryCloud) -> None:
    def refuse(*_: object) -> object:
        raise Unauthorized("Resource not accessible by integration")

    push(cloud, files(pool(count=2) + "  tags: {cost: a}\n" + PROPOSE))
    cloud.run()
    around(cloud, "git_host", tip=refuse)
    changed(cloud)
    _, shown = on_terminal("drift", columns=160, ROADSTEAD_URL=url)
    words = " ".join(plain(shown).split())
    assert (
        "Pull requests: GitHub refuses to open pull requests: Resource not accessible by integration" in words
    )


def test_a_fleet_without_drift_says_so(url: str, cloud: MemoryCloud) -> None:
    _, shown = on_terminal("drift", ROADSTEAD_URL=url)
    assert "The fleet: no difference from git is reported" in plain(shown)


def test_a_cluster_that_was_never_compared_is_not_said_to_be_as_git_has_it() -> None:
    cloud = MemoryCloud()
    push(cloud, files())
    cloud.run(seconds=60)
    with served(cloud.ports) as address:
        shown = roadstead("drift", "one", ROADSTEAD_URL=address).stdout
    hint = "one: no difference from git is reported; roadstead status one shows InSync once it was compared"
    assert re.fullmatch(rf"{hint}; compared \w+ ago\n", shown), "at the end of its job"


def broken_inside(cloud: MemoryCloud) -> None:
    """Let a check find that somebody deleted the root Kustomization."""
    live = api(cloud).get(KUSTOMIZATION)
    assert live is not None
    api(cloud).delete(live)
    check(cloud)


FOUND = "one: FluxUnhealthy: the Kustomization flux-system in flux-system: Roadstead applied it"


@pytest.mark.parametrize("arguments", [(), ("one",)])
def test_what_a_check_found_inside_is_said_with_what_was_compared(
    url: str, cloud: MemoryCloud, arguments: tuple[str, ...]
) -> None:
    broken_inside(cloud)
    _, shown = on_terminal("drift", *arguments, ROADSTEAD_URL=url)
    words = " ".join(plain(shown).split())
    assert words.startswith(FOUND)
    assert "no difference" not in words
    assert "Compared: what Azure shows; no field is reported to differ Not compared: what is inside" in words


def test_the_diff_and_what_a_check_found_are_shown_together(url: str, cloud: MemoryCloud) -> None:
    changed(cloud)
    broken_inside(cloud)
    words = " ".join(plain(on_terminal("drift", "one", ROADSTEAD_URL=url)[1]).split())
    assert (
        words.index("--- one in git")
        < words.index(FOUND)
        < words.index("Not compared: what is inside clusters")
    )


def test_a_cluster_whose_inside_cannot_be_read_is_not_called_without_difference(
    url: str, cloud: MemoryCloud
) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise Unavailable("the API server does not answer")

    around(cloud, "kubernetes", connect=refuse)
    check(cloud)
    words = " ".join(plain(on_terminal("drift", ROADSTEAD_URL=url)[1]).split())
    assert words.startswith("one: not known: Unavailable: the API server does not answer")
    assert "no difference" not in words


def test_an_attached_cluster_is_not_said_to_have_been_compared() -> None:
    cloud = attached()
    with served(cloud.ports) as address:
        alone = roadstead("drift", "harbour", ROADSTEAD_URL=address).stdout
        fleet = roadstead("drift", ROADSTEAD_URL=address).stdout
    assert (
        alone == "harbour is not in Azure: nothing of it is compared, and no check reports anything inside\n"
    )
    assert fleet == (
        "The fleet: no difference from git is reported; nothing is compared of 1 cluster outside Azure\n"
    )


def test_scripts_get_the_fields(url: str, cloud: MemoryCloud) -> None:
    changed(cloud)
    view = json.loads(roadstead("drift", "-o", "json", ROADSTEAD_URL=url).stdout)
    fields = {
        field["path"]: (field["git"], field["live"], field["source"])
        for field in view["clusters"][0]["fields"]
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


def test_a_freeze_that_keeps_a_correction_from_starting_is_named(url: str, cloud: MemoryCloud) -> None:
    wanted = files(f"{pool(count=2)}  drift: {{action: correct}}\n  tags: {{cost: a}}\n")
    push(cloud, wanted)
    cloud.run(seconds=600)
    times = 'starts: "2026-01-01T00:00:00Z", ends: "2026-02-01T00:00:00Z"'
    freeze = f"{{name: holidays, {times}, owner: platform, reason: nobody is here}}"
    wanted["fleet.yaml"] += f"  rollout:\n    freezes: [{freeze}]\n".encode()
    push(cloud, wanted)
    cloud.run(seconds=600)
    changed(cloud)
    words = " ".join(plain(on_terminal("drift", "one", ROADSTEAD_URL=url)[1]).split())
    until = "a freeze holds its job until 2026-02-01 00:00"
    assert until in words
    assert "holidays of platform (nobody is here)" in words


def test_what_somebody_added_is_accepted_as_it_is_shown_and_drift_says_by_whom(
    url: str, cloud: MemoryCloud
) -> None:
    changed(cloud)
    shown = " ".join(plain(on_terminal("drift", "one", ROADSTEAD_URL=url)[1]).split())
    assert "An Operator accepts what somebody added: roadstead accept one" in shown
    for field, why in (("cost", "is not what somebody added"), ("none", "of one does not differ")):
        done = roadstead("accept", "one", f"tags.{field}", "--yes", ROADSTEAD_URL=url)
        assert (done.returncode, why in done.stderr) == (1, True)
    done = roadstead("accept", "one", "--yes", "--reason", "for costs", ROADSTEAD_URL=url)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "1 field accepted. See roadstead drift one")
    cloud.run()
    shown = " ".join(plain(on_terminal("drift", "one", columns=120, ROADSTEAD_URL=url)[1]).split())
    assert 'one: tags.example.com/own may be "x": accepted' in shown
    assert "ago by" in shown
    assert ": for costs" in shown
    assert "tags.example.com/own: for" not in shown
    assert (
        "nothing that somebody added to one is reported"
        in roadstead("accept", "one", ROADSTEAD_URL=url).stderr
    )
