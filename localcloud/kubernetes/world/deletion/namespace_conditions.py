"""The conditions of a namespace that is being deleted; pure.

Source: kubernetes ``pkg/controller/namespace/deletion/status_condition_utils.go``. The content is deleted at
once here, so that a condition is as old as the delete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from localcloud.kubernetes.world.kinds import ResourceKind
from localcloud.kubernetes.world.object_store import Object

_DONE = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
)


def terminating_status(since: str, left: Iterable[tuple[ResourceKind, Object]]) -> dict[str, Any]:
    """Return the status of a namespace that was deleted at a time, with what is left in it."""
    kinds, finalizers = Counter[str](), Counter[str]()
    for kind, value in left:
        kinds[f"{kind.plural}.{kind.group}"] += 1
        finalizers.update(value["metadata"].get("finalizers") or ())
    resources = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(kinds.items()))
    remaining = ", ".join(
        f"{name} in {count} resource instances" for name, count in sorted(finalizers.items())
    )
    none = "All content successfully removed"
    conditions = [
        *((*done, "False") for done in _DONE),
        (
            "NamespaceContentRemaining",
            "SomeResourcesRemain",
            f"Some resources are remaining: {resources}",
            "True",
        )
        if resources
        else ("NamespaceContentRemaining", "ContentRemoved", none, "False"),
        (
            "NamespaceFinalizersRemaining",
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {remaining}",
            "True",
        )
        if remaining
        else ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", none, "False"),
    ]
    return {
        "phase": "Terminating",
        "conditions": [
            {
                "type": name,
                "status": status,
                "lastTransitionTime": since,
                "reason": reason,
                "message": message,
            }
            for name, reason, message, status in conditions
        ],
    }
