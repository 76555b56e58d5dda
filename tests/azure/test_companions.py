"""Companions: what is written, what goes and in which order, and what of other people is left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shared.azure.changes.field_effects import Effect
from shared.azure.changes.writes import planned_effect
from shared.azure.companions.companion import Companion, writes_of
from shared.azure.companions.companion_kinds import KINDS, companions_to_remove, kind_of
from shared.azure.companions.identity_access import CredentialCompanion, RoleCompanion
from shared.azure.companions.managed_namespaces import NamespaceCompanion
from shared.azure.companions.policies import PolicyCompanion
from shared.json_tree import Json
from tests.support.arm_bodies import desired

IDENTITY = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg"
    "/providers/Microsoft.ManagedIdentity/userAssignedIdentities/shop"
)
SCOPE = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/Shared"
DEFINITION = "/providers/Microsoft.Authorization/policyDefinitions/00000000-0000-0000-0000-00000000000a"
WINDOW = {"schedule": {"daily": {"intervalDays": 2}}, "durationHours": 4, "startTime": "01:00"}
ALL: dict[str, Any] = {
    "maintenanceWindows": [{"name": "aksManagedAutoUpgradeSchedule", "maintenanceWindow": WINDOW}],
    "policies": [{"name": "deny", "definition": DEFINITION, "mode": "Indexed"}],
    "oidcIssuerProfile": {"enabled": True},
    "federatedCredentials": [
        {"name": "shop", "identity": IDENTITY, "namespace": "shop", "serviceAccount": "api"}
    ],
    "roleAssignments": [{"name": "pull", "role": "AcrPull", "scope": SCOPE, "identity": "kubelet"}],
}
"""One companion of each kind that a spec has."""
READ = {"principal": "p", "role": "r"}
"""What Azure says of the role assignment."""


def credential(name: str, account: str) -> CredentialCompanion:
    """Return a federated credential of a service account."""
    entry = {"name": name, "identity": IDENTITY, "namespace": "shop", "serviceAccount": account}
    of = desired(oidcIssuerProfile={"enabled": True}, federatedCredentials=[entry])
    (found,) = CredentialCompanion.of(of)
    return found


def role(name: str = "pull") -> RoleCompanion:
    """Return a role assignment of which the ids are known."""
    (found,) = RoleCompanion.of(desired(roleAssignments=[{**ALL["roleAssignments"][0], "name": name}]))
    return replace(found, fields=READ)


def as_written(companion: Companion) -> Json:
    """Return what Azure shows of a companion once it is written."""
    body = companion.written(None, ())
    assert body is not None
    return {**body, "properties": {**body["properties"], "scope": SCOPE}}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.entries in ALL])
def test_a_stored_form_has_the_ids_of_its_companions(kind: type[Companion]) -> None:
    of = desired(**ALL)
    (wanted,) = kind.of(of)
    assert kind.stored(of.document()) == (wanted.key,)
    assert [kind for kind in KINDS if kind.ids_among([wanted.key])] == [kind] == [kind_of(f"{wanted.path}.x")]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not NamespaceCompanion])
def test_a_plan_says_of_an_entry_that_goes_whether_its_resource_goes(kind: type[Companion]) -> None:
    effect = planned_effect(f"spec.{kind.entries}[shop]", "shop", None)
    stays = not kind.is_removed
    assert (effect is Effect.UNMANAGED) is stays, "_REMOVED of shared/azure/changes/writes.py"


def test_what_a_commit_takes_is_to_go_but_windows_and_what_it_brings_again() -> None:
    whole, none = desired(**ALL).document(), desired().document()
    gone = companions_to_remove(whole, none, ())
    assert [kind for kind in KINDS if kind.ids_among(gone)] == [
        PolicyCompanion,
        CredentialCompanion,
        RoleCompanion,
    ]
    assert companions_to_remove(none, none, gone) == gone
    assert companions_to_remove(none, whole, gone) == ()


def test_a_narrower_role_is_there_before_the_wider_one_goes() -> None:
    wanted, wider = role(), f"{role().key}-wider"
    live = {wider: {"properties": {"scope": SCOPE, "principalId": "p", "roleDefinitionId": "/owner"}}}
    upkeep = writes_of([wanted], live, [wider], ())
    assert (upkeep.first, [done for done, _ in upkeep.bodies], upkeep.last) == ([], [wanted], [wider])


@pytest.mark.parametrize("ours", [True, False])
def test_an_assignment_for_the_same_makes_way_if_it_is_ours_and_counts_otherwise(*, ours: bool) -> None:
    wanted, other = role(), f"{role().key}-other"
    upkeep = writes_of([wanted], {other: as_written(role("other"))}, [other] if ours else [], ())
    found = (upkeep.first, [done for done, _ in upkeep.bodies], upkeep.foreign)
    assert found == (([other], [wanted], []) if ours else ([], [], [wanted]))


def test_an_assignment_with_another_principal_is_removed_and_created_again() -> None:
    wanted = role()
    live = {wanted.key: as_written(replace(wanted, fields={**READ, "principal": "before"}))}
    upkeep = writes_of([wanted], live, [], ())
    assert (upkeep.first, [done for done, _ in upkeep.bodies], upkeep.last) == ([wanted.key], [wanted], [])


def test_two_credentials_that_exchange_their_accounts_go_before_they_come() -> None:
    before = credential("a", "one"), credential("b", "two")
    after = credential("a", "two"), credential("b", "one")
    upkeep = writes_of(after, {companion.key: as_written(companion) for companion in before}, [], ())
    assert upkeep.first == sorted(companion.key for companion in after)
    assert tuple(done for done, _ in upkeep.bodies) == after


def test_what_a_job_leaves_keeps_the_value_of_azure_and_is_not_created() -> None:
    (policy,) = PolicyCompanion.of(desired(policies=ALL["policies"]))
    assert policy.written(None, {policy.path}) is None
    live = {"properties": {**as_written(policy)["properties"], "enforcementMode": "DoNotEnforce"}}
    assert [difference.path for difference in policy.differences(live)] == ["policies[deny].enforcementMode"]
    assert policy.written(live, {"policies[deny].enforcementMode"}) is None
    changed = {"properties": {**live["properties"], "notScopes": ["/x"]}}
    body = policy.written(changed, {"policies[deny].enforcementMode"})
    assert body is not None
    assert (body["properties"]["enforcementMode"], "notScopes" in body["properties"]) == (
        "DoNotEnforce",
        False,
    )
