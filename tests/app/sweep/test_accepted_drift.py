"""What somebody added to a cluster and an Operator accepts counts no more, until Azure has another value."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.azure import read_live
from shared.app.api.acts.cluster import accept_differences
from shared.app.api.schema import DriftView
from shared.app.api.views.drift import drift_of_cluster
from shared.app.http_result import HttpResult
from tests.support.one_cluster import ONE, cluster, files, pool, ready, record
from tests.support.pipeline_runs import push
from tests.support.sweeps import change_pool_by_hand, delete_by_hand, drifted, in_sync, sweep, tag_by_hand

pytestmark = pytest.mark.lives

TAG, TAINTS = "tags.owner", "nodePools[apps].nodeTaints"


@pytest.fixture
def cloud() -> MemoryCloud:
    """A Ready cluster to which somebody added a tag, as a sweep saw."""
    made = ready(pool())
    tag_by_hand(made, ONE, owner="ann")
    sweep(made)
    return made


def view(cloud: MemoryCloud) -> DriftView:
    found = drift_of_cluster("one", cloud.ports)
    assert found is not None
    return found


def shown(cloud: MemoryCloud) -> dict[str, str]:
    """Return what may be accepted, with the values that the API shows."""
    fields = [field for drifted_cluster in view(cloud)["clusters"] for field in drifted_cluster["fields"]]
    return {field["path"]: field["live"] for field in fields if field["acceptable"]}


def accept(cloud: MemoryCloud, fields: dict[str, str] | None = None) -> HttpResult:
    result = accept_differences(
        "one", shown(cloud) if fields is None else fields, "ann", cloud.ports, reason="costs"
    )
    cloud.run()
    return result


def accepted(cloud: MemoryCloud) -> list[tuple[str, str, str, str]]:
    return [(field["path"], field["live"], field["by"], field["reason"]) for field in view(cloud)["accepted"]]


def commit(cloud: MemoryCloud, tags: str) -> None:
    push(cloud, files(pool() + f"  tags: {tags}\n"))
    cloud.run()


def test_what_was_accepted_is_in_sync_and_stays_so_after_sweeps_and_commits_and_shows_who(
    cloud: MemoryCloud,
) -> None:
    answer = accept(cloud)
    assert answer.status == 202
    assert (drifted(record(cloud)), in_sync(record(cloud))[0]) == ({}, True)
    commit(cloud, "{cost: a}")
    sweep(cloud)
    assert (drifted(record(cloud)), in_sync(record(cloud))[0]) == ({}, True)
    assert accepted(cloud) == [(TAG, '"ann"', "ann", "costs")]
    assert cluster(cloud)["tags"]["owner"] == "ann"
    told = {event.reason: event.message for event in cloud.state.events("one", 50)}
    assert told["DriftAccepted"] == f"{TAG} may stay as Azure has it, accepted by ann: costs"


def test_it_ends_when_the_value_changes_also_where_a_commit_comes_before_the_sweep(
    cloud: MemoryCloud,
) -> None:
    accept(cloud)
    tag_by_hand(cloud, ONE, owner="bob")
    commit(cloud, "{cost: a}")
    assert drifted(record(cloud)) == {TAG: ("", '"bob"')}
    assert accepted(cloud) == []
    sweep(cloud)
    commit(cloud, "{cost: b}")
    assert drifted(record(cloud)) == {TAG: ("", '"bob"')}
    tag_by_hand(cloud, ONE, owner="ann")
    sweep(cloud)
    assert drifted(record(cloud)) == {TAG: ("", '"ann"')}, "what has ended does not come back"


def test_it_ends_when_git_has_it_and_when_it_is_gone(cloud: MemoryCloud) -> None:
    accept(cloud)
    commit(cloud, "{owner: ann}")
    assert accepted(cloud) == []
    tag_by_hand(cloud, ONE, other="x")
    sweep(cloud)
    accept(cloud)
    cloud.azure.patch_cluster(
        ONE, {"tags": {key: tag for key, tag in cluster(cloud)["tags"].items() if key != "other"}}
    )
    sweep(cloud)
    assert accepted(cloud) == []
    tag_by_hand(cloud, ONE, other="x")
    sweep(cloud)
    assert [*drifted(record(cloud))] == ["tags.other"]


def test_an_acceptance_that_has_ended_counts_for_no_comparison_of_files_either(cloud: MemoryCloud) -> None:
    accept(cloud)
    known = [read_live(["one"], cloud.ports).body["clusters"][0]["unmanaged"]]
    tag_by_hand(cloud, ONE, owner="bob")
    known += [read_live(["one"], cloud.ports).body["clusters"][0]["unmanaged"]]
    assert known == [[TAG], []]


def test_a_second_taint_beside_an_accepted_one_is_reported_and_labels_and_pools_can_be_accepted() -> None:
    cloud = ready(pool())
    change_pool_by_hand(cloud, ONE, "apps", nodeLabels={"own": "x"}, nodeTaints=["a=b:NoSchedule"])
    extra = {"vmSize": "Standard_D2s_v5", "count": 1, "mode": "User"}
    cloud.azure.put_pool(ONE, "extra", {"properties": extra})
    sweep(cloud)
    assert {*shown(cloud)} == {"nodePools[apps].nodeLabels.own", TAINTS, "nodePools[extra]"}
    accept(cloud)
    assert drifted(record(cloud)) == {}
    change_pool_by_hand(cloud, ONE, "apps", nodeTaints=["a=b:NoSchedule", "c=d:NoSchedule"])
    sweep(cloud)
    assert [*drifted(record(cloud))] == [TAINTS]
    accept(cloud)
    assert drifted(record(cloud)) == {}
    cloud.azure.interventions.scale(ONE, "extra", 2)
    sweep(cloud)
    assert [*drifted(record(cloud))] == ["nodePools[extra]"]


def test_another_cluster_in_its_place_has_nothing_accepted() -> None:
    cloud = ready("  drift: {missingCluster: recreate}\n")
    tag_by_hand(cloud, ONE, owner="ann")
    sweep(cloud)
    accept(cloud)
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    cloud.run()
    assert accepted(cloud) == []
    tag_by_hand(cloud, ONE, owner="ann")
    sweep(cloud)
    assert [*drifted(record(cloud))] == [TAG]


def test_the_same_acceptance_twice_is_one_and_what_was_not_shown_is_refused(cloud: MemoryCloud) -> None:
    fields = shown(cloud)
    assert [accept(cloud, fields).status for _ in range(2)] == [202, 202]
    assert len(accepted(cloud)) == 1
    for other in ({TAG: '"bob"'}, {"tags.none": '"x"'}, {**fields, "tags.none": '"x"'}):
        assert "is not what was shown" in accept(cloud, other).body["error"]
    assert accept_differences("other", fields, "ann", cloud.ports).status == 404


def test_what_git_has_with_another_value_and_a_raised_version_are_not_accepted() -> None:
    cloud = ready(pool(count=2))
    cloud.azure.interventions.scale(ONE, "apps", 5)
    sweep(cloud)
    answer = accept(cloud, {"nodePools[apps].count": "5"})
    assert answer.status == 409
    assert "is not what somebody added" in answer.body["error"]
    assert shown(cloud) == {}


def test_nothing_is_accepted_while_a_job_works(cloud: MemoryCloud) -> None:
    fields = shown(cloud)
    push(cloud, files(pool() + "  tags: {cost: a}\n"))
    cloud.run(until=lambda: record(cloud).job.active)
    answer = accept_differences("one", fields, "ann", cloud.ports)
    assert answer.status == 409
    assert "while its job has not ended" in answer.body["error"]
