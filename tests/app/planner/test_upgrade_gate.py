"""A stage that waits until nothing is known that blocks the upgrades of its clusters."""

from __future__ import annotations

from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.rollouts import rollout_view
from shared.app.api.views.why import why_view
from shared.app.planner.gate_checks import MOST_PLANNED, readings_before, ready_for_upgrades
from shared.cluster.queues.messages import ReadinessMessage
from shared.cluster.recipes import Recipe, Step
from shared.cluster.record_parts import Phase
from shared.frozen import replace
from shared.plan.differences import FieldChange
from shared.plan.plan import Action, Item, Plan
from shared.ports import KubernetesApi
from shared.ports.state.clusters import CLUSTERS
from shared.rollouts.rollout import CheckState, RolloutState
from simulation.newer_forms import NewerTable
from tests.support.calls_inside import counted
from tests.support.pipeline_runs import push, record_of
from tests.support.staged_fleets import DEV, PROD, act, changed, ready_fleet, rollout_of, staged, tags
from tests.support.sweeps import sweep
from tests.support.workloads import pod

pytestmark = pytest.mark.lives

ROLLOUT = """\
  rollout:
    stages:
      - {name: first, select: {environments: [development]}, groups: [{maxConcurrency: "100%"}]}
      - name: second
        groups: [{maxConcurrency: "100%"}]
        gate: {owner: platform, reason: upgrades are prepared, upgradeReadiness: true}
"""
UPGRADE = tags("one") + '  kubernetesVersion: "1.37"\n'


def api(cloud: MemoryCloud, name: str) -> KubernetesApi:
    record = record_of(cloud, name)
    return cloud.kubernetes.connect(record.desired.id)


def bare_pod(cloud: MemoryCloud, name: str) -> None:
    node = api(cloud, name).list("v1", "Node")[0]["metadata"]["name"]
    api(cloud, name).apply(pod("debug", node))


def waits(cloud: MemoryCloud, name: str = "b1") -> str:
    why = why_view(name, cloud.ports)
    assert why is not None
    return f"{why['rollout']['waits']}; {why['suggestedAction']}" if why["rollout"] else ""


def upgraded(cloud: MemoryCloud, seconds: float) -> set[str]:
    cloud.run(seconds=seconds, until=lambda: False)
    return changed(cloud, "one")


@pytest.fixture
def cloud() -> MemoryCloud:
    return ready_fleet(ROLLOUT)


def test_a_stage_begins_once_its_clusters_were_read_and_nothing_blocks_them(cloud: MemoryCloud) -> None:
    commit = push(cloud, staged(ROLLOUT, UPGRADE))
    assert upgraded(cloud, 3600) == {*DEV, *PROD}
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED


def test_a_rollout_of_versions_that_is_planned_has_its_clusters_read_before_their_stages(
    cloud: MemoryCloud,
) -> None:
    bare_pod(cloud, "b2")
    push(cloud, staged(ROLLOUT.partition("        gate:")[0], UPGRADE))
    cloud.run(seconds=60, until=lambda: changed(cloud, "one") == {*DEV})
    assert {name for name in (*DEV, *PROD) if cloud.state.readiness_of(name).seen} >= {*PROD}
    why = why_view("b2", cloud.ports)
    assert why is not None
    assert why["readiness"] is not None
    assert why["readiness"]["state"] == "blocked"


def test_a_blocked_cluster_holds_its_stage_with_the_reason_and_who_acts(cloud: MemoryCloud) -> None:
    bare_pod(cloud, "b2")
    commit = push(cloud, staged(ROLLOUT, UPGRADE))
    assert upgraded(cloud, 3600) == {*DEV}
    said = waits(cloud)
    assert (
        "waits for checks of stage second: readiness for upgrades of b2: Pod default/debug has no "
        "controller: nothing creates it again (owner of the workload) (platform: upgrades are prepared)"
    ) in said
    why = why_view("b2", cloud.ports)
    assert why is not None
    assert why["readiness"] is not None
    assert (why["readiness"]["to"], why["readiness"]["state"]) == ("1.37", "blocked")
    assert "`roadstead ready` says what blocks the upgrades, and who can act" in said
    view = rollout_view(commit, cloud.ports)
    assert view is not None
    assert view["state"] == "Waiting for a check"
    (found,) = [found for found in api(cloud, "b2").list("v1", "Pod") if found["metadata"]["name"] == "debug"]
    api(cloud, "b2").delete(found)
    assert upgraded(cloud, 3600) == {*DEV, *PROD}


@pytest.mark.parametrize("minutes", [300, 315, 330])
def test_a_stage_begins_whenever_what_blocked_it_for_hours_is_gone(cloud: MemoryCloud, minutes: int) -> None:
    bare_pod(cloud, "b2")
    push(cloud, staged(ROLLOUT, UPGRADE))
    assert upgraded(cloud, minutes * 60) == {*DEV}
    (found,) = [found for found in api(cloud, "b2").list("v1", "Pod") if found["metadata"]["name"] == "debug"]
    api(cloud, "b2").delete(found)
    assert upgraded(cloud, 3600) == {*DEV, *PROD}


def test_a_cluster_that_cannot_be_read_holds_its_stage(cloud: MemoryCloud) -> None:
    record = record_of(cloud, "b3")
    cloud.kubernetes.set_power(record.desired.id, on=False)
    push(cloud, staged(ROLLOUT, UPGRADE))
    assert upgraded(cloud, 1800) == {*DEV}
    assert "readiness for upgrades of b3: the cluster could not be read" in waits(cloud)
    cloud.kubernetes.set_power(record.desired.id, on=True)
    assert upgraded(cloud, 3600) == {*DEV, *PROD}


