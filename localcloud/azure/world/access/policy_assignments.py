"""The policy assignments of clusters, and the states that Azure Policy has found of them.

Sources: policyAssignments 2025-03-01 and policyStates 2019-10-01 of github.com/Azure/azure-rest-api-specs
(shapes, the form of a name, what a list of a group has); learn.microsoft.com/azure/azure-resource-manager/
management/resource-name-rules (64 characters); the built-in definitions in github.com/Azure/azure-policy (ids
and parameters). UndefinedPolicyParameter is quoted in Azure/terraform-azurerm-caf-enterprise-scale#282.
No published answer has the code of a missing definition or of a value that is not allowed:
PolicyDefinitionNotFound and PolicyParameterValueNotAllowed are assumed, and so is that assignments remain
when their cluster is deleted. No policy is evaluated here: ``found`` says what Azure finds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from localcloud.azure.world import request_limits as limits
from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.arm_resources import WriteAnswer
from localcloud.azure.world.azure_engine import AzureEngine
from localcloud.common.json_copy import copied
from shared.json_tree import Json
from shared.resource_ids import ClusterId

_KINDS = "/providers/Microsoft.Authorization"
_EFFECTS = ("audit", "deny", "disabled")
_OF_OBJECTS = ("effect", "excludedNamespaces", "namespaces", "labelSelector", "excludedImages")
DEFINITIONS: Mapping[str, tuple[str, ...]] = {
    f"{_KINDS}/policyDefinitions/95edb821-ddaf-4404-9732-666045e056b4": (
        *_OF_OBJECTS,
        *("source", "warn", "excludedContainers"),
    ),
    f"{_KINDS}/policyDefinitions/040732e8-d947-40b8-95d6-854c95024bf8": ("effect",),
    f"{_KINDS}/policySetDefinitions/a8640138-9b0a-4a28-b8cb-1666c838647d": _OF_OBJECTS,
}
"""The parameters of some built-in definitions: no privileged containers, private clusters, and the initiative
of the pod security baseline."""
_NAME = re.compile(r"[^<>*%&:\\?.+/]{0,63}[^<>*%&:\\?.+/ ]")
_FILTER = re.compile(r"policyAssignmentName eq '([^']+)'")


class PolicyAssignments:
    """The policy assignments of every cluster."""

    def __init__(self, engine: AzureEngine) -> None:
        self._engine = engine
        self._assignments: dict[str, dict[str, Any]] = {}
        self._states: list[dict[str, Any]] = []

    def peek_policies(self) -> list[Json]:
        """Return all assignments; counts as no request."""
        with self._engine.lock:
            return list(self._assignments.values())

    def found(
        self, cluster: ClusterId, assignment: str, state: str, at: datetime, *, reference: str = ""
    ) -> None:
        """Let Azure Policy have found a state; ``reference`` is the definition in an initiative."""
        with self._engine.lock:
            record = {
                "resourceId": cluster.resource.lower(),
                "policyAssignmentName": assignment,
                "policyDefinitionReferenceId": reference,
                "complianceState": state,
                "timestamp": at.isoformat(),
            }
            key = ("resourceId", "policyAssignmentName", "policyDefinitionReferenceId")
            kept = [
                document for document in self._states if any(document[name] != record[name] for name in key)
            ]
            self._states = [*kept, record]

    def list_policy_assignments(self, subscription: str, group: str) -> list[Json]:
        """Return the assignments of a group and of what is, or was, in it."""
        with self._engine.request(subscription, limits.ARM_READ):
            self._engine.group(subscription, group)
            below = f"/subscriptions/{subscription}/resourcegroups/{group}/".lower()
            return [copied(item) for key, item in sorted(self._assignments.items()) if key.startswith(below)]

    def put_policy_assignment(self, cluster: ClusterId, assignment: str, body: Json) -> WriteAnswer:
        """Create or replace an assignment, at once."""
        with self._engine.request(cluster.subscription, limits.ARM_WRITE):
            self._engine.cluster(cluster)
            given = dict(body.get("properties") or {})
            _check(assignment, given)
            resource = _resource(cluster, assignment)
            document = {
                "id": resource,
                "name": assignment,
                "type": "Microsoft.Authorization/policyAssignments",
                "properties": {
                    "enforcementMode": "Default",
                    "notScopes": [],
                    "parameters": {},
                    **given,
                    "scope": cluster.resource,
                },
            }
            return self._engine.store("put-policy-assignment", self._assignments, resource.lower(), document)

    def delete_policy_assignment(self, cluster: ClusterId, assignment: str) -> WriteAnswer:
        """Delete an assignment, at once, also without its cluster."""
        with self._engine.request(cluster.subscription, limits.ARM_DELETE):
            resource = _resource(cluster, assignment)
            before = self._assignments.pop(resource.lower(), None)
            if before is None:
                return WriteAnswer("", resource, 204)
            self._states = [state for state in self._states if state["policyAssignmentName"] != assignment]
            return self._engine.accept(WriteAnswer("delete-policy-assignment", resource, 200, copied(before)))

    def query_policy_states(self, cluster: ClusterId, wanted: str) -> list[Json]:
        """Return the newest states of a cluster that a filter of names leaves, in descending order."""
        names = {_named(part) for part in wanted.split(" or ")}
        with self._engine.request(cluster.subscription, limits.ARM_READ):
            found = [
                copied(state)
                for state in self._states
                if state["resourceId"] == cluster.resource.lower()
                and state["policyAssignmentName"].lower() in names
            ]
            return sorted(found, key=lambda state: str(state["complianceState"]), reverse=True)


def _check(assignment: str, given: Mapping[str, Any]) -> None:
    if not _NAME.fullmatch(assignment):
        raise ArmError(400, "InvalidPolicyAssignmentName", f"The name '{assignment}' is invalid.")
    definition = str(given.get("policyDefinitionId") or "")
    known = {name.lower(): parameters for name, parameters in DEFINITIONS.items()}
    if definition.lower() not in known:
        message = f"The policy definition '{definition}' could not be found."
        raise ArmError(404, "PolicyDefinitionNotFound", message)
    values = given.get("parameters") or {}
    more = ",".join(name for name in values if name not in known[definition.lower()])
    if more:
        of = definition.rpartition("/")[2]
        message = (
            f"The policy assignment '{assignment}' has the parameter(s) '{more}' which are not defined in "
            f"the policy definition '{of}'."
        )
        raise ArmError(400, "UndefinedPolicyParameter", message)
    effect = str((values.get("effect") or {}).get("value") or "audit")
    if effect.lower() not in _EFFECTS:
        message = f"The value '{effect}' is not allowed for the policy parameter 'effect'."
        raise ArmError(400, "PolicyParameterValueNotAllowed", message)


def _named(part: str) -> str:
    found = _FILTER.fullmatch(part)
    if found is None:
        raise ArmError(400, "InvalidFilterInQueryString", f"The filter '{part}' is not supported.")
    return found[1].lower()


def _resource(cluster: ClusterId, assignment: str) -> str:
    return f"{cluster.resource}{_KINDS}/policyAssignments/{assignment}"
