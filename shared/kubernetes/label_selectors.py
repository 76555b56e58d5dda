"""Which labels a selector of Kubernetes matches. Pure.

Source: kubernetes/apimachinery ``pkg/apis/meta/v1/types.go`` (LabelSelector) and ``helpers.go``: an empty
selector matches everything, and an absent one nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.json_tree import Json


def selects(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """Return whether a LabelSelector matches these labels; one with an unknown operator matches nothing."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _meets(term, labels) for term in selector.get("matchExpressions") or ()
    )


def _meets(term: Json, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(str(term.get("key"))), term.get("values") or ()
    match term.get("operator"):
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False