def test_a_cluster_that_somebody_stopped_holds_no_stage_and_catches_up_once_it_is_started(
    cloud: MemoryCloud,
) -> None:
    cluster = record_of(cloud, "b3").desired.id
    cloud.azure.interventions.stop(cluster)
    sweep(cloud)
    push(cloud, staged(ROLLOUT, UPGRADE))
    assert upgraded(cloud, 3600) == {*DEV, *PROD} - {"b3"}
    assert "is set aside" in waits(cloud, "b3")
    cloud.azure.interventions.start(cluster)
    sweep(cloud)
    assert upgraded(cloud, 3600) == {*DEV, *PROD}


@pytest.mark.parametrize(("hours", "opens"), [(10, False), (80, True)])
def test_a_cluster_that_its_change_wakes_is_waited_for_until_the_morning_and_not_for_days(
    cloud: MemoryCloud, hours: int, opens: bool
) -> None:
    record = record_of(cloud, "b3")
    cloud.kubernetes.set_power(record.desired.id, on=False)
    commit = push(cloud, staged(ROLLOUT, UPGRADE))
    assert upgraded(cloud, 1800) == {*DEV}
    rollout, record = rollout_of(cloud, commit), record_of(cloud, "b3")
    woken = replace(record.job.next_run, at=cloud.clock() + timedelta(hours=hours))
    step = replace(record.job.step, name=Step.SLEEP)
    job = replace(record.job, active=True, recipe=Recipe.SLEEP, step=step, next_run=woken)
    document = {**record.document, "spec": {**record.document["spec"], "sleep": {"changes": "wake"}}}
    cloud.state.save(replace(record, document=document, phase=Phase.SLEEPING, job=job))
    (said,) = rollout.checked
    assert said.state is CheckState.UNKNOWN
    found = ready_for_upgrades(rollout, 1, said, cloud.ports)
    assert (found.state is CheckState.PASSED) is opens


def test_a_stage_whose_clusters_are_all_stopped_passes_no_check_by_that(cloud: MemoryCloud) -> None:
    clusters = [record_of(cloud, name).desired.id for name in PROD]
    for cluster in clusters:
        cloud.azure.interventions.stop(cluster)
    sweep(cloud)
    commit = push(cloud, staged(ROLLOUT, UPGRADE))
    assert upgraded(cloud, 3600) == {*DEV}
    assert rollout_of(cloud, commit).checked == ()
    for cluster in clusters:
        cloud.azure.interventions.start(cluster)
    cloud.azure.complete_due()
    bare_pod(cloud, "b2")
    sweep(cloud)
    assert upgraded(cloud, 3600) == {*DEV}
    assert "readiness for upgrades of b2: Pod default/debug has no controller" in waits(cloud)


def test_a_cluster_whose_record_cannot_be_read_holds_its_stage_until_somebody_takes_it_out(
    cloud: MemoryCloud,
) -> None:
    commit = push(cloud, staged(ROLLOUT, UPGRADE))
    cloud.run(seconds=60, until=lambda: changed(cloud, "one") == {*DEV})
    table = cloud.state.tables[CLUSTERS]
    lost = next(entity for entity in table.query("", until="~") if entity["RowKey"] == "b3")
    NewerTable(table).put(lost.place[0], {"b3": lost.properties})
    assert upgraded(cloud, 3600) == {*DEV}
    assert "readiness for upgrades of b3: the record b3 in the partition " in waits(cloud)
    act(cloud, commit, "skip", "b3")
    assert upgraded(cloud, 3600) == {*DEV, *PROD} - {"b3"}


def test_an_override_and_a_cluster_that_is_taken_out_open_the_stage(cloud: MemoryCloud) -> None:
    bare_pod(cloud, "b2")
    commit = push(cloud, staged(ROLLOUT, UPGRADE))
    assert upgraded(cloud, 1800) == {*DEV}
    act(cloud, commit, "skip", "b2")
    assert upgraded(cloud, 3600) == {*DEV, *PROD} - {"b2"}


def test_a_commit_that_changes_no_version_does_not_wait_and_reads_nothing(cloud: MemoryCloud) -> None:
    bare_pod(cloud, "b2")
    push(cloud, staged(ROLLOUT, tags("one")))
    with counted(cloud) as calls:
        assert upgraded(cloud, 3600) == {*DEV, *PROD}
    assert (calls.paged, calls.measured) == ([], [])


def test_an_old_reading_opens_no_gate(cloud: MemoryCloud) -> None:
    push(cloud, staged(ROLLOUT, UPGRADE))
    cloud.run(seconds=60, until=lambda: changed(cloud, "one") == {*DEV})
    for name in PROD:
        record, known = cloud.state.cluster(name), cloud.state.readiness_of(name)
        assert record is not None
        if known.seen:
            old = replace(known.seen, at=known.seen.at.replace(year=2000))
            cloud.state.save_readiness(replace(known, seen=old))
    assert upgraded(cloud, 3600) == {*DEV, *PROD}
    assert all(cloud.state.readiness_of(name).seen for name in PROD)


def test_of_very_many_upgrades_that_wait_the_first_are_read_when_they_are_planned() -> None:
    change = FieldChange("spec.kubernetesVersion", '"1.36"', '"1.37"')
    names = [f"c{number:04}" for number in range(MOST_PLANNED + 9)]
    items = tuple(Item(name, Action.UPDATE, changes=(change,)) for name in names)
    sent = readings_before(Plan("c" * 40, items), frozenset(names[1:]), "c" * 40)
    read = [envelope.message for envelope in sent]
    assert read == [ReadinessMessage(reading=f"plan:{'c' * 12}", cluster=name) for name in names[1:501]]
