"""What keeps an object that is being deleted: its finalizers, and what is left in a namespace. Pure.

The namespace controller writes into the conditions of a namespace why it does not end yet (kubernetes
``pkg/controller/namespace/deletion/status_condition_utils.go``).
"""

from __future__ import annotations

from collections.abc import Iterator

from shared.json_tree import Json
from shared.masking import cut
from shared.sentences import some_of

LONGEST = 300
"""So many characters of a condition are shown: it may list every kind that is left."""
_OF_KUBERNETES = "kubernetes"
"""The finalizer of every namespace, which Kubernetes takes away when the namespace is empty."""
_CONDITIONS = (
    "NamespaceFinalizersRemaining",
    "NamespaceContentRemaining",
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
)
"""Those that are True while something keeps a namespace, the one that says most first."""


def what_keeps(live: Json) -> str:
    """Return what keeps an object that is being deleted, "" where it does not show it."""
    return "; ".join(_reasons(live))


def _reasons(live: Json) -> Iterator[str]:
    spec = live.get("spec") or {}
    of_namespace = spec.get("finalizers") or () if live.get("kind") == "Namespace" else ()
    finalizers = [*(live["metadata"].get("finalizers") or ()), *of_namespace]
    own = [str(finalizer) for finalizer in finalizers if finalizer != _OF_KUBERNETES]
    if own:
        yield f"it has the finalizer{'s' * (len(own) > 1)} {some_of(own, 3)}"
    if live.get("kind") == "Namespace":
        conditions = (live.get("status") or {}).get("conditions") or ()
        found = {condition["type"]: condition for condition in conditions if condition["status"] == "True"}
        for kind in _CONDITIONS:
            if kind in found:
                yield cut(" ".join(str(found[kind].get("message") or kind).split()), LONGEST, "...")
