"""A cluster outside Azure that is not empty: whose Flux runs there is decided before anything is written."""

from __future__ import annotations

from typing import Any

from localcloud.kubernetes.world.kubernetes_clusters import outside
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_objects import FACTS, KUSTOMIZATION, ref_of
from shared.kubernetes.sync_objects import facts_object
from tests.support.attached_clusters import SECRET, api, attached, cloud_with_harbour, files, owner, record
from tests.support.calls_inside import counted
from tests.support.fleet_files import fleet
from tests.support.pipeline_runs import phases, push


def released_with_another_path(path: str) -> MemoryCloud:
    """Return a cloud whose cluster has the Flux of an earlier fleet, which follows another path."""
    cloud = attached()
    push(cloud, fleet())
    cloud.run()
    live: Any = api(cloud).get(KUSTOMIZATION)
    api(cloud).replace({**live, "spec": {**live["spec"], "path": path}})
    return cloud


def test_flux_that_follows_another_path_is_not_turned_to_ours_because_it_would_prune() -> None:
    cloud = released_with_another_path("./teams/shop")
    push(cloud, files())
    with counted(cloud) as calls:
        cloud.run(seconds=900)
    reason = record(cloud).job.reason
    assert "Flux on the cluster harbour follows something else" in reason
    assert "Flux Kustomization flux-system: spec.path" in reason
    assert (calls.applied, calls.written) == ([], [])
    assert owner(cloud) == {}
    assert record(cloud).needs_action


def test_the_job_continues_once_flux_there_follows_what_git_has() -> None:
    cloud = released_with_another_path("./teams/shop")
    push(cloud, files())
    cloud.run(seconds=900)
    live: Any = api(cloud).get(KUSTOMIZATION)
    api(cloud).replace({**live, "spec": {**live["spec"], "path": "./platform"}})
    cloud.run(seconds=1200)
    assert phases(cloud) == {"harbour": Phase.READY}


def test_a_cluster_that_a_fleet_manages_in_azure_is_not_attached_as_well() -> None:
    cloud = cloud_with_harbour()
    inside = cloud.kubernetes.connect(outside("harbour"))
    inside.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": FACTS.namespace}})
    facts = facts_object({"cluster_name": "one", "cluster_resource_id": "/subscriptions/s/one"})
    assert ref_of(facts) == FACTS
    inside.apply(facts)
    push(cloud, files())
    cloud.run()
    assert phases(cloud) == {"harbour": Phase.FAILED}
    assert "a fleet manages this cluster in Azure, as /subscriptions/s/one" in record(cloud).job.reason


def test_a_kubeconfig_that_is_refused_says_why_and_shows_nothing_of_it() -> None:
    cloud = cloud_with_harbour()
    text = cloud.vault.get(SECRET).value
    cloud.vault.set(SECRET, text.replace('"token":', '"exec": {"command": "sh"}, "token":'))
    push(cloud, files())
    cloud.run(seconds=300)
    reason = record(cloud).job.reason
    assert "InvalidKubeconfig: the secret kube-harbour of the vault" in reason
    assert "its user asks for a program that fetches a token (exec), which is never run" in reason
    assert "a-token-of-harbour" not in reason
    cloud.vault.set(SECRET, text)
    cloud.run(seconds=1200)
    assert phases(cloud) == {"harbour": Phase.READY}
