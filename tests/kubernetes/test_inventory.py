"""The inventory of Flux's components: what it lists, and in which order former ones go."""

from __future__ import annotations

import pytest

from shared.kubernetes.flux_objects import in_order_of_removal, inventory_of, is_ours, listed_in, removable
from shared.resource_ids import ObjectRef

ACCOUNT = ObjectRef("v1", "ServiceAccount", "a", "flux-system")
CONTROLLER = ObjectRef("apps/v1", "Deployment", "a", "flux-system")
DEFINITION = ObjectRef("apiextensions.k8s.io/v1", "CustomResourceDefinition", "as.example.org")
NAMESPACE = ObjectRef("v1", "Namespace", "flux-system")
ROLE = ObjectRef("rbac.authorization.k8s.io/v1", "ClusterRole", "a")


def test_an_inventory_is_read_as_it_was_written_in_any_order() -> None:
    refs = frozenset({ACCOUNT, CONTROLLER, DEFINITION})
    assert listed_in(inventory_of(refs)) == refs
    assert inventory_of([ACCOUNT, ROLE]) == inventory_of([ROLE, ACCOUNT])
    assert is_ours(inventory_of(refs))


@pytest.mark.parametrize("content", ["", "[", '"text"', '[{"kind": "Secret"}]'])
def test_an_unreadable_inventory_lists_nothing_so_that_nothing_is_removed(content: str) -> None:
    assert listed_in({"metadata": {}, "data": {"objects": content}}) == frozenset()
    assert listed_in({"metadata": {}}) == frozenset()


def test_workloads_go_first_definitions_last_and_namespaces_never() -> None:
    refs = [DEFINITION, ROLE, NAMESPACE, ACCOUNT, CONTROLLER]
    assert in_order_of_removal(refs) == [CONTROLLER, ROLE, ACCOUNT, DEFINITION]
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}}
    assert removable([manifest]) == frozenset()
