"""A system on its clusters: what it becomes there, and that a change of it touches nothing else."""

from __future__ import annotations

import pytest

from localcloud.kubernetes.world.object_store import WriteMode
from localcloud.kubernetes.world.refusals import RefusedWrites
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.why import why_view
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_objects import KUSTOMIZATION
from shared.plan.plan import Action
from shared.resource_ids import ObjectRef
from tests.support.pipeline_runs import cloud_with, phases, push, record_of, status
from tests.support.team_systems import GROUP, cluster_id, fleet, item, objects, system, versions

pytestmark = pytest.mark.lives

SHOP = f"""\
  groups: [{{id: {GROUP}, role: edit}}]
  quota: {{cpu: "4", memory: 8Gi, pods: 20}}
  limits: {{defaultRequest: {{cpu: 100m}}}}
"""
BOTH = {"shop": system("shop", "one, two", extra=SHOP), "pay": system("pay", "one")}


def hydrated(systems: dict[str, bytes] | None = None, *names: str) -> MemoryCloud:
    """Return a cloud whose clusters are Ready with their systems."""
    names = names or ("one", "two")
    cloud = cloud_with(fleet(*names, systems=BOTH if systems is None else systems), throttle=False)
    assert phases(cloud) == dict.fromkeys(names, Phase.READY)
    return cloud


def test_a_system_is_on_each_of_its_clusters_with_all_that_confines_it() -> None:
    cloud = hydrated()
    shop = [
        "GitRepository shop/shop",
        "Kustomization shop/shop",
        "LimitRange shop/roadstead",
        "Namespace shop",
        "NetworkPolicy shop/roadstead-isolated",
        "ResourceQuota shop/roadstead",
        "RoleBinding shop/shop-groups-edit",
        "RoleBinding shop/shop-reconciler-admin",
        "ServiceAccount shop/shop",
    ]
    assert objects(cloud, "one", "shop") == objects(cloud, "two", "shop") == shop
    assert [name for name in objects(cloud, "one", "pay") if "Namespace" in name] == ["Namespace pay"]
    assert objects(cloud, "two", "pay") == []
    web = cloud.kubernetes.connect(cluster_id("two")).get(ObjectRef("apps/v1", "Deployment", "web", "shop"))
    assert web is not None, "Flux applied the team's folder, in the team's namespace"


def test_the_objects_name_the_tenant_the_security_level_and_the_groups_by_their_object_ids() -> None:
    api = hydrated().kubernetes.connect(cluster_id("one"))
    namespace = api.get(ObjectRef("v1", "Namespace", "shop", ""))
    binding = api.get(ObjectRef("rbac.authorization.k8s.io/v1", "RoleBinding", "shop-groups-edit", "shop"))
    quota = api.get(ObjectRef("v1", "ResourceQuota", "roadstead", "shop"))
    assert namespace is not None
    assert binding is not None
    assert quota is not None
    labels = namespace["metadata"]["labels"]
    assert labels["toolkit.fluxcd.io/tenant"] == "shop"
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
    assert [(subject["kind"], subject["name"]) for subject in binding["subjects"]] == [("Group", GROUP)]
    assert quota["spec"]["hard"] == {"requests.cpu": "4", "requests.memory": "8Gi", "pods": "20"}


def test_a_change_of_a_system_changes_its_clusters_only_and_no_other_system_on_them() -> None:
    cloud = hydrated(BOTH | {"lab": system("lab", "three")}, "one", "two", "three")
    before = {name: versions(cloud, "one", name) for name in ("shop", "pay")}
    changed = BOTH | {
        "lab": system("lab", "three"),
        "pay": system("pay", "one", extra="  podSecurity: restricted\n"),
    }
    push(cloud, fleet("one", "two", "three", systems=changed))
    cloud.run()
    assert {name: item(cloud, name).action for name in ("one", "two", "three")} == {
        "one": Action.UPDATE,
        "two": Action.UNCHANGED,
        "three": Action.UNCHANGED,
    }
    assert [change.path for change in item(cloud, "one").changes] == ["systems[pay].podSecurity"]
    assert item(cloud, "one").changes[0].source == "systems/pay.yaml:9"
    after = {name: versions(cloud, "one", name) for name in ("shop", "pay")}
    assert after["shop"] == before["shop"]
    assert [ref for ref, version in after["pay"].items() if version != before["pay"][ref]] == [
        "Namespace pay"
    ]


def test_a_second_run_writes_nothing_to_the_cluster() -> None:
    cloud = hydrated()
    before = {name: versions(cloud, "one", name) for name in ("shop", "pay")}
    files = fleet("one", "two", systems=BOTH)
    files["clusters/one/cluster.yaml"] += b"  tags: {a: b}\n"
    push(cloud, files)
    cloud.run()
    assert item(cloud, "one").action is Action.UPDATE
    assert {name: versions(cloud, "one", name) for name in ("shop", "pay")} == before


