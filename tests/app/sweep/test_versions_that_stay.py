"""A version below the one that runs: the plan, the commit, `status`, `drift` and `why` say that it stays."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import replay
from shared.app.api.parts import FIRST_PAGE
from shared.app.api.views.clusters import cluster_detail
from shared.app.api.views.drift import drift_view
from shared.app.api.views.why import why_view
from shared.azure.changes.field_effects import Effect
from shared.cluster.findings.conditions import IN_SYNC
from tests.support.one_cluster import ONE, cluster, files, pool, ready, record
from tests.support.pipeline_runs import accepted, push, status
from tests.support.sweeps import delete_by_hand, sweep

OLD, NEW = '  kubernetesVersion: "1.36"\n', '  kubernetesVersion: "1.37"\n'
SENTENCE = "runs 1.37.1, git has 1.36: AKS never goes back"
CHANNELS = ("", "  autoUpgradeProfile: {upgradeChannel: rapid}\n")


def upgrade_by_hand(cloud: MemoryCloud) -> None:
    """Let somebody upgrade the control plane, and then its nodes."""
    live = cluster(cloud)
    cloud.azure.put_cluster(ONE, {**live, "properties": {**live["properties"], "kubernetesVersion": "1.37"}})
    cloud.run(600)


def texts(cloud: MemoryCloud) -> list[str]:
    """Return what `status`, `drift`, `why` and the condition say of the cluster."""
    detail, why = cluster_detail("one", cloud.ports), why_view("one", cloud.ports)
    in_sync = record(cloud).condition(IN_SYNC)
    assert detail is not None
    assert why is not None
    assert in_sync is not None
    assert in_sync.status is False
    notes = (
        field["note"]
        for shown in drift_view(cloud.ports, FIRST_PAGE)["clusters"]
        for field in shown["fields"]
    )
    return [str(detail.get("reason")), why["doing"], "; ".join(notes), in_sync.message]


@pytest.mark.lives
def test_a_version_that_git_lowers_is_shown_everywhere_and_is_never_in_sync() -> None:
    for channel in CHANNELS:
        cloud = ready(f"{pool()}{channel}{NEW}")
        runs = cluster(cloud)["properties"]["currentKubernetesVersion"]
        sentence, before = SENTENCE.replace("1.37.1", runs), accepted(cloud)
        commit = push(cloud, files(f"{pool()}{channel}{OLD}"))
        cloud.run()
        assert accepted(cloud) == before, "nothing is written"
        state, description = status(cloud, commit)
        assert state == "failure"
        assert sentence in description
        for _ in range(2):
            assert [text for text in texts(cloud) if sentence not in text] == []
            sweep(cloud)
        other = push(cloud, files(f"{pool()}{channel}{OLD}  tags: {{cost: a}}\n"))
        cloud.run()
        assert [text for text in texts(cloud) if sentence not in text] == []
        assert status(cloud, other)[0] == "failure"
        assert sentence in status(cloud, other)[1]
        push(cloud, files(f"{pool()}{channel}{NEW}"))
        cloud.run()
        in_sync = record(cloud).condition(IN_SYNC)
        assert in_sync is not None
        assert in_sync.status


def test_an_upgrade_by_hand_is_no_change_once_git_has_it_and_drift_until_then() -> None:
    cloud = ready(f"{pool()}{OLD}")
    upgrade_by_hand(cloud)
    push(cloud, files(f"{pool()}{OLD}  tags: {{cost: a}}\n"))  # before any sweep has seen it
    cloud.run()
    found = {field.path: field.never_back for field in record(cloud).divergence.drift.fields}  # type: ignore[union-attr]
    assert found == {"kubernetesVersion": SENTENCE}
    commit = push(cloud, files(f"{pool()}{NEW}  tags: {{cost: a}}\n"))
    cloud.run()
    plan_record = cloud.state.plan(commit)
    assert plan_record is not None
    (change,) = plan_record.plan.items[0].changes
    behind = {pool.kubernetes[:4] for pool in record(cloud).running.pools.values()} - {"1.37"}
    assert behind == set()
    assert record(cloud).divergence.drift is None
    assert change.effect in (Effect.RUNS_ALREADY, Effect.REIMAGED)


def test_a_cluster_that_is_created_again_at_the_version_of_git_is_in_sync() -> None:
    cloud = ready(f"{pool()}{NEW}")
    commit = push(cloud, files(f"{pool()}{OLD}"))
    cloud.run()
    assert status(cloud, commit)[0] == "failure"
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    replay("one", "someone", cloud.ports)
    cloud.run()
    assert cluster(cloud)["properties"]["kubernetesVersion"] == "1.36"
    assert status(cloud, commit)[0] == "success"
