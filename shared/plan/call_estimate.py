"""How many writes to Azure a plan needs: an estimate, for operators who plan around Azure's limits.

Reads are not counted: a waiting job reads its cluster every few seconds. One PUT creates a cluster with its
node pools; later each changed pool has a PUT of its own, and a new version takes one for the cluster and one
for each pool. An upgrade over several minor versions, each maintenance window and an autoscaler that is
switched off take more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shared.azure.changes.field_effects import Effect
from shared.frozen import dataclass
from shared.language.desired import is_attached
from shared.plan.differences import FieldChange
from shared.plan.plan import Action, Item

_GRANT = re.compile(r"spec\.(federatedCredentials|roleAssignments|policies)\[([^\]]*)\]")
_POOL = re.compile(r"spec\.nodePools\[([^\]]*)\](.*)\Z", re.DOTALL)
_NOT_AZURE = (
    *("components", "environment", "class", "labels", "pin", "spec.class", "spec.environment"),
    *(
        "spec.flux",
        "spec.bootstrapSecrets",
        "spec.deletionProtection",
        "spec.suspend",
        "spec.minNodeImageVersion",
        "spec.drift",
    ),
    *("adopt", "systems", "pin"),
)


@dataclass(frozen=True)
class AzureCalls:
    """Writes to Azure Resource Manager."""

    puts: int = 0
    deletes: int = 0

    @property
    def total(self) -> int:
        """The sum of both."""
        return self.puts + self.deletes

    def __add__(self, other: AzureCalls) -> AzureCalls:
        return AzureCalls(self.puts + other.puts, self.deletes + other.deletes)


def azure_calls(item: Item, document: Mapping[str, Any] | None) -> AzureCalls:
    """Return the writes of one cluster's part; ``document`` is the stored form that it will have."""
    if document and is_attached(document):
        return AzureCalls()
    if item.action is Action.ADOPT:
        return AzureCalls(puts=1)  # our tags on the cluster; differences take more
    if item.action is Action.CREATE:
        return AzureCalls(puts=2 + len(_grants(document)))  # resource group, cluster
    if item.action is Action.REBUILD:
        of_grants = len(_grants(document))
        return AzureCalls(puts=2 + of_grants, deletes=2 + of_grants)
    if item.action is Action.DELETE:
        return AzureCalls(deletes=2 + len(_grants(document)))  # cluster, resource group
    if item.action is not Action.UPDATE:
        return AzureCalls()
    changed = {(found[1], found[2]) for change in item.changes if (found := _GRANT.match(change.path))}
    left = changed & _grants(document)
    grants = AzureCalls(puts=len(left), deletes=len(changed) - len(left))
    return grants + _of_cluster(item, document)


def _grants(document: Mapping[str, Any] | None) -> set[tuple[str, str]]:
    """Return the federated credentials, roles and policies of a stored form: their field and their name."""
    spec = (document or {}).get("spec", {})
    fields = ("federatedCredentials", "roleAssignments", "policies")
    return {(field, entry["name"]) for field in fields for entry in spec.get(field) or ()}


def _of_cluster(item: Item, document: Mapping[str, Any] | None) -> AzureCalls:
    """Return the writes of a change to the cluster and its node pools."""
    pools = {pool["name"] for pool in (document or {}).get("spec", {}).get("nodePools", ())}
    written, deleted, cluster = set[str](), set[str](), False
    for change in item.changes:
        pool = _POOL.match(change.path)
        if change.effect in (Effect.NEVER_LOWERED, Effect.RUNS_ALREADY):
            continue
        if pool and pool[1] not in pools:
            deleted.add(pool[1])
        elif pool:
            written.add(pool[1])
            if change.effect in (Effect.REPLACEMENT, Effect.MAY_REPLACE):
                deleted.add(pool[1])
        elif change.path == "spec.kubernetesVersion":
            cluster, written = True, written | pools
        else:
            cluster = cluster or _for_azure(change)
    return AzureCalls(puts=int(cluster) + len(written), deletes=len(deleted))


def _for_azure(change: FieldChange) -> bool:
    return not _GRANT.match(change.path) and not any(
        change.path == path or change.path.startswith((f"{path}.", f"{path}[")) for path in _NOT_AZURE
    )
