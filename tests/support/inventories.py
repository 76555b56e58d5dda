"""The inventory of a cluster, built with the real kustomize."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shared.language.desired import Desired
from shared.platform.builds.build import Builds
from shared.platform.builds.inventories import Inventories
from shared.platform.inventory import Inventory
from tests.support.arm_bodies import desired
from tests.support.kustomize_programs import kustomize_program
from tests.support.platform_trees import tree_of

FLUX = {"repository": "https://github.com/example/fleet", "path": "./platform"}


def inventory_of(
    texts: Mapping[str, str],
    cluster: Desired | None = None,
    *,
    links: Iterable[str] = (),
    facts: Mapping[str, str] | None = None,
) -> Inventory:
    every = Inventories(tree_of(texts, links), Builds(kustomize_program().build))
    return every.of(cluster or desired(flux=FLUX), facts)
