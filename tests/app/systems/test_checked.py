"""Objects of a system that somebody changed or deleted: a check finds them, a policy applies them again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.tree import tree_view
from shared.app.api.views.versions import systems_view
from shared.app.api.views.why import why_view
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_objects import KUSTOMIZATION
from shared.resource_ids import ObjectRef
from tests.support.checks import check, condition
from tests.support.one_cluster import record
from tests.support.pipeline_runs import phases, push, status
from tests.support.sweeps import sweep
from tests.support.team_systems import GROUP, cluster_id, fleet, hydrated, objects, system

pytestmark = pytest.mark.lives

SHOP = f"""\
  groups: [{{id: {GROUP}, role: edit}}]
  quota: {{cpu: "4", memory: 8Gi, pods: 20}}
  limits: {{defaultRequest: {{cpu: 100m}}}}
"""
CORRECT = "  drift: {fluxObjects: correct}\n"
QUOTA = ObjectRef("v1", "ResourceQuota", "roadstead", "shop")
BINDING = ObjectRef("rbac.authorization.k8s.io/v1", "RoleBinding", "shop-groups-edit", "shop")
POLICY = ObjectRef("networking.k8s.io/v1", "NetworkPolicy", "roadstead-isolated", "shop")


def delete(cloud: MemoryCloud, ref: ObjectRef) -> None:
    api = cloud.kubernetes.connect(cluster_id("one"))
    live = api.get(ref)
    assert live is not None
    api.delete(live)


def widen(cloud: MemoryCloud, _: ObjectRef) -> None:
    api = cloud.kubernetes.connect(cluster_id("one"))
    live = api.get(QUOTA)
    assert live is not None
    api.replace({**live, "spec": {"hard": {**live["spec"]["hard"], "pods": "1000"}}})


def test_a_system_that_fails_later_is_named_first_where_a_check_finds_it_and_recovers_by_itself() -> None:
    cloud = hydrated(SHOP)
    files = fleet("one", systems={"shop": system("shop", "one", extra=SHOP)})
    commit = push(cloud, files | {"apps/shop/more.yaml": b"kind: [broken"})
    cloud.run()
    check(cloud)
    cloud.sleep(cloud.ports.config.timing.unhealthy_seconds)
    check(cloud)
    assert phases(cloud) == {"one": Phase.FAILED}
    assert condition(record(cloud)).message.startswith("the system shop of shop-team@example.com: ")
    state, description = status(cloud, commit)
    assert (state, "the system shop of shop-team" in description) == ("failure", True)
    push(cloud, files)
    check(cloud)
    assert phases(cloud) == {"one": Phase.READY}


def test_a_root_that_somebody_deleted_is_named_before_what_is_small_everywhere() -> None:
    cloud = hydrated(SHOP)
    commit = cloud.repository.head("main")
    for ref in (POLICY, QUOTA, BINDING, KUSTOMIZATION):
        delete(cloud, ref)
    check(cloud)
    found = condition(record(cloud)).message
    root = "the Kustomization flux-system in flux-system: Roadstead applied it, and it no longer exists"
    assert found.startswith(f"{root}; and ")
    why = why_view("one", cloud.ports)
    assert why is not None
    assert root in why["doing"]
    cloud.sleep(cloud.ports.config.timing.unhealthy_seconds)
    check(cloud)
    assert f"FluxUnhealthy: {root}" in status(cloud, commit)[1]
    tree = tree_view("one", cloud.ports)
    assert tree is not None
    assert [unhealthy["name"] for unhealthy in tree["systems"][0]["unhealthy"]] == [
        *("shop-groups-edit", "roadstead-isolated", "roadstead")
    ]


def test_a_check_of_a_system_as_it_was_applied_finds_nothing() -> None:
    cloud = hydrated(SHOP)
    check(cloud)
    found = condition(record(cloud))
    assert (found.status, found.reason) == (True, "Healthy")


def test_what_flux_applied_last_of_a_system_is_known_from_the_check_that_read_it() -> None:
    cloud = hydrated(SHOP)
    assert revisions(cloud) == (None, [])
    check(cloud)
    head = cloud.repository.head("main")
    assert revisions(cloud) == (f"main@sha1:{head}", [(f"main@sha1:{head}", 1)])
    delete(cloud, replace(KUSTOMIZATION, name="shop", namespace="shop"))
    check(cloud)
    assert revisions(cloud) == ("", [("", 1)]), "of one that somebody deleted nothing is applied"


def revisions(cloud: MemoryCloud) -> tuple[str | None, list[tuple[str, int]]]:
    tree = tree_view("one", cloud.ports)
    assert tree is not None
    (shop,) = systems_view(cloud.ports)["systems"]
    return tree["systems"][0]["revision"], [(e["revision"], e["clusterCount"]) for e in shop["revisions"]]


@pytest.mark.parametrize(
    ("act", "ref", "what"),
    [
        (delete, QUOTA, "no longer exists"),
        (delete, BINDING, "no longer exists"),
        (delete, POLICY, "no longer exists"),
        (widen, QUOTA, "somebody changed what Roadstead applied"),
    ],
    ids=["quota", "binding", "network policy", "a wider quota"],
)
def test_what_confines_a_team_and_is_gone_or_changed_is_found_and_applied_by_a_policy_only(
    act: object, ref: ObjectRef, what: str
) -> None:
    assert callable(act)
    cloud = hydrated(SHOP)
    act(cloud, ref)
    check(cloud)
    cloud.run()
    found = condition(record(cloud))
    assert found.status is False
    assert str(ref) in found.message
    assert what in found.message
    assert "shop" in found.message
    cloud = hydrated(SHOP, CORRECT)
    act(cloud, ref)
    check(cloud)
    sweep(cloud)
    cloud.run()
    live = cloud.kubernetes.connect(cluster_id("one")).get(ref)
    assert live is not None
    check(cloud)
    assert condition(record(cloud)).status is True


def test_a_check_finds_a_system_that_a_commit_took_and_that_older_tables_know() -> None:
    cloud = hydrated(SHOP)
    older = cloud.state.backup()
    push(cloud, fleet("one", systems={}, budget=1))
    cloud.run()
    assert objects(cloud, "one", "shop") == []
    cloud.state.restore(older)
    files = fleet("one", systems={"shop": system("shop", "one", extra=SHOP)})
    push(cloud, files | {"README.md": b"again"})
    cloud.run()
    assert (phases(cloud), objects(cloud, "one", "shop")) == ({"one": Phase.READY}, [])
    check(cloud)
    cloud.sleep(cloud.ports.config.timing.unhealthy_seconds)
    check(cloud)
    assert phases(cloud) == {"one": Phase.FAILED}
    assert condition(record(cloud)).message.startswith("the system shop of shop-team@example.com: ")
