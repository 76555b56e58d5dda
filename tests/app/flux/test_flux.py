"""Ready means that Flux has applied the commit: what Flux fetched, what it applied, and whether it runs."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from localcloud.kubernetes.world.controllers import Delays
from localcloud.kubernetes.world.kinds import NAMESPACE
from localcloud.kubernetes.world.object_store import At, WriteMode
from localcloud.kubernetes.world.writes.patches import MERGE
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.recipes import Step
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.kubernetes import flux_objects
from shared.kubernetes.flux_readiness import REQUESTED_AT
from shared.resource_ids import ClusterId, ObjectRef
from tests.support.one_cluster import ENTRA, advice, api, branch_files, files, pool, ready, record, world
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import Around, around

pytestmark = pytest.mark.lives

NOWHERE = """---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: extra
spec:
  replicas: 1
  selector: {matchLabels: {app: extra}}
  template:
    metadata: {labels: {app: extra}}
    spec: {containers: [{name: extra, image: "extra:1"}]}
"""
"""A Deployment without a namespace."""
BROKEN = {"platform/broken.yaml": b"apiVersion: v1\nkind: ConfigMap\n"}


def set_spec(cloud: MemoryCloud, ref: ObjectRef, manager: str = "kubectl", **spec: object) -> None:
    """Change the spec of a Flux object as a person does."""
    kind = world(cloud).kind(ref.api_version, ref.kind)
    assert kind is not None
    at = At(kind, ref.name, ref.namespace)
    world(cloud).patch(at, {"spec": spec}, MERGE, WriteMode(manager=manager))


def applied_revision(cloud: MemoryCloud) -> str:
    live = api(cloud).get(flux_objects.KUSTOMIZATION)
    assert live is not None
    return str(live["status"].get("lastAppliedRevision"))


def flux_follows(branch: str) -> dict[str, bytes]:
    """Return the fleet with another branch for Flux."""
    text = files()["clusters/one/cluster.yaml"].decode()
    place = f"repository: https://github.com/example/fleet, path: ./platform, branch: {branch}"
    flux = f"  flux: {{{place}, follow: branch}}\n"
    return files() | {"clusters/one/cluster.yaml": (text + flux).encode()}


def test_a_commit_whose_manifests_do_not_build_is_not_ready_and_says_what_to_do() -> None:
    cloud = ready(fleet=branch_files)
    commit = push(cloud, branch_files(pool()) | BROKEN)
    cloud.run(seconds=300)
    assert record(cloud).phase is Phase.UPDATING
    assert "Flux: Kustomization flux-system: BuildFailed: " in record(cloud).job.reason
    assert "Correct the manifests below spec.flux.path, and push." in advice(cloud)
    cloud.run(seconds=1200)
    assert record(cloud).phase is Phase.STALLED
    fixed = push(cloud, branch_files(pool()))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert applied_revision(cloud) == f"main@sha1:{fixed}" != f"main@sha1:{commit}"


def test_a_ready_cluster_has_applied_the_commit_of_its_job() -> None:
    cloud = ready(fleet=branch_files)
    commit = push(cloud, branch_files(pool()))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert applied_revision(cloud) == f"main@sha1:{commit}"


def _flux_sees(cloud: MemoryCloud, head: str) -> None:
    """Let every source have this head of the branch for Flux, whatever is pushed."""
    cloud.repository.reset(head, "main-as-flux-sees-it")
    read_source = cloud.kubernetes._extension._read  # type: ignore[attr-defined]
    fleet = "https://github.com/example/fleet"
    cloud.kubernetes._extension._read = (  # type: ignore[attr-defined]
        lambda _url, ref: read_source(fleet, replace(ref, name=f"{ref.name}-as-flux-sees-it"))
    )


@pytest.mark.parametrize(
    ("url", "host", "is_fleet"),
    [
        ("https://github.com/example/fleet", "github.com", True),
        ("https://GitHub.com:443/Example/Fleet.git", "github.com", True),
        ("https://git.example.com:8443/example/fleet", "Git.example.com:8443", True),
        ("https://git.example.com/example/fleet", "github.com", False),
        ("https://github.com.example.com/example/fleet", "github.com", False),
        ("https://github.com:8443/example/fleet", "github.com", False),
        ("https://git.example.com/example/fleet", "git.example.com:8443", False),
    ],
)
def test_only_the_repository_of_that_name_on_the_host_of_the_fleet_counts_as_the_fleet(
    url: str, host: str, is_fleet: bool
) -> None:
    cloud = ready()
    config = replace(cloud.ports.config, git_server=host)
    cloud.with_ports(lambda ports: replace(ports, config=config))
    _flux_sees(cloud, cloud.repository.head("main"))
    commit = push(
        cloud, files(pool() + f"  flux: {{repository: '{url}', path: ./platform, follow: branch}}\n")
    )
    cloud.run(seconds=900)
    waits = f"which does not contain commit {commit[:8]}" in record(cloud).job.reason
    assert (waits, record(cloud).phase is Phase.READY) == (is_fleet, not is_fleet)


def test_a_source_that_is_behind_the_commit_is_not_ready_and_a_newer_one_is() -> None:
    cloud = ready(fleet=branch_files)
    _flux_sees(cloud, cloud.repository.head("main"))
    commit = push(cloud, branch_files(pool()))
    cloud.run(seconds=300)
    assert record(cloud).phase is Phase.UPDATING
    assert f"which does not contain commit {commit[:8]}" in record(cloud).job.reason
    newer = cloud.repository.commit({"platform/more.yaml": b""}, branch="main")
    cloud.repository.reset(newer, "main-as-flux-sees-it")
    cloud.run(until=lambda: record(cloud).phase is Phase.READY)
    assert applied_revision(cloud) == f"main@sha1:{newer}"


@pytest.mark.parametrize("applied", ["of the job", "newer", "older"])
def test_a_source_that_is_ahead_of_what_flux_applies_does_not_keep_a_cluster_from_ready(applied: str) -> None:
    cloud = ready(fleet=branch_files)
    older = cloud.repository.head("main")
    commit = push(cloud, branch_files(pool()))
    cloud.run(until=lambda: record(cloud).commit == commit)
    newer = cloud.repository.commit({"platform/more.yaml": b""}, branch="main")
    newest = cloud.repository.commit({"platform/most.yaml": b""}, branch="main")
    of_kustomization = {"of the job": commit, "newer": newer, "older": older}[applied]
    _shows_revisions(cloud, source=newest, kustomization=of_kustomization)
    cloud.run(seconds=300)
    assert (record(cloud).phase is Phase.READY) == (applied != "older")


def _shows_revisions(cloud: MemoryCloud, *, source: str, kustomization: str) -> None:
    """Let Flux have reconciled every request, with these commits of the source and the Kustomization."""
    connect = cloud.ports.kubernetes.connect
    shown: dict[ObjectRef, Json] = {
        flux_objects.SOURCE: {"artifact": {"revision": f"main@sha1:{source}"}},
        flux_objects.KUSTOMIZATION: {"lastAppliedRevision": f"main@sha1:{kustomization}"},
    }

    def connected(cluster: ClusterId, **how: Any) -> Any:
        inside = connect(cluster, **how)

        def get(ref: ObjectRef) -> Json | None:
            found = inside.get(ref)
            return found if found is None or ref not in shown else _reconciled(found, shown[ref])

        return Around(inside, get=get)

    around(cloud, "kubernetes", connect=connected)


def _reconciled(found: Json, revision: Json) -> Json:
    metadata = found["metadata"]
    condition = {"type": "Ready", "status": "True", "observedGeneration": metadata["generation"]}
    asked = metadata["annotations"][REQUESTED_AT]
    return {**found, "status": {"lastHandledReconcileAt": asked, "conditions": [condition], **revision}}


def test_a_suspended_kustomization_never_counts_as_ready() -> None:
    cloud = ready()
    set_spec(cloud, flux_objects.KUSTOMIZATION, manager="flux", suspend=True)
    push(cloud, files(pool()))
    cloud.run(seconds=3600)
    assert record(cloud).phase is Phase.UPDATING
    assert record(cloud).job.reason == "Flux: Kustomization flux-system: somebody suspended it"
    assert "`flux -n flux-system resume kustomization flux-system` resumes it" in advice(cloud)
    set_spec(cloud, flux_objects.KUSTOMIZATION, manager="flux", suspend=None)
    cloud.run(until=lambda: record(cloud).phase is Phase.READY)


def test_a_suspended_kustomization_is_read_every_five_minutes() -> None:
    cloud = ready()
    set_spec(cloud, flux_objects.KUSTOMIZATION, manager="flux", suspend=True)
    push(cloud, files(pool()))
    cloud.run(seconds=3600)
    before = record(cloud).job.sequence
    cloud.run(seconds=3600)
    assert record(cloud).job.sequence - before == 12


def test_a_branch_that_does_not_exist_is_named_with_what_to_do() -> None:
    cloud = ready()
    push(cloud, flux_follows("nope"))
    cloud.run(seconds=300)
    assert record(cloud).phase is Phase.UPDATING
    assert "GitRepository flux-system: GitOperationFailed: " in record(cloud).job.reason
    assert "Correct spec.flux.branch, or push that branch." in advice(cloud)


def test_of_another_source_than_the_fleet_no_commit_is_asked_for() -> None:
    cloud = ready()
    cloud.repository.commit({"platform/apps.yaml": b""}, branch="stable")
    push(cloud, flux_follows("stable"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert applied_revision(cloud).startswith("stable@sha1:")


def test_a_cluster_is_ready_when_the_deployments_of_flux_have_rolled_out() -> None:
    cloud = MemoryCloud(throttle=False, delays=Delays(rollout=90))
    push(cloud, files())
    cloud.run(until=lambda: "Flux rolls out" in record(cloud).job.reason if phases(cloud) else False)
    assert "Kubernetes has not seen its newest version yet" in record(cloud).job.reason
    assert api(cloud).get(flux_objects.SOURCE) is None
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_an_upgrade_of_flux_to_an_image_that_does_not_exist_is_not_ready_and_names_the_deployment() -> None:
    cloud = ready()
    content = files()["flux/gotk-components.yaml"].decode()
    image = "ghcr.io/fluxcd/kustomize-controller:v99.0.0"
    broken = re.sub(r"ghcr.io/fluxcd/kustomize-controller:\S+", image, content)
    assert broken != content
    world(cloud).missing_images.add(image)
    push(cloud, files() | {"flux/gotk-components.yaml": broken.encode()})
    cloud.run(seconds=500)
    assert record(cloud).phase is Phase.UPDATING
    assert "Flux rolls out: the Deployment kustomize-controller: " in record(cloud).job.reason
    cloud.run(seconds=1200)
    assert record(cloud).phase is Phase.STALLED
    assert "ProgressDeadlineExceeded: ReplicaSet" in record(cloud).job.reason
    assert "kubectl -n flux-system describe pods" in advice(cloud)
    push(cloud, files(pool()))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_a_deployment_of_the_components_without_a_namespace_rolls_out_too() -> None:
    cloud = ready()
    extra = files()["flux/gotk-components.yaml"].decode() + NOWHERE
    world(cloud).missing_images.add("extra:1")
    push(cloud, files() | {"flux/gotk-components.yaml": extra.encode()})
    cloud.run(seconds=300)
    assert record(cloud).phase is Phase.UPDATING
    assert "Flux rolls out: the Deployment extra: " in record(cloud).job.reason
    world(cloud).missing_images.clear()
    world(cloud).tick()
    cloud.run(until=lambda: record(cloud).phase is Phase.READY)


def test_a_deployment_that_fails_after_the_installation_is_not_ready() -> None:
    cloud = ready(ENTRA)  # so that each wait ends its message
    live = api(cloud).get(ObjectRef("apps/v1", "Deployment", "source-controller", "flux-system"))
    assert live is not None
    push(cloud, files(pool() + ENTRA))
    cloud.run(until=lambda: record(cloud).job.step.name is Step.VERIFY)
    world(cloud).missing_images.add(live["spec"]["template"]["spec"]["containers"][0]["image"])
    cloud.run(seconds=300)
    assert record(cloud).phase is Phase.UPDATING
    assert "Flux rolls out: the Deployment source-controller: " in record(cloud).job.reason
    world(cloud).missing_images.clear()
    world(cloud).tick()
    cloud.run(until=lambda: record(cloud).phase is Phase.READY)


@pytest.mark.parametrize("name", ["source-controller", "kustomize-controller"])
def test_a_controller_that_somebody_deletes_after_the_installation_is_installed_again(name: str) -> None:
    cloud = ready(ENTRA)  # so that each wait ends its message
    push(cloud, files(pool() + ENTRA))
    cloud.run(until=lambda: record(cloud).job.step.name is Step.VERIFY)
    controller = ObjectRef("apps/v1", "Deployment", name, "flux-system")
    api(cloud).delete(api(cloud).get(controller) or {})
    cloud.run(seconds=1200)
    assert phases(cloud) == {"one": Phase.READY}
    assert api(cloud).get(controller) is not None
    reasons = [event.message for event in cloud.state.events("one", 30)]
    assert any(f"the Deployment {name} in flux-system no longer exists in the cluster" in r for r in reasons)


def test_a_namespace_that_is_being_deleted_is_waited_for_and_the_advice_finds_what_keeps_it() -> None:
    cloud = ready()
    world(cloud).delete(At(NAMESPACE, "flux-system"))
    push(cloud, files(pool()))
    cloud.run(seconds=600)
    assert record(cloud).phase is Phase.UPDATING
    reason = record(cloud).job.reason
    assert "NamespaceTerminating: " in reason
    assert (
        "the namespace flux-system is being deleted; Some content in the namespace has finalizers" in reason
    )
    assert "finalizers.fluxcd.io in 2 resource instances; Some resources are remaining: " in reason
    assert "Start the controller of the finalizer" in advice(cloud)
    for ref in (flux_objects.KUSTOMIZATION, flux_objects.SOURCE):
        kind = world(cloud).kind(ref.api_version, ref.kind)
        assert kind is not None
        for live in world(cloud).list(kind)[0]:  # their finalizer is that of a controller that went first
            at = At(kind, live["metadata"]["name"], "flux-system")
            world(cloud).patch(at, {"metadata": {"finalizers": []}}, MERGE)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_while_flux_rolls_out_only_its_deployments_are_read() -> None:
    cloud = MemoryCloud(throttle=False, delays=Delays(rollout=90))
    push(cloud, files())
    cloud.run(until=lambda: "Flux rolls out" in record(cloud).job.reason if phases(cloud) else False)
    version = world(cloud).version
    cloud.run(seconds=30)
    assert world(cloud).version == version
    assert "Flux rolls out" in record(cloud).job.reason