def test_the_source_is_that_of_the_environment_of_the_cluster() -> None:
    extra = "    environments: {production: {branch: stable, path: ./apps/live}}\n"
    source = "  source:\n    repository: https://github.com/example/fleet\n    path: ./apps/shop\n"
    manifest = system("shop", "one, two").decode().partition("  source:")[0] + source + extra
    files = fleet("one", "two", systems={"shop": manifest.encode()})
    files["clusters/two/cluster.yaml"] += b"  environment: production\n"
    cloud = cloud_with(files, throttle=False)
    found = {}
    for name in ("one", "two"):
        record = record_of(cloud, name)
        found[name] = record.document["systems"][0]["source"]
    assert (found["one"]["branch"], found["one"]["path"]) == ("main", "./apps/shop")
    assert (found["two"]["branch"], found["two"]["path"]) == ("stable", "./apps/live")


def test_a_system_that_fails_is_named_with_its_owner_and_recovers_by_itself() -> None:
    cloud = hydrated({"shop": BOTH["shop"]})
    broken = fleet("one", "two", systems=BOTH) | {"apps/pay/more.yaml": b"kind: [broken"}
    commit = push(cloud, broken)
    cloud.run(seconds=1200)
    assert phases(cloud) == {"one": Phase.STALLED, "two": Phase.READY}
    why = why_view("one", cloud.ports)
    assert why is not None
    assert "the system pay of pay-team@example.com: Kustomization pay/pay: BuildFailed" in why["doing"]
    assert "Ask pay-team@example.com to correct" in why["suggestedAction"]
    assert "the system pay of pay-team@example.com" in status(cloud, commit)[1]
    push(cloud, {path: text for path, text in broken.items() if path != "apps/pay/more.yaml"})
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}


def test_what_the_cluster_refuses_of_a_system_is_not_asked_of_its_team() -> None:
    cloud = hydrated({"shop": BOTH["shop"]})
    world = cloud.kubernetes.world(cluster_id("one"))
    assert world is not None
    world.refused.append(RefusedWrites("webhook-without-endpoints", kind="Deployment", name="web"))
    push(cloud, fleet("one", "two", systems=BOTH))
    cloud.run(seconds=600)
    why = why_view("one", cloud.ports)
    assert why is not None
    assert "the system pay of pay-team@example.com" in why["doing"]
    assert "Start the pods of the service behind the webhook again" in why["suggestedAction"]
    assert "Ask pay-team" not in why["suggestedAction"]


def test_a_namespace_that_somebody_else_created_is_not_given_to_a_system_before_a_person_says_so() -> None:
    cloud = hydrated({}, "one")
    world = cloud.kubernetes.world(cluster_id("one"))
    assert world is not None
    kind = world.kind("v1", "Namespace")
    assert kind is not None
    labels = {"kubernetes.io/metadata.name": "shop"}  # the API server sets it for whoever creates one
    body = {"metadata": {"name": "shop", "labels": labels}}
    world.create(kind, "", body, WriteMode(manager="kubectl-create"))
    push(cloud, fleet("one", systems={"shop": system("shop", "one")}))
    cloud.run(seconds=600)
    record = record_of(cloud, "one")
    assert "has the namespace shop, which exists and which Roadstead did not create" in record.job.reason
    assert objects(cloud, "one") == []
    api = cloud.kubernetes.connect(cluster_id("one"))
    labels = {"toolkit.fluxcd.io/tenant": "shop"}
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}})
    cloud.run(seconds=1200)
    assert phases(cloud) == {"one": Phase.READY}
    assert "Namespace shop" in objects(cloud, "one")


def test_a_namespace_that_roadstead_created_for_a_bootstrap_secret_is_the_systems() -> None:
    cloud = hydrated({}, "one")
    api = cloud.kubernetes.connect(cluster_id("one"))
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    push(cloud, fleet("one", systems={"shop": system("shop", "one")}))
    cloud.run(seconds=1200)
    assert phases(cloud) == {"one": Phase.READY}
    assert "Namespace shop" in objects(cloud, "one")


def test_a_system_on_a_deleted_kustomization_is_applied_again() -> None:
    cloud = hydrated({"shop": system("shop", "one")}, "one")
    api = cloud.kubernetes.connect(cluster_id("one"))
    found = api.get(ObjectRef(KUSTOMIZATION.api_version, "Kustomization", "shop", "shop"))
    assert found is not None
    api.delete(found)
    files = fleet("one", systems={"shop": system("shop", "one")})
    files["clusters/one/cluster.yaml"] += b"  tags: {a: b}\n"
    push(cloud, files)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert "Kustomization shop/shop" in objects(cloud, "one")


def test_the_status_of_a_commit_names_a_system_that_is_not_valid_until_it_is_corrected() -> None:
    cloud = hydrated()
    wrong = BOTH["shop"].replace(b"pods: 20", b'pods: "20"')
    commit = push(cloud, fleet("one", "two", systems=BOTH | {"shop": wrong}))
    cloud.run()
    state, text = status(cloud, commit)
    assert state == "failure"
    assert text.startswith("systems/shop.yaml:10:34 spec.quota.pods: must be an integer")
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    corrected = push(cloud, fleet("one", "two", systems=BOTH))
    cloud.run()
    assert status(cloud, corrected)[0] == "success"
