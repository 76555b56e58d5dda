"""Policy assignments and policy states, through the pipeline that all management libraries share.

azure-mgmt-resource-policy and azure-mgmt-policyinsights would be two more libraries for four requests, and
both turn Azure's documents into models with other names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from shared.adapters.arm.arm_requests import ArmRequests

T = TypeVar("T")
_ASSIGNMENTS = "/providers/Microsoft.Authorization/policyAssignments"
_STATES = "/providers/Microsoft.PolicyInsights/policyStates"
_MOST = 1000
"""How many states one request reads: those of fifty initiatives with twenty definitions each."""


class Policies(ArmRequests):
    """The policy assignments of clusters in one subscription, and what Azure found."""

    versions: ClassVar = {_ASSIGNMENTS: "2025-03-01", _STATES: "2019-10-01"}

    def list_policy_assignments(self, group: str) -> list[dict[str, Any]]:
        """Return the policy assignments above, at and below a resource group."""
        return self._list(f"{self._subscription}/resourceGroups/{group}{_ASSIGNMENTS}", _ASSIGNMENTS)

    def put_policy_assignment(
        self, group: str, name: str, assignment: str, body: Mapping[str, Any], *, cls: Callable[..., T]
    ) -> T:
        """Create or replace a policy assignment of a cluster."""
        return self._write("PUT", self._assignment(group, name, assignment), _ASSIGNMENTS, cls, body)

    def delete_policy_assignment(self, group: str, name: str, assignment: str, *, cls: Callable[..., T]) -> T:
        """Delete a policy assignment of a cluster."""
        return self._write("DELETE", self._assignment(group, name, assignment), _ASSIGNMENTS, cls)

    def query_policy_states(self, group: str, name: str, filter: str) -> list[dict[str, Any]]:
        """Return the newest states of a cluster that a filter leaves."""
        query = {
            "$filter": filter,
            "$top": str(_MOST),
            "$orderby": "complianceState desc",
            "$select": "policyAssignmentName,policyDefinitionReferenceId,complianceState,timestamp",
        }
        path = f"{self._cluster(group, name)}{_STATES}/latest/queryResults"
        found = self._send("POST", path, _STATES, query=query).json()
        return list(found.get("value") or ())

    def _cluster(self, group: str, name: str) -> str:
        provider = "/providers/Microsoft.ContainerService/managedClusters"
        return f"{self._subscription}/resourceGroups/{group}{provider}/{name}"

    def _assignment(self, group: str, name: str, assignment: str) -> str:
        return f"{self._cluster(group, name)}{_ASSIGNMENTS}/{assignment}"
