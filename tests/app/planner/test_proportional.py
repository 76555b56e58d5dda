"""The work of a plan follows what changed since the last one, not the size of the fleet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.pull_requests import pull_requests
from shared.app.repository import read_known, read_resolved
from shared.cluster.failures.errors import Unavailable
from shared.cluster.queues.messages import PreviewRequest
from shared.cluster.record_parts import Phase
from shared.json_tree import digest_of
from shared.language.resolve.repository_layout import blob_id
from shared.plan.plan import Action
from tests.support import fleet_files
from tests.support.counted_calls import Calls
from tests.support.pipeline_runs import phases, push, ready, record_of
from tests.support.replaced_ports import around, frozen, overtake, plan_at_once

pytestmark = pytest.mark.lives

NAMES = [f"c{number}" for number in range(40)]


def planned(cloud: MemoryCloud, files: dict[str, bytes]) -> Calls:
    """Plan a commit in a new process, and return its calls to the repository."""
    calls = Calls()
    cloud.with_ports(lambda ports: replace(ports, git_host=cloud.git_host))
    calls.watch(cloud)
    commit = cloud.repository.push(files)
    plan_at_once(cloud, commit)
    assert cloud.state.fleet().commit == commit
    return calls


def resolved_again(cloud: MemoryCloud) -> list[str]:
    """Return the clusters that the next plan of the head would resolve."""
    records = {record.name: record for record in cloud.state.clusters()}
    known = read_known(records, cloud.ports)
    desired = read_resolved(cloud.repository.head("main"), known, cloud.ports).desired
    return [name for name in desired.clusters if name not in desired.unchanged]


def counts(cloud: MemoryCloud) -> dict[str, int]:
    plan_record = cloud.state.plan(cloud.state.fleet().commit)
    assert plan_record is not None
    return dict(plan_record.plan.counts)


def five_changed(count: int = 2) -> dict[str, bytes]:
    files = fleet_files.all_at_once(fleet_files.fleet(*NAMES))
    return files | {f"clusters/{n}/cluster.yaml": fleet_files.cluster(n, count=count) for n in NAMES[:5]}


def test_a_first_plan_of_many_clusters_takes_a_handful_of_calls() -> None:
    cloud = MemoryCloud()
    calls = planned(cloud, fleet_files.fleet(*NAMES))
    files = fleet_files.fleet()
    platform = {blob_id(files[path]) for path in ("platform/namespaces.yaml", "flux/gotk-components.yaml")}
    assert (calls.trees, calls.archives, {*calls.blobs}) == (1, 1, platform)
    assert len(calls.blobs) == len(platform)
    assert counts(cloud) == {Action.CREATE: 40}


def test_a_push_of_five_reads_five_blobs_and_resolves_five() -> None:
    cloud = MemoryCloud()
    planned(cloud, fleet_files.all_at_once(fleet_files.fleet(*NAMES)))
    cloud.repository.push(five_changed())
    assert resolved_again(cloud) == sorted(NAMES[:5])
    calls = planned(cloud, five_changed(count=3))
    assert (calls.trees, calls.archives, len(calls.blobs)) == (1, 0, 5)
    assert counts(cloud) == {Action.UPDATE: 5, Action.UNCHANGED: 35}
    assert resolved_again(cloud) == []


def test_a_shared_file_that_changes_no_cluster_adds_no_cost_to_the_next_push() -> None:
    cloud = MemoryCloud()
    planned(cloud, fleet_files.fleet(*NAMES))
    touched = fleet_files.fleet(*NAMES)
    touched["fleet.yaml"] = touched["fleet.yaml"].replace(b"rg-{name}", b"overridden-{name}")
    assert touched != fleet_files.fleet(*NAMES)
    cloud.repository.push(touched)
    assert len(resolved_again(cloud)) == 40
    planned(cloud, touched)
    assert counts(cloud) == {Action.UNCHANGED: 40}
    calls = planned(cloud, {**touched, **{p: f for p, f in five_changed().items() if "clusters/" in p}})
    assert (calls.archives, len(calls.blobs)) == (0, 5)


def test_a_pull_request_that_changes_one_cluster_reads_one_blob() -> None:
    cloud, calls = MemoryCloud(), Calls()
    planned(cloud, fleet_files.fleet(*NAMES))
    git = cloud.repository
    git.reset(git.head("main"), "topic")
    changed = {"clusters/c7/cluster.yaml": fleet_files.cluster("c7", count=2)}
    git.push(fleet_files.fleet(*NAMES) | changed, branch="topic")
    number = git.pulls.open("One more node", "topic", "main").number
    cloud.with_ports(lambda ports: replace(ports, git_host=cloud.git_host))
    calls.watch(cloud)
    records = cloud.state.clusters()
    pull_requests.handle(PreviewRequest(pull=number), cloud.ports)
    assert (calls.archives, len(calls.blobs)) == (0, 1)
    [comment] = git.pulls.comments(number)
    assert "1 update, 39 unchanged" in comment.body
    assert cloud.state.clusters() == records


def test_lost_fingerprints_cost_one_archive_and_change_nothing() -> None:
    cloud = MemoryCloud()
    planned(cloud, fleet_files.fleet(*NAMES))
    cloud.state.save_fingerprints({})
    records = cloud.state.clusters()
    planned(cloud, fleet_files.fleet(*NAMES) | {"README.md": b"text"})
    assert cloud.state.clusters() == records
    assert resolved_again(cloud) == []


def test_an_invalid_manifest_is_resolved_again_from_the_cache() -> None:
    cloud = MemoryCloud()
    planned(cloud, fleet_files.fleet(*NAMES))
    files = fleet_files.fleet(*NAMES)
    files["clusters/c1/cluster.yaml"] += b"  loaction: eastus\n"
    assert len(planned(cloud, files).blobs) == 1
    again = planned(cloud, files | {"README.md": b"text"})
    assert (again.blobs, again.archives) == ([], 0)
    assert counts(cloud) == {Action.UNCHANGED: 39, Action.INVALID: 1}


def test_a_malformed_archive_changes_nothing_and_is_read_again_later() -> None:
    def broken(*_: object) -> None:
        raise Unavailable("the archive was cut off")

    cloud = MemoryCloud()
    around(cloud, "git_host", archive=broken)
    commit = push(cloud, fleet_files.fleet(*NAMES))
    cloud.step()
    fleet = cloud.state.fleet()
    assert (fleet.commit, fleet.planning) == ("", "")
    assert "the archive was cut off" in str(fleet.problem)
    assert (cloud.state.clusters(), cloud.state.plan(commit)) == ([], None)
    around(cloud, "git_host", archive=cloud.git_host.archive)
    cloud.run(until=lambda: cloud.state.fleet().commit == commit)
    assert len(phases(cloud)) == 40
    assert cloud.state.fleet().problem is None


def test_a_planner_superseded_during_its_reads_plans_again() -> None:
    cloud = ready("one", "two")
    push(cloud, fleet_files.fleet("one"))
    frozen(cloud, "git_host", "tree", lambda: overtake(cloud, fleet_files.fleet("one", "two")))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert cloud.azure.accepted == [w for w in cloud.azure.accepted if w["accepted"] != "delete"]


def older(cloud: MemoryCloud, name: str, **spec: object) -> None:
    """Save a record as an earlier version of Roadstead would have; None removes a field."""
    record = record_of(cloud, name)
    merged = {key: value for key, value in {**record.document["spec"], **spec}.items() if value is not None}
    document = {**record.document, "spec": merged}
    cloud.state.save(replace(record, document=document, digest=digest_of(document)))


def test_a_default_introduced_by_an_upgrade_is_no_change() -> None:
    cloud = ready("one")
    older(cloud, "one", deletionProtection=None)
    writes = list(cloud.azure.accepted)
    planned(cloud, fleet_files.fleet("one") | {"README.md": b"text"})
    assert counts(cloud) == {Action.UNCHANGED: 1}
    assert resolved_again(cloud) == []
    files = fleet_files.fleet("one") | {"clusters/one/cluster.yaml": fleet_files.cluster("one", count=2)}
    planned(cloud, files)
    plan_record = cloud.state.plan(cloud.state.fleet().commit)
    assert plan_record is not None
    assert [change.path for change in plan_record.plan.items[0].changes] == ["spec.nodePools[system].count"]
    assert cloud.azure.accepted == writes


def test_a_cluster_that_the_current_rules_refuse_can_still_be_deleted() -> None:
    cloud = ready("one", "two")
    older(cloud, "two", kubernetesVersion="1.x")
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
