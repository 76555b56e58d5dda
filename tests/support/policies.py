"""A cluster with policies, and what Azure has of them."""

from __future__ import annotations

from typing import Any

from localcloud.azure.world.access.policy_assignments import DEFINITIONS
from localcloud.memory.memory_cloud import MemoryCloud
from shared.azure.companions.policies import policy_name
from tests.support.one_cluster import ONE

PRIVILEGED, PRIVATE, BASELINE = DEFINITIONS
"""The definitions of the local Azure: of containers, of clusters as resources, and an initiative."""
ADDON = "  addonProfiles: {azurepolicy: {enabled: true}}\n"
DENY = (
    f"    - {{name: privileged, definition: {PRIVILEGED}, effect: Deny, excludedNamespaces: [kube-system]}}\n"
)
AUDIT = f"    - {{name: private, definition: {PRIVATE}, mode: Indexed, effect: Audit}}\n"
POLICIES = ADDON + "  policies:\n" + DENY + AUDIT
"""YAML of two policies, for ``files``."""
DENIED = policy_name(ONE, "privileged", PRIVILEGED)
AUDITED = policy_name(ONE, "private", PRIVATE)


def policies(cloud: MemoryCloud) -> dict[str, dict[str, Any]]:
    """Return all assignments: their properties by their names."""
    return {
        peek_policy["name"]: dict(peek_policy["properties"])
        for peek_policy in cloud.azure.policies.peek_policies()
    }


def policy_writes(cloud: MemoryCloud) -> list[str]:
    """Return the kinds of the accepted writes of assignments, in order."""
    return [
        write["accepted"] for write in cloud.azure.accepted if write["accepted"].endswith("policy-assignment")
    ]


def change_by_hand(cloud: MemoryCloud, name: str, **properties: Any) -> None:
    """Change an assignment as the portal does."""
    body = {"properties": {**policies(cloud)[name], **properties}}
    cloud.azure.policies.put_policy_assignment(ONE, name, body)


def by_hand(cloud: MemoryCloud, name: str = "of-a-person") -> None:
    """Assign a policy to the cluster as a person does."""
    cloud.azure.policies.put_policy_assignment(ONE, name, {"properties": {"policyDefinitionId": PRIVATE}})
