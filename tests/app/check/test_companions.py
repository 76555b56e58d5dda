"""Companions that somebody changes: no list of clusters has them, so a check reads them for the sweep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.access.companions import COMPANIONS
from shared.app.api.acts.cluster import replay
from shared.azure.companions.companion import Companion
from shared.azure.companions.companion_kinds import KINDS
from shared.azure.companions.identity_access import (
    CredentialCompanion,
    IdentityCompanion,
    RoleCompanion,
    credential_name,
)
from shared.azure.companions.maintenance_windows import WindowCompanion
from shared.azure.companions.managed_namespaces import NamespaceCompanion
from shared.azure.companions.policies import PolicyCompanion
from shared.cluster.failures.errors import Unavailable
from shared.cluster.findings.health import HealthCondition
from shared.cluster.record import from_json, to_json
from shared.cluster.record_parts import Phase
from shared.ports.azure import (
    GetIdentity,
    ListFederatedCredentials,
    ListMaintenance,
    ListManagedNamespaces,
    ListPolicyAssignments,
    ListRoleAssignments,
)
from tests.support.checks import check
from tests.support.identity_access import (
    ACCESS,
    ISSUER,
    OWN,
    OWN_IDENTITY,
    REGISTRY,
    SHOP,
    assignments,
    credentials,
    with_identity,
)
from tests.support.one_cluster import ONE, WINDOW, files, ready, record
from tests.support.pipeline_runs import phases, push
from tests.support.policies import DENIED, POLICIES, change_by_hand, policies
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import drifted, sweep, tag_by_hand
from tests.support.team_systems import hydrated

pytestmark = pytest.mark.lives

NAME = "aksManagedAutoUpgradeSchedule"
CREDENTIAL = credential_name(ONE, "shop")
OWN_PLACE = OWN.subscription, OWN.resource_group, OWN.name
SHOP_PLACE = SHOP.subscription, SHOP.resource_group, SHOP.name
AUDIT = {"effect": {"value": "Audit"}, "excludedNamespaces": {"value": ["kube-system"]}}


@dataclass(frozen=True)
class Case:
    """How a test has a companion of a kind, changes and removes it as somebody does, and sees it.

    ``path`` is the field that the change makes differ, and ``reads`` is what a check reads.
    """

    kind: type[Companion]
    ready: Callable[[str], MemoryCloud]
    path: str
    reads: type[Any]
    live: Callable[[MemoryCloud], Any]
    change: Callable[[MemoryCloud], object]
    remove: Callable[[MemoryCloud], object]

    @property
    def entry(self) -> str:
        """The path of the companion as a whole."""
        return f"{self.path.partition(']')[0]}]"


def with_access(extra: str) -> MemoryCloud:
    """Return a cloud in which the cluster is Ready with a federated credential and a role."""
    cloud = with_identity()
    push(cloud, files(ACCESS + extra))
    cloud.run()
    return cloud


def with_own_identity(extra: str) -> MemoryCloud:
    """Return a cloud in which the cluster is Ready with an identity of its own."""
    cloud = with_identity()
    push(cloud, files(ISSUER + OWN_IDENTITY + extra))
    cloud.run()
    return cloud


def own_identities(cloud: MemoryCloud) -> list[Any]:
    found = cloud.azure.identities.inside(OWN.subscription, OWN.resource_group)
    return [document for document in found if document["tags"]]


def window(cloud: MemoryCloud) -> dict[str, Any]:
    return dict(cloud.ports.azure.call(ListMaintenance(ONE))[NAME]["properties"]["maintenanceWindow"])


def change_window(cloud: MemoryCloud) -> None:
    body = {"properties": {"maintenanceWindow": {**window(cloud), "durationHours": 8}}}
    cloud.azure.put_maintenance(ONE, NAME, body)


def change_credential(cloud: MemoryCloud) -> None:
    properties = {**credentials(cloud)[CREDENTIAL], "subject": "system:serviceaccount:evil:api"}
    cloud.azure.put_federated_credential(*SHOP_PLACE, CREDENTIAL, {"properties": properties})


def remove_role(cloud: MemoryCloud) -> None:
    (name,) = assignments(cloud)
    cloud.azure.delete_role_assignment(SHOP.subscription, REGISTRY, name)


def namespace(cloud: MemoryCloud) -> dict[str, Any]:
    return dict(cloud.azure.get_managed_namespace(ONE, "shop"))


def open_namespace(cloud: MemoryCloud) -> None:
    """Open the namespace to all."""
    found = namespace(cloud)
    rules = {"ingress": "AllowAll", "egress": "AllowAll"}
    body = {**found, "properties": {**found["properties"], "defaultNetworkPolicy": rules}}
    cloud.azure.put_managed_namespace(ONE, "shop", body)
    cloud.sleep(5)


def remove_namespace(cloud: MemoryCloud) -> None:
    cloud.azure.delete_managed_namespace(ONE, "shop")
    cloud.sleep(5)


CASES = (
    Case(
        WindowCompanion,
        lambda extra: ready(WINDOW + extra),
        f"maintenanceWindows[{NAME}].maintenanceWindow.durationHours",
        ListMaintenance,
        lambda cloud: window(cloud)["durationHours"],
        change_window,
        lambda cloud: on_azure(cloud, ListMaintenance, lambda _: {}),
    ),
    Case(
        PolicyCompanion,
        lambda extra: ready(POLICIES + extra),
        "policies[privileged].effect",
        ListPolicyAssignments,
        lambda cloud: policies(cloud)[DENIED]["parameters"],
        lambda cloud: change_by_hand(cloud, DENIED, parameters=AUDIT),
        lambda cloud: cloud.azure.delete_policy_assignment(ONE, DENIED),
    ),
    Case(
        IdentityCompanion,
        with_own_identity,
        "identities[flux]",
        GetIdentity,
        own_identities,
        lambda cloud: cloud.azure.delete_identity(*OWN_PLACE),
        lambda cloud: cloud.azure.delete_identity(*OWN_PLACE),
    ),
    Case(
        CredentialCompanion,
        with_access,
        "federatedCredentials[shop].subject",
        ListFederatedCredentials,
        lambda cloud: credentials(cloud)[CREDENTIAL],
        change_credential,
        lambda cloud: cloud.azure.delete_federated_credential(*SHOP_PLACE, CREDENTIAL),
    ),
    Case(
        RoleCompanion,
        with_access,
        "roleAssignments[pull]",
        ListRoleAssignments,
        assignments,
        remove_role,
        remove_role,
    ),
    Case(
        NamespaceCompanion,
        lambda extra: hydrated("  managedNamespaces: {}\n", extra),
        "managedNamespaces[shop].defaultNetworkPolicy",
        ListManagedNamespaces,
        lambda cloud: namespace(cloud)["properties"]["defaultNetworkPolicy"],
        open_namespace,
        remove_namespace,
    ),
)
of_each_kind = pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind.noun)


@pytest.mark.always
def test_each_kind_has_its_calls_and_a_case() -> None:
    assert tuple(calls.companion for calls in COMPANIONS) == KINDS, "shared/app/access/companions.py"
    assert tuple(case.kind for case in CASES) == KINDS, "CASES of tests/app/check/test_companions.py"


@of_each_kind
def test_one_that_somebody_changes_is_drift_until_it_is_as_git_has_it(case: Case) -> None:
    cloud = case.ready("")
    before = case.live(cloud)
    check(cloud)
    assert drifted(record(cloud)) == {}
    case.change(cloud)
    sweep(cloud)
    assert drifted(record(cloud)) == {}, "no list has it"
    check(cloud)
    drift = record(cloud).divergence.drift
    assert drift is not None
    (field,) = drift.fields
    assert (field.path, field.source.partition(":")[0]) == (case.path, "clusters/one/cluster.yaml")
    assert phases(cloud) == {"one": Phase.READY}
    assert from_json(to_json(record(cloud)), "v1") == record(cloud)
    sweep(cloud)
    assert [*drifted(record(cloud))] == [case.path]
    assert replay("one", "ann", cloud.ports).status == 202
    cloud.run()
    check(cloud)
    assert (case.live(cloud), drifted(record(cloud))) == (before, {})


@of_each_kind
def test_one_that_is_gone_is_missing_as_a_whole(case: Case) -> None:
    cloud = case.ready("")
    case.remove(cloud)
    check(cloud)
    ((path, (git, live)),) = drifted(record(cloud)).items()
    assert (path, live) == (case.entry, "")
    assert git


@of_each_kind
def test_it_is_corrected_where_the_policy_of_drift_says_so(case: Case) -> None:
    cloud = case.ready("  drift: {action: correct}\n")
    before = case.live(cloud)
    case.change(cloud)
    check(cloud)
    cloud.run()
    assert (case.live(cloud), drifted(record(cloud))) == (before, {})


@pytest.mark.parametrize("whole", [True, False], ids=["all", "this one"])
@of_each_kind
def test_one_that_is_exempt_is_left_alone_by_the_correction_of_a_tag(case: Case, *, whole: bool) -> None:
    field = case.kind.entries if whole else f'"{case.entry}"'
    rule = f"{{name: a, fields: [{field}], action: ignore, owner: a, reason: b, expires: '2030-01-01'}}"
    cloud = case.ready(f"  tags: {{cost: a}}\n  drift: {{action: correct, rules: [{rule}]}}\n")
    case.change(cloud)
    changed = case.live(cloud)
    check(cloud)
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    live = cloud.azure.peek(ONE)
    assert live is not None
    assert (live["tags"]["cost"], case.live(cloud), drifted(record(cloud))) == ("a", changed, {})


@of_each_kind
def test_no_pull_request_proposes_it_and_it_has_who_changed_it_where_its_id_says_what_it_is(
    case: Case,
) -> None:
    cloud = case.ready("  drift: {action: propose}\n")
    with cloud.azure.called_by("ann@example.com"):
        case.change(cloud)
    with cloud.azure.called_by("bob@example.com"):
        tag_by_hand(cloud, ONE, own="x")
    sweep(cloud)
    check(cloud)
    drift = record(cloud).divergence.drift
    assert drift is not None
    (field,) = (field for field in drift.fields if field.path == case.path)
    assert field.note == f"no pull request: a {case.kind.noun} is taken into the manifest by hand"
    assert (field.action, field.by) == (
        "report",
        "ann@example.com" if case.kind.has_name_of_entry else "",
    )


@of_each_kind
def test_what_cannot_be_read_stays_as_it_was_and_the_check_goes_on(case: Case) -> None:
    cloud = case.ready("")
    case.change(cloud)
    check(cloud)
    before = record(cloud)

    def refuse(_: Any) -> Any:
        raise Unavailable("Azure did not answer")

    on_azure(cloud, case.reads, refuse)
    check(cloud)
    assert record(cloud).observation.companions.differences == before.observation.companions.differences
    assert drifted(record(cloud)) == drifted(before) != {}
    healthy = record(cloud).condition("FluxHealthy")
    assert healthy is not None
    assert healthy.status


@of_each_kind
def test_a_check_costs_one_call_and_none_for_a_cluster_without_any_and_a_sweep_none(case: Case) -> None:
    for cloud, calls in ((case.ready(""), 1), (ready(""), 0)):
        found = noted(cloud, case.reads)
        sweep(cloud)
        assert not found
        check(cloud)
        assert len(found) == calls


def noted(cloud: MemoryCloud, kind: type[Any]) -> list[Any]:
    """Return the list to which each call of an operation is added."""
    azure, found = cloud.ports.azure, list[Any]()

    def read(operation: Any) -> Any:
        found.append(operation)
        return azure.call(operation)

    on_azure(cloud, kind, read)
    return found


def test_one_that_is_only_reported_outlives_the_correction_of_a_tag() -> None:
    rule, case = "{name: a, fields: [maintenanceWindows], action: report}", CASES[0]
    cloud = case.ready(f"  tags: {{cost: a}}\n  drift: {{action: correct, rules: [{rule}]}}\n")
    case.change(cloud)
    check(cloud)
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    sweep(cloud)
    assert (case.live(cloud), drifted(record(cloud))) == (8, {case.path: ("4", "8")})
    assert replay("one", "ann", cloud.ports).status == 202
    cloud.run()
    found = record(cloud)
    assert (case.live(cloud), drifted(found), found.observation.companions.differences) == (4, {}, ())


def test_a_commit_that_asks_for_what_somebody_changed_ends_the_difference() -> None:
    cloud = CASES[0].ready("")
    CASES[0].change(cloud)
    check(cloud)
    push(cloud, files(WINDOW.replace("durationHours: 4", "durationHours: 8")))
    cloud.run()
    sweep(cloud)
    assert drifted(record(cloud)) == {}


def test_what_is_not_understood_keeps_no_cluster_from_its_check() -> None:
    cloud = MemoryCloud(throttle=False)
    fleet = files(WINDOW)
    manifest = fleet["clusters/one/cluster.yaml"]
    push(cloud, fleet | {"clusters/two/cluster.yaml": manifest.replace(b"name: one", b"name: two")})
    cloud.run()

    def strange(operation: ListMaintenance) -> Any:
        raise ValueError(operation)

    on_azure(cloud, ListMaintenance, strange)
    check(cloud)
    records = cloud.state.clusters()
    healthy = [found.condition(HealthCondition.FLUX) for found in records]
    assert [condition is not None and condition.status for condition in healthy] == [True, True]
    assert [found.observation.companions.differences for found in records] == [(), ()]
