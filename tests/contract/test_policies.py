"""Policy assignments and policy states, in both implementations of the port."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shared.cluster.failures.errors import Dependency, InvalidManifest
from shared.ports.azure import (
    DeleteCluster,
    DeletePolicyAssignment,
    ListPolicyAssignments,
    PutPolicyAssignment,
    QueryPolicyStates,
    states_of,
)
from tests.support.azure_ports import CLUSTER, Azure
from tests.support.policies import BASELINE, PRIVATE, PRIVILEGED

GROUP = CLUSTER.group


def body(definition: str = PRIVILEGED, **values: Any) -> dict[str, Any]:
    parameters = {name: {"value": value} for name, value in values.items()}
    return {"properties": {"policyDefinitionId": definition, "parameters": parameters}}


def listed(azure: Azure) -> dict[str, Any]:
    return {document["name"]: document for document in azure.call(ListPolicyAssignments(GROUP)) or ()}


def test_an_assignment_is_created_replaced_listed_and_deleted(azure: Azure) -> None:
    azure.with_cluster()
    assert listed(azure) == {}
    assert azure.call(PutPolicyAssignment(CLUSTER, "a", body(effect="Deny"))).created
    again = azure.call(PutPolicyAssignment(CLUSTER, "a", body(effect="Audit")))
    assert (again.created, bool(again.request_id)) == (False, True)
    (shown,) = listed(azure).values()
    assert shown["id"] == f"{CLUSTER.resource}/providers/Microsoft.Authorization/policyAssignments/a"
    assert shown["properties"]["parameters"] == {"effect": {"value": "Audit"}}
    assert (shown["properties"]["enforcementMode"], shown["properties"]["scope"]) == (
        "Default",
        CLUSTER.resource,
    )
    azure.call(DeletePolicyAssignment(CLUSTER, "a"))
    azure.call(DeletePolicyAssignment(CLUSTER, "a"))
    assert listed(azure) == {}


def test_an_assignment_needs_a_cluster_a_definition_and_parameters_that_it_has(azure: Azure) -> None:
    azure.with_cluster()
    with pytest.raises(Dependency):
        azure.call(PutPolicyAssignment(replace(CLUSTER, name="none"), "a", body()))
    with pytest.raises(Dependency, match="could not be found"):
        azure.call(PutPolicyAssignment(CLUSTER, "a", body(PRIVILEGED + "x")))
    with pytest.raises(InvalidManifest, match="'x' which are not defined in the policy definition"):
        azure.call(PutPolicyAssignment(CLUSTER, "a", body(PRIVATE, x="y")))
    with pytest.raises(InvalidManifest, match="'Nothing' is not allowed"):
        azure.call(PutPolicyAssignment(CLUSTER, "a", body(effect="Nothing")))
    with pytest.raises(InvalidManifest, match="invalid"):
        azure.call(PutPolicyAssignment(CLUSTER, "a" * 65, body()))
    assert listed(azure) == {}


def test_an_assignment_of_a_cluster_that_is_deleted_is_shown_and_can_be_removed(azure: Azure) -> None:
    azure.with_cluster()
    azure.call(PutPolicyAssignment(CLUSTER, "a", body()))
    azure.call(DeleteCluster(CLUSTER, etag=None))
    azure.clock.advance(600)
    assert list(listed(azure)) == ["a"]
    azure.call(DeletePolicyAssignment(CLUSTER, "a"))
    assert listed(azure) == {}
    nowhere = replace(CLUSTER, resource_group="nowhere")
    assert azure.call(ListPolicyAssignments(nowhere.group)) is None
    azure.call(DeletePolicyAssignment(nowhere, "a"))


def test_what_azure_policy_found_is_that_of_the_assignments_of_the_filter(azure: Azure) -> None:
    azure.with_cluster()
    for name in ("a", "b"):
        azure.call(PutPolicyAssignment(CLUSTER, name, body(BASELINE)))
    assert azure.call(QueryPolicyStates(CLUSTER, states_of(["a", "b"]))) == []
    found, now = azure.world.policies.found, azure.clock()
    found(CLUSTER, "a", "Compliant", now, reference="one")
    found(CLUSTER, "a", "NonCompliant", now, reference="two")
    found(CLUSTER, "b", "Compliant", now)
    states = azure.call(QueryPolicyStates(CLUSTER, states_of(["a"])))
    assert [(state["policyAssignmentName"], state["complianceState"]) for state in states] == [
        ("a", "NonCompliant"),
        ("a", "Compliant"),
    ]
    assert {state["timestamp"] for state in states} == {now.isoformat()}
    assert len(azure.call(QueryPolicyStates(CLUSTER, states_of(["a", "b"])))) == 3
