"""What keeps an object that is being deleted is read from the object itself."""

from __future__ import annotations

from typing import Any

from shared.kubernetes.health import LONGEST, what_keeps

DISCOVERY = (
    "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs:"
    " metrics.k8s.io/v1beta1: the server is currently unable to handle the request"
)


def namespace(*conditions: tuple[str, str, str], **metadata: Any) -> dict[str, Any]:
    shown = [{"type": kind, "status": status, "message": text} for kind, status, text in conditions]
    return {
        **{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", **metadata}},
        **{"spec": {"finalizers": ["kubernetes"]}, "status": {"conditions": shown}},
    }


def test_the_conditions_that_hold_are_shown_and_the_finalizers_come_first() -> None:
    live = namespace(
        ("NamespaceContentRemaining", "True", "Some resources are remaining: widgets.example.org"),
        ("NamespaceDeletionContentFailure", "False", "All content successfully deleted"),
        ("NamespaceFinalizersRemaining", "True", "Some content has finalizers remaining: example.org/hold"),
    )
    assert what_keeps(live) == (
        "Some content has finalizers remaining: example.org/hold;"
        " Some resources are remaining: widgets.example.org"
    )


def test_an_aggregated_api_that_is_down_is_named() -> None:
    assert what_keeps(namespace(("NamespaceDeletionDiscoveryFailure", "True", DISCOVERY))) == DISCOVERY


def test_a_namespace_and_any_object_name_their_own_finalizers_but_not_that_of_every_namespace() -> None:
    assert what_keeps(namespace()) == ""
    assert what_keeps(namespace(finalizers=["a.example/b"])) == "it has the finalizer a.example/b"
    flux = {"kind": "Kustomization", "metadata": {"finalizers": ["finalizers.fluxcd.io", "x/y"]}}
    assert what_keeps(flux) == "it has the finalizers finalizers.fluxcd.io, x/y"


def test_a_long_condition_is_cut() -> None:
    live = namespace(("NamespaceContentRemaining", "True", "kind.example " * 400))
    assert len(what_keeps(live)) == LONGEST
