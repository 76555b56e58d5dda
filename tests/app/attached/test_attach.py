"""A cluster that is not in Azure becomes Ready without a call to Azure, and nothing is written twice."""

from __future__ import annotations

from typing import Any

from shared.app.outbox import send_all
from shared.cluster.queues.envelopes import continuation
from shared.cluster.recipes import STEPS, Recipe
from shared.cluster.record_parts import Phase
from shared.cluster.transitions.acceptance import accept_retry
from shared.kubernetes.flux_objects import FACTS
from tests.support.attached_clusters import (
    api,
    attached,
    cloud_with_harbour,
    files,
    owner,
    record,
)
from tests.support.calls_inside import counted
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import around


def test_no_step_and_no_sweep_makes_a_call_to_azure_for_it() -> None:
    cloud = cloud_with_harbour()
    calls: list[Any] = []
    around(cloud, "azure", call=calls.append)
    push(cloud, files())
    cloud.run()
    assert phases(cloud) == {"harbour": Phase.READY}
    assert calls == []


def test_its_job_has_the_steps_in_the_cluster_and_no_other() -> None:
    found = record(attached())
    assert found.job.recipe is Recipe.ATTACH
    steps = {condition.type for condition in found.conditions}
    assert {"AccessReady", "FluxInstalled", "FluxSynced", "SystemsApplied", "Ready"} <= steps
    assert not steps & {"ResourceGroupReady", "ClusterReady", "NodePoolsReady", "IdentityAccessSet", "InSync"}
    assert STEPS[Recipe.ATTACH][0] == "access"


def test_its_facts_have_what_is_known_of_it_and_no_empty_value() -> None:
    cloud = attached()
    facts = (api(cloud).get(FACTS) or {})["data"]
    assert facts == {"cluster_name": "harbour", "cluster_label_site": "quay"}
    assert record(cloud).observation.facts == facts


def test_the_record_knows_its_identity_and_its_nodes() -> None:
    cloud = attached()
    namespaces = {document["metadata"]["name"]: document for document in api(cloud).list("v1", "Namespace")}
    assert record(cloud).ownership.cluster_uid == namespaces["kube-system"]["metadata"]["uid"]
    running = record(cloud).observation.running
    assert running is not None
    assert (running.nodes, running.kubernetes_version) == (3, "")


def test_a_config_map_on_the_cluster_says_whose_it_is() -> None:
    cloud = attached()
    written = owner(cloud)
    assert written["roadstead-fleet"] == "example"
    assert written["roadstead-cluster"] == "harbour"
    assert written["roadstead-life"] == record(cloud).uid


def test_a_second_job_writes_nothing_but_the_request_that_flux_reconciles() -> None:
    cloud = attached()
    with counted(cloud) as calls:
        again = cloud.state.save(accept_retry(record(cloud), now=cloud.clock()))
        send_all(continuation(again, cloud.clock()), cloud.ports)
        cloud.run()
    assert phases(cloud) == {"harbour": Phase.READY}
    assert set(calls.applied) <= {"flux-system"}
    assert calls.written == []


def test_it_lives_beside_aks_clusters_in_one_fleet() -> None:
    cloud = cloud_with_harbour()
    push(cloud, files("one"))
    cloud.run()
    assert phases(cloud) == {"harbour": Phase.READY, "one": Phase.READY}
    assert record(cloud, "one").desired.spec.provider is None
