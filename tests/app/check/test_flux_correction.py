"""What Roadstead applied of Flux, changed or removed by somebody: applied again where the policy says so."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_objects import KUSTOMIZATION, NAMESPACE, SOURCE
from shared.resource_ids import ObjectRef
from tests.support.checks import check, condition
from tests.support.one_cluster import ONE, api, branch_files, cluster, files, pool, ready, record, suspended
from tests.support.pipeline_runs import phases, push
from tests.support.sweeps import drifted, sweep, tag_by_hand

pytestmark = pytest.mark.lives

CORRECT = "  drift: {fluxObjects: correct}\n"
CONTROLLER = ObjectRef("apps/v1", "Deployment", "kustomize-controller", NAMESPACE)


def another_path(cloud: MemoryCloud) -> None:
    live = api(cloud).get(KUSTOMIZATION)
    assert live is not None
    api(cloud).replace({**live, "spec": {**live["spec"], "path": "./elsewhere"}})


def suspend(cloud: MemoryCloud, ref: ObjectRef) -> None:
    live = api(cloud).get(ref)
    assert live is not None
    api(cloud).replace({**live, "spec": {**live["spec"], "suspend": True}})


def source_suspended(cloud: MemoryCloud) -> None:
    suspend(cloud, SOURCE)


def kustomization_suspended(cloud: MemoryCloud) -> None:
    suspend(cloud, KUSTOMIZATION)


def is_suspended(cloud: MemoryCloud, ref: ObjectRef) -> bool:
    live = api(cloud).get(ref)
    return live is not None and bool(live["spec"].get("suspend"))


def removed(cloud: MemoryCloud) -> None:
    live = api(cloud).get(CONTROLLER)
    assert live is not None
    api(cloud).delete(live)


def path_of(cloud: MemoryCloud) -> Any:
    live = api(cloud).get(KUSTOMIZATION)
    return live and live["spec"]["path"]


def corrections(cloud: MemoryCloud) -> list[str]:
    return [event.message for event in cloud.state.events("one", 100) if event.reason == "Correcting"]


@pytest.mark.parametrize("change", [another_path, removed, source_suspended, kustomization_suspended])
def test_it_is_applied_again_only_where_the_policy_says_so(change: Any) -> None:
    cloud = ready("  drift: {action: correct, stoppedCluster: start}\n")
    change(cloud)
    check(cloud)
    cloud.run()
    assert (condition(record(cloud)).status, corrections(cloud)) == (False, [])
    cloud = ready(CORRECT)
    change(cloud)
    check(cloud)
    cloud.run()
    check(cloud)
    assert (phases(cloud), condition(record(cloud)).status) == ({"one": Phase.READY}, True)
    assert path_of(cloud) == "./platform"
    assert api(cloud).get(CONTROLLER) is not None
    assert not any(is_suspended(cloud, ref) for ref in (SOURCE, KUSTOMIZATION))
    (said,) = corrections(cloud)
    assert "a job applies again what Roadstead applied of Flux" in said


def test_the_job_leaves_what_its_policy_only_reports_also_what_no_sweep_has_seen() -> None:
    cloud = ready(pool(count=2) + CORRECT)
    tag_by_hand(cloud, ONE, own="x")
    cloud.azure.interventions.scale(ONE, "apps", 5)
    another_path(cloud)
    check(cloud)
    cloud.run()
    assert path_of(cloud) == "./platform"
    assert drifted(record(cloud)) == {"nodePools[apps].count": ("2", "5"), "tags.own": ("", '"x"')}
    sweep(cloud)
    assert drifted(record(cloud)) == {"nodePools[apps].count": ("2", "5"), "tags.own": ("", '"x"')}


def test_a_sweep_applies_nothing_again_that_the_last_job_has_applied() -> None:
    cloud = ready(CORRECT)
    another_path(cloud)
    check(cloud)
    cloud.run()
    tag_by_hand(cloud, ONE, own="x")
    sweep(cloud)
    assert len(corrections(cloud)) == 1


def test_a_job_resumes_what_a_team_suspended_only_where_the_policy_says_so() -> None:
    cloud = ready()
    kustomization_suspended(cloud)
    push(cloud, files("  tags: {owner: ann}\n"))
    cloud.run(seconds=600, until=lambda: False)
    assert is_suspended(cloud, KUSTOMIZATION)
    assert "flux -n flux-system resume" in record(cloud).job.next_run.action_required
    push(cloud, files("  tags: {owner: ann}\n" + CORRECT))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert not is_suspended(cloud, KUSTOMIZATION)


def test_an_object_that_somebody_suspends_while_its_job_waits_for_flux_is_resumed() -> None:
    cloud = ready(CORRECT, fleet=branch_files)
    broken = {"platform/kustomization.yaml": b"resources: [missing.yaml]\n"}
    push(cloud, branch_files("  tags: {owner: ann}\n" + CORRECT) | broken)
    cloud.run(seconds=120, until=lambda: False)
    assert "BuildFailed" in record(cloud).job.reason
    kustomization_suspended(cloud)
    cloud.run(seconds=300, until=lambda: False)
    assert "BuildFailed" in record(cloud).job.reason
    assert not is_suspended(cloud, KUSTOMIZATION)


@pytest.mark.parametrize("change", [another_path, kustomization_suspended])
def test_what_something_changes_back_again_and_again_is_applied_three_times(change: Any) -> None:
    cloud = ready(CORRECT)
    for _ in range(5):
        change(cloud)
        check(cloud)
        cloud.run()
    assert len(corrections(cloud)) == 3
    assert condition(record(cloud)).status is False


def test_it_is_applied_again_after_its_cluster_stopped_being_ready_for_it() -> None:
    cloud = ready()
    another_path(cloud)
    check(cloud)
    cloud.run(seconds=3600, until=lambda: False)
    assert record(cloud).finding == "FluxUnhealthy"
    push(cloud, files(CORRECT))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert path_of(cloud) == "./platform"


def test_nothing_is_applied_in_a_suspension() -> None:
    cloud = ready(CORRECT)
    another_path(cloud)
    push(cloud, files(CORRECT + suspended(cloud, 100)))
    cloud.run(seconds=60, until=lambda: False)
    check(cloud)
    sweep(cloud)
    cloud.run(seconds=3600, until=lambda: False)
    assert (phases(cloud), corrections(cloud)) == ({"one": Phase.SUSPENDED}, [])
    assert path_of(cloud) == "./elsewhere"
    assert cluster(cloud) is not None
