"""Managed namespaces that somebody changes in Azure: a check reads them, and they are drift."""

from __future__ import annotations

from typing import Any

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.failures.errors import Unavailable
from shared.cluster.record import Phase
from shared.ports.azure import ListManagedNamespaces
from tests.support.checks import check
from tests.support.one_cluster import record
from tests.support.pipeline_runs import phases
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import drifted, sweep, tag_by_hand
from tests.support.team_systems import cluster_id, hydrated

ONE = cluster_id("one")
MANAGED = "  managedNamespaces: {}\n"
POLICY = "managedNamespaces[shop].defaultNetworkPolicy"


def live(cloud: MemoryCloud) -> dict[str, Any]:
    return dict(cloud.azure.get_managed_namespace(ONE, "shop"))


def open_by_hand(cloud: MemoryCloud) -> None:
    """Let somebody open the namespace to all."""
    one = live(cloud)
    rules = {"ingress": "AllowAll", "egress": "AllowAll"}
    properties = {**one["properties"], "defaultNetworkPolicy": rules}
    body = {"location": one["location"], "tags": one["tags"], "properties": properties}
    cloud.azure.put_managed_namespace(ONE, "shop", body)
    cloud.sleep(5)


def test_what_somebody_changes_is_drift_until_it_is_as_git_has_it() -> None:
    cloud = hydrated(MANAGED)
    check(cloud)
    assert drifted(record(cloud)) == {}
    open_by_hand(cloud)
    check(cloud)
    ((path, (git, now)),) = drifted(record(cloud)).items()
    assert path == POLICY
    assert ("AllowSameNamespace" in git, "AllowAll" in now) == (True, True)
    assert phases(cloud) == {"one": Phase.READY}
    cloud.azure.delete_managed_namespace(ONE, "shop")
    cloud.sleep(5)
    check(cloud)
    assert "managedNamespaces[shop]" in drifted(record(cloud))


def test_a_namespace_has_who_changed_it_also_before_the_last_sweep() -> None:
    cloud = hydrated(MANAGED)
    with cloud.azure.called_by("ann@example.com"):
        open_by_hand(cloud)
    with cloud.azure.called_by("bob@example.com"):
        tag_by_hand(cloud, ONE, own="x")
    sweep(cloud)
    check(cloud)
    by = {field.path: field.by for field in record(cloud).drift.fields}  # type: ignore[union-attr]
    assert by[POLICY] == "ann@example.com"


def test_it_is_corrected_where_the_policy_of_drift_says_so_and_left_where_it_is_exempt() -> None:
    cloud = hydrated(MANAGED, "  drift: {action: correct}\n")
    open_by_hand(cloud)
    check(cloud)
    cloud.run()
    assert live(cloud)["properties"]["defaultNetworkPolicy"]["ingress"] == "AllowSameNamespace"
    assert drifted(record(cloud)) == {}
    rule = (
        "{name: a, fields: [managedNamespaces], action: ignore, owner: a, reason: b, expires: '2030-01-01'}"
    )
    cloud = hydrated(MANAGED, f"  drift: {{action: correct, rules: [{rule}]}}\n")
    open_by_hand(cloud)
    check(cloud)
    cloud.run()
    assert live(cloud)["properties"]["defaultNetworkPolicy"]["ingress"] == "AllowAll"
    assert drifted(record(cloud)) == {}


def test_what_cannot_be_read_is_unknown_and_a_cluster_without_any_costs_no_call() -> None:
    cloud = hydrated(MANAGED)
    open_by_hand(cloud)
    check(cloud)
    before = record(cloud).companions.differences

    def refuse(_: Any) -> Any:
        raise Unavailable("Azure did not answer")

    on_azure(cloud, ListManagedNamespaces, refuse)
    check(cloud)
    assert record(cloud).companions.differences == before
    other = hydrated("  podSecurity: baseline\n")
    on_azure(other, ListManagedNamespaces, refuse)
    check(other)
    assert record(other).companions.differences == ()
