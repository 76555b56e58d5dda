"""A cluster with several Kustomizations: in order, with facts, removed with their entry."""

from __future__ import annotations

import pytest

from localcloud.kubernetes.world.object_store import At, WriteMode
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_objects import FACTS
from shared.resource_ids import ObjectRef
from tests.support.one_cluster import advice, api, branch_files, ready, record, world
from tests.support.pipeline_runs import phases, push

pytestmark = pytest.mark.lives

KUSTOMIZE = "kustomize.toolkit.fluxcd.io/v1"
APPS = """\
  flux:
    kustomizations:
      - {name: base, path: ./base}
      - name: apps
        path: ./apps
        dependsOn: [{name: base}]
        postBuild:
          substituteFrom: [{kind: ConfigMap, name: cluster-facts}]
"""
BASE = {"base/base.yaml": b"{apiVersion: v1, kind: Namespace, metadata: {name: base}}"}
MAP = b"""\
apiVersion: v1
kind: ConfigMap
metadata: {name: where, namespace: base}
data: {cluster: "${cluster_name}", region: "${cluster_location}"}
"""
WHERE = ObjectRef("v1", "ConfigMap", "where", "base")
CHILD = b"""\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: child, namespace: flux-system}
spec:
  interval: 1m
  path: ./missing
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
"""


def layered(apps: bytes = MAP) -> dict[str, bytes]:
    return branch_files(APPS) | BASE | {"apps/apps.yaml": apps}


def hydrated() -> MemoryCloud:
    cloud = ready(fleet=branch_files)
    push(cloud, layered())
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    return cloud


def kustomization(name: str) -> ObjectRef:
    return ObjectRef(KUSTOMIZE, "Kustomization", name, "flux-system")


def test_each_kustomization_is_applied_after_those_it_depends_on_with_the_facts_of_the_cluster() -> None:
    cloud = hydrated()
    found = api(cloud).get(WHERE)
    assert found is not None
    assert found["data"] == {"cluster": "one", "region": record(cloud).desired.spec.location}


def test_the_facts_are_in_the_cluster_and_in_the_record() -> None:
    cloud = ready(fleet=branch_files)
    facts = api(cloud).get(FACTS)
    assert facts is not None
    assert facts["data"] == record(cloud).observation.facts
    assert facts["data"]["cluster_fqdn"]


def test_a_removed_entry_removes_its_kustomization_and_what_it_applied_and_nothing_else() -> None:
    cloud = hydrated()
    push(cloud, layered() | branch_files())
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert api(cloud).get(kustomization("apps")) is None
    assert api(cloud).get(kustomization("base")) is None
    assert api(cloud).get(kustomization("flux-system")) is not None
    cloud.run(seconds=120)
    assert api(cloud).get(WHERE) is None


def test_a_kustomization_of_somebody_else_stays() -> None:
    cloud = hydrated()
    theirs = {
        "apiVersion": KUSTOMIZE,
        "kind": "Kustomization",
        "metadata": {"name": "theirs", "namespace": "flux-system"},
        "spec": {
            "interval": "1m",
            "path": "./base",
            "prune": False,
            "sourceRef": {"kind": "GitRepository", "name": "flux-system"},
        },
    }
    kind = world(cloud).kind(KUSTOMIZE, "Kustomization")
    assert kind is not None
    world(cloud).apply(At(kind, "theirs", "flux-system"), theirs, WriteMode(manager="kubectl", force=True))
    push(cloud, layered() | branch_files())
    cloud.run()
    assert api(cloud).get(kustomization("theirs")) is not None


def test_the_cluster_waits_for_the_kustomization_that_failed_and_not_for_what_depends_on_it() -> None:
    cloud = ready(fleet=branch_files)
    push(cloud, layered() | {"base/broken.yaml": b"apiVersion: v1\nkind: ConfigMap\n"})
    cloud.run(seconds=300)
    assert record(cloud).phase is Phase.UPDATING
    assert record(cloud).job.reason.startswith("Flux: Kustomization base: BuildFailed: ")
    broke = f"{cloud.repository.head('main')[:8]} by operator@example.invalid"
    assert f"; ./base was changed last by {broke}) (1 more object" in record(cloud).job.reason
    assert "(1 more object of Flux waits)" in record(cloud).job.reason
    assert "below spec.flux.kustomizations[base].path, and push." in advice(cloud)
    push(cloud, layered())
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_the_wait_names_the_commit_and_the_author_that_broke_what_was_applied() -> None:
    cloud = hydrated()
    before = cloud.repository.head("main")
    whole = layered(MAP) | {"clusters/one/cluster.yaml": changed_cluster()}
    cloud.repository.commit({"apps/apps.yaml": b"apiVersion: v1"}, author="ann@example.com")
    broke = cloud.repository.head("main")
    tried = push(cloud, whole | {"apps/apps.yaml": b"apiVersion: v1"})
    cloud.run(seconds=300)
    named = f"{broke[:8]} by ann@example.com has changed ./apps)"
    text = f"(Flux tried commit {tried[:8]} and applied {before[:8]} last; since then {named}"
    assert text in record(cloud).job.reason


def changed_cluster() -> bytes:
    """Return the cluster of ``layered`` with a tag, so that a commit changes it."""
    return layered()["clusters/one/cluster.yaml"] + b"  tags: {round: two}\n"


def test_the_cluster_waits_for_what_a_kustomization_applied_of_flux() -> None:
    cloud = ready(fleet=branch_files)
    push(cloud, layered(CHILD))
    cloud.run(seconds=300)
    assert record(cloud).phase is Phase.UPDATING
    assert record(cloud).job.reason.startswith("Flux: Kustomization child: ArtifactFailed: ")
    assert "in the repository that has it" in advice(cloud)
    push(cloud, layered(CHILD.replace(b"./missing", b"./base")))
    cloud.run(seconds=900)
    assert phases(cloud) == {"one": Phase.READY}


def test_a_source_whose_kind_the_components_lack_is_refused_with_the_file_to_write() -> None:
    cloud = ready(fleet=branch_files)
    source = (
        "  flux:\n    sources:\n      - {name: c, kind: OCIRepository, url: 'oci://example.azurecr.io/c'}\n"
    )
    push(cloud, branch_files(source))
    cloud.run()
    assert record(cloud).phase is Phase.FAILED
    message = record(cloud).job.reason
    assert "spec.flux.sources needs OCIRepository, which flux/gotk-components.yaml does not define" in message
