"""What Roadstead applied to a cluster stays as it was applied, whoever changes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localcloud.kubernetes.world.object_store import At, WriteMode
from localcloud.kubernetes.world.writes.patches import MERGE
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.kubernetes.flux_objects import KUSTOMIZATION, SOURCE, GitCredentials
from shared.resource_ids import ObjectRef
from tests.support.one_cluster import files, live, pool, world
from tests.support.pipeline_runs import cloud_with, phases, push

pytestmark = pytest.mark.lives

SECRET = ObjectRef("v1", "Secret", "flux-system", "flux-system")
CONTROLLER = ObjectRef("apps/v1", "Deployment", "source-controller", "flux-system")


@pytest.fixture
def cloud() -> MemoryCloud:
    """Return a cloud in which the cluster is Ready, with git credentials."""
    cloud = MemoryCloud(throttle=False)
    credentials = GitCredentials("git", "a-token")
    config = replace(cloud.ports.config, git_credentials=credentials)
    cloud.with_ports(lambda ports: replace(ports, config=config))
    push(cloud, files())
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    return cloud


def test_a_source_on_another_port_gets_no_credentials_and_the_event_says_so(cloud: MemoryCloud) -> None:
    elsewhere = "https://github.com:8443/example/fleet"
    push(cloud, files(f"  flux: {{repository: '{elsewhere}', path: ./platform}}\n"))
    cloud.run(1800)
    events = [event.message for event in cloud.state.events("one", limit=500)]
    without = f"{elsewhere} is read without credentials: FLUX_GIT_HOST is github.com"
    assert any(message.endswith(without) for message in events)
    assert "secretRef" not in live(cloud, SOURCE)["spec"]


def patched(cloud: MemoryCloud, ref: ObjectRef, patch: Json, manager: str = "kubectl-edit") -> None:
    """Change an object as a person does."""
    kind = world(cloud).kind(ref.api_version, ref.kind)
    assert kind is not None
    before = live(cloud, ref)
    world(cloud).patch(At(kind, ref.name, ref.namespace), patch, MERGE, WriteMode(manager=manager))
    assert live(cloud, ref) != before


def next_job(cloud: MemoryCloud) -> str:
    """Let a job run that changes nothing of Flux; return what its events say."""
    seen = len(cloud.state.events("one", limit=500))
    push(cloud, files(pool()))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    events = cloud.state.events("one", limit=500)
    return "\n".join(event.message for event in events[: len(events) - seen])


@pytest.mark.parametrize(
    ("ref", "patch", "field"),
    [
        (SOURCE, {"spec": {"ref": {"branch": "main2"}}}, "spec.ref.branch"),
        (KUSTOMIZATION, {"spec": {"path": "./elsewhere"}}, "spec.path"),
        (KUSTOMIZATION, {"spec": {"prune": False}}, "spec.prune"),
        (SECRET, {"data": {"password": "b3RoZXI="}}, "data.password"),
        (CONTROLLER, {"spec": {"replicas": 0}}, "spec.replicas"),
    ],
)
def test_a_field_of_ours_that_somebody_changed_is_set_back_and_the_event_names_them(
    cloud: MemoryCloud, ref: ObjectRef, patch: Json, field: str
) -> None:
    top = next(iter(patch))
    before = live(cloud, ref)[top]
    patched(cloud, ref, patch)
    said = next_job(cloud)
    assert live(cloud, ref)[top] == before
    assert f"{ref}: {field} of kubectl-edit" in said


@pytest.mark.parametrize(
    ("ref", "patch"),
    [
        (SOURCE, {"spec": {"ref": {"tag": "v1"}}}),
        (SOURCE, {"spec": {"ref": {"semver": ">=1.0.0"}, "recurseSubmodules": True}}),
        (KUSTOMIZATION, {"spec": {"targetNamespace": "team"}}),
        (SECRET, {"data": {"identity": "a2V5"}}),
    ],
)
@pytest.mark.parametrize("manager", ["kubectl-edit", "flux"])
def test_a_field_that_a_former_manager_set_beside_ours_is_taken_away(
    cloud: MemoryCloud, ref: ObjectRef, patch: Json, manager: str
) -> None:
    top = next(iter(patch))
    before = live(cloud, ref)[top]
    patched(cloud, ref, patch, manager)
    next_job(cloud)
    assert live(cloud, ref)[top] == before


def test_an_old_secret_reference_is_taken_away_when_the_source_needs_no_credentials() -> None:
    cloud = cloud_with(files(), throttle=False)
    patched(cloud, SOURCE, {"spec": {"secretRef": {"name": "old"}}}, "flux")
    next_job(cloud)
    assert "secretRef" not in live(cloud, SOURCE)["spec"]


def test_the_fields_of_somebody_who_installed_flux_by_hand_go_with_the_first_job(cloud: MemoryCloud) -> None:
    kind = world(cloud).kind(CONTROLLER.api_version, CONTROLLER.kind)
    assert kind is not None
    at = At(kind, CONTROLLER.name, CONTROLLER.namespace)
    own: dict[str, Any] = {"spec": {"minReadySeconds": 5}}
    world(cloud).apply(at, own, WriteMode(manager="flux"))
    next_job(cloud)
    assert "minReadySeconds" not in live(cloud, CONTROLLER)["spec"]


def test_what_others_add_to_a_component_stays(cloud: MemoryCloud) -> None:
    patched(cloud, CONTROLLER, {"metadata": {"labels": {"team": "platform"}}})
    patched(cloud, CONTROLLER, {"spec": {"minReadySeconds": 5}}, "a-policy")
    next_job(cloud)
    assert live(cloud, CONTROLLER)["metadata"]["labels"]["team"] == "platform"
    assert live(cloud, CONTROLLER)["spec"]["minReadySeconds"] == 5


def test_the_password_of_a_changed_secret_is_in_no_event(cloud: MemoryCloud) -> None:
    patched(cloud, SECRET, {"data": {"password": "b3RoZXI="}})
    said = next_job(cloud)
    assert "a-token" not in said
    assert "b3RoZXI=" not in said
