"""The rules of a drift policy: each names fields in which a cluster in Azure is compared with git."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shared.language.model.cluster.drift import WHOLE_CLUSTER, DriftPolicy
from shared.language.model.cluster.spec import ClusterProperties
from shared.language.model.node_pool import PoolProperties
from shared.language.resolve.problems import Path, nearest

_COMPARED = (
    *(info.alias or name for name, info in ClusterProperties.model_fields.items()),
    *("nodePools", "maintenanceWindows", "policies", "tags", "sku", "identity", "azure"),
    *("extendedLocation", "kind", "federatedCredentials", "roleAssignments"),
    "managedNamespaces",
)
_COMPARED_OF_POOLS = (
    *(info.alias or name for name, info in PoolProperties.model_fields.items()),
    *("azure", "enableAutoScaling", "minNodeImageVersion"),
)
_POOL = re.compile(r"nodePools(?:\[[^\]]*\])?\.([^.\[]*)")


def unknown_fields(policy: DriftPolicy | None) -> Iterator[tuple[Path, str]]:
    """Yield the place of each field of a rule that is never compared, and a message."""
    for rule in policy.rules if policy else ():
        for number, pattern in enumerate(rule.fields):
            of_pool = _POOL.match(pattern)
            name = of_pool[1] if of_pool else re.split(r"[.\[]", pattern, maxsplit=1)[0]
            known = _COMPARED_OF_POOLS if of_pool else _COMPARED
            if pattern in WHOLE_CLUSTER:
                continue
            if "*" in name or name in known:
                continue
            near = nearest(name, known)
            hint = f"did you mean {near}?" if near else "name a field that Azure shows"
            message = f"{pattern}: {name} is never compared with Azure; {hint}"
            yield ("drift", "rules", rule.name, "fields", number), message
