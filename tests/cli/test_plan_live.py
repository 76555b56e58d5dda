"""``roadstead plan --live``: the files against Azure as it is now, and not against what is recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.failures.errors import Unavailable
from shared.cluster.record_parts import Phase
from shared.ports.azure import GetCluster
from tests.support import fleet_files
from tests.support.one_cluster import ONE, files, pool, ready, record
from tests.support.pipeline_runs import phases, push
from tests.support.pipeline_runs import ready as ready_fleet
from tests.support.replaced_ports import on_azure
from tests.support.roadstead_command import on_terminal, plain, roadstead, write
from tests.support.served_api import served
from tests.support.sleepers import on_monday, sleeping, until
from tests.support.sweeps import delete_by_hand, reads_of, tag_by_hand

pytestmark = pytest.mark.lives

POOL = pool(count=2, nodeLabels="{tier: a}")


@pytest.fixture
def cloud() -> MemoryCloud:
    return ready(POOL)


def live(url: str, folder: Path, content: dict[str, bytes], *arguments: str) -> Any:
    """Run the command in a folder with these files."""
    return roadstead("plan", "--live", *arguments, cwd=write(folder, content), ROADSTEAD_URL=url)


def fields(done: Any) -> dict[str, tuple[str, str]]:
    view = json.loads(done.stdout)
    return {
        field["path"]: (field["git"], field["live"])
        for cluster in view["clusters"]
        for field in cluster["fields"]
    }


def test_files_that_azure_has_differ_in_nothing(url: str, cloud: MemoryCloud, tmp_path: Path) -> None:
    done = live(url, tmp_path, files(POOL), "--exit-code")
    assert (done.returncode, done.stdout) == (0, "Compared with Azure now: 0 of 1 cluster differ\n")


@pytest.mark.parametrize("columns", [80, 120])
def test_what_somebody_changed_is_a_diff_of_yaml_without_a_sweep(
    url: str, cloud: MemoryCloud, tmp_path: Path, columns: int
) -> None:
    cloud.azure.interventions.scale(ONE, "apps", 5)
    folder = write(tmp_path, files(POOL))
    code, shown = on_terminal(
        "plan", "--live", "--exit-code", cwd=folder, columns=columns, rows=60, ROADSTEAD_URL=url
    )
    rows = [row.rstrip() for row in plain(shown).splitlines()]
    assert code == 3
    assert max(map(len, rows)) <= columns
    text = "\n".join(rows)
    assert "Compared with Azure now: 1 of 1 cluster differs" in text
    assert "--- one in git\n+++ one in Azure" in text
    assert "-    count: 2\n+    count: 5" in text


def test_the_files_count_and_not_the_record(url: str, cloud: MemoryCloud, tmp_path: Path) -> None:
    cloud.azure.interventions.scale(ONE, "apps", 5)
    changed = files(pool(count=5, nodeLabels="{tier: b}"))
    assert fields(live(url, tmp_path, changed, "-o", "json")) == {
        "nodePools[apps].nodeLabels.tier": ('"b"', '"a"')
    }


def test_a_label_that_the_files_no_longer_have_differs(url: str, cloud: MemoryCloud, tmp_path: Path) -> None:
    done = live(url, tmp_path, files(pool(count=2)), "-o", "json")
    assert fields(done) == {"nodePools[apps].nodeLabels.tier": ("", '"a"')}
    (one,) = json.loads(done.stdout)["clusters"][0]["fields"]
    assert one["leftAlone"] is False, "a job would remove it"


def test_a_label_that_a_job_has_still_to_remove_is_not_left_alone(
    url: str, cloud: MemoryCloud, tmp_path: Path
) -> None:
    without = files(pool(count=2))
    push(cloud, without)
    while record(cloud).generation == 1:
        assert cloud.step()
    assert phases(cloud) == {"one": Phase.UPDATING}
    done = live(url, tmp_path, without, "-o", "json")
    (label,) = json.loads(done.stdout)["clusters"][0]["fields"]
    assert (label["path"], label["leftAlone"]) == ("nodePools[apps].nodeLabels.tier", False)


def test_a_cluster_whose_node_pools_sleep_is_not_compared(tmp_path: Path) -> None:
    asleep = files(POOL + sleeping(", scope: pools"))
    cloud = on_monday(", scope: pools", pools=POOL)
    until(cloud, 18)
    assert phases(cloud) == {"one": Phase.SLEEPING}
    with served(cloud.ports) as url:
        done = live(url, tmp_path, asleep, "--exit-code")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "  one: it sleeps")


@pytest.mark.parametrize("channel", ["none", "stable"])
def test_a_lowered_version_differs_and_never_goes_down(tmp_path: Path, channel: str) -> None:
    upgrades = f"{POOL}  autoUpgradeProfile: {{upgradeChannel: {channel}}}\n"
    with served(ready(upgrades).ports) as url:
        same = live(url, tmp_path, files(upgrades), "--exit-code")
        lowered = live(url, tmp_path, files(f'{upgrades}  kubernetesVersion: "1.35"\n'), "--exit-code")
    assert (same.returncode, lowered.returncode) == (0, 3)
    text = " ".join(lowered.stdout.split())
    assert "- kubernetesVersion: '1.35' + kubernetesVersion: 1.36.3" in text
    note = "a version is never lowered, so no job changes it: put it into the manifest"
    assert f"kubernetesVersion: {note}" in text
    assert "undo it in Azure" not in text


def test_a_cluster_that_is_gone_is_said_and_is_a_difference(
    url: str, cloud: MemoryCloud, tmp_path: Path
) -> None:
    delete_by_hand(cloud, ONE)
    done = live(url, tmp_path, files(POOL), "--exit-code")
    assert done.returncode == 3
    assert "one: Azure has no such cluster" in done.stdout
    assert live(url, tmp_path, files(POOL), "-o", "name").stdout == "cluster/one\n"


def test_a_cluster_that_cannot_be_read_is_no_equal_one(cloud: MemoryCloud, tmp_path: Path) -> None:
    def silent(_: object) -> object:
        raise Unavailable("no answer")

    on_azure(cloud, GetCluster, silent)
    with served(cloud.ports) as url:
        done = live(url, tmp_path, files(POOL))
    assert done.returncode == 1
    assert "Compared with Azure now: 0 of 0 clusters differ, 1 not compared" in done.stdout
    assert "one could not be read: Unavailable: no answer" in done.stdout


def test_a_stopped_cluster_is_not_compared_and_is_not_counted_among_those_that_are(tmp_path: Path) -> None:
    cloud = ready_fleet("one", "two", "three")
    cloud.azure.interventions.stop(replace(ONE, resource_group="rg-two", name="two"))
    with served(cloud.ports) as url:
        done = live(url, tmp_path, fleet_files.fleet("one", "two", "three"), "--exit-code")
        view = json.loads(live(url, tmp_path, fleet_files.fleet("one", "two", "three"), "-o", "json").stdout)
    lines = [text.strip() for text in done.stdout.splitlines()]
    assert (done.returncode, lines[0]) == (
        *(0, "Compared with Azure now: 0 of 2 clusters differ, 1 not compared"),
    )
    assert lines[-1] == "two: it is stopped in Azure"
    assert [cluster["name"] for cluster in view["clusters"]] == ["one", "three"]
    assert [document["name"] for document in view["notCompared"]] == ["two"]


def test_a_cluster_in_creation_is_not_compared_before_azure_has_it(tmp_path: Path) -> None:
    cloud, shown = MemoryCloud(throttle=False), set[str]()
    push(cloud, files(POOL))
    for _ in range(30):
        if not cloud.step():
            cloud.clock.advance(30)
        with served(cloud.ports) as url:
            shown.add(live(url, tmp_path, files(POOL), "--exit-code").stdout)
        assert not any("Azure has no such cluster" in text for text in shown)
        if phases(cloud) == {"one": Phase.READY}:
            break
    waits = "Compared with Azure now: 0 of 0 clusters differ, 1 not compared\n\nNot compared:\n  one: "
    assert f"{waits}it is not created yet\n" in shown
    assert f"{waits}Azure is creating it\n" in shown
    assert "Compared with Azure now: 0 of 1 cluster differ\n" in shown


def test_a_cluster_with_the_tags_of_others_is_not_compared(
    url: str, cloud: MemoryCloud, tmp_path: Path
) -> None:
    tag_by_hand(cloud, ONE, **{"roadstead-fleet": "another"})
    done = live(url, tmp_path, files(POOL))
    assert done.returncode == 1
    assert "its tags are not this fleet's" in done.stdout


@pytest.mark.parametrize("phase", [Phase.UPDATING, Phase.FAILED, Phase.SUSPENDED, Phase.READY])
def test_a_difference_of_a_cluster_that_is_not_ready_has_its_phase_and_claims_no_job(
    url: str, cloud: MemoryCloud, tmp_path: Path, phase: Phase
) -> None:
    cloud.azure.interventions.scale(ONE, "apps", 5)
    cloud.state.save(replace(record(cloud), phase=phase))
    text = " ".join(live(url, tmp_path, files(POOL)).stdout.split())
    assert "count: 5" in text
    shown = f"the cluster is {phase}: roadstead why one says more"
    assert (shown in text, "job is at work" in text) == (phase is not Phase.READY, False)


def test_what_has_no_cluster_in_azure_is_named_and_costs_no_call(cloud: MemoryCloud, tmp_path: Path) -> None:
    reads = reads_of(cloud)
    new = {"clusters/two/cluster.yaml": fleet_files.cluster("two")}
    wrong = {"clusters/one/cluster.yaml": b"kind: Cluster\n"}
    with served(cloud.ports) as url:
        done = live(url, tmp_path, files(POOL) | new | wrong)
    assert (done.returncode, reads) == (1, [])
    assert "one: its manifest is invalid" in done.stdout
    assert "two: it is not recorded yet: a push creates or adopts it" in done.stdout


def test_the_audit_says_once_which_clusters_were_compared(tmp_path: Path) -> None:
    with served(ready_fleet("one", "two").ports) as url:
        live(url, tmp_path, fleet_files.fleet("one", "two"))
        lines = roadstead("audit", ROADSTEAD_URL=url).stdout.splitlines()
    assert lines[0].endswith("the key of Admin  compared with Azure: one, two")
    assert [line.strip() for line in lines[1:2]] == ["accepted"]


def test_only_the_named_clusters_are_read(cloud: MemoryCloud, tmp_path: Path) -> None:
    reads = reads_of(cloud)
    with served(cloud.ports) as url:
        done = live(url, tmp_path, files(POOL), "--cluster", "one", "-o", "json")
        unknown = live(url, tmp_path, files(POOL), "--cluster", "nope")
    assert [cluster["name"] for cluster in json.loads(done.stdout)["clusters"]] == ["one"]
    assert len(reads) == 1
    assert (unknown.returncode, unknown.stdout) == (1, "")


def test_live_and_empty_exclude_each_other(url: str, cloud: MemoryCloud, tmp_path: Path) -> None:
    done = live(url, tmp_path, files(POOL), "--empty")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--live compares with Azure, --against with a commit, --empty with nothing" in done.stderr


def test_a_large_fleet_has_to_name_clusters(url: str, cloud: MemoryCloud, tmp_path: Path) -> None:
    names = [f"c{number:03}" for number in range(101)]
    for name in names:
        document = {**record(cloud).document, "name": name}
        cloud.state.save(replace(record(cloud), name=name, document=document, etag=""))
    content = files(POOL) | {f"clusters/{name}/cluster.yaml": fleet_files.cluster(name) for name in names}
    done = live(url, tmp_path, content)
    assert done.returncode == 1
    assert "--live reads at most 100 clusters, one by one, and these are 102" in done.stderr
