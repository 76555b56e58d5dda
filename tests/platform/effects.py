"""Effects of a change, by the objects that it concerns."""

from __future__ import annotations

from typing import Any

from shared.platform.changes.comparison import compare
from shared.platform.changes.consequences import consequences
from shared.platform.changes.effects import Cause, Consequence, Fate
from shared.platform.inventory import Inventory
from tests.platform.inventories import (
    inventory,
    owner,
)

KEEP = {"prune": "disabled"}
FORCE = {"force": "enabled"}


def found(before: Inventory, after: Inventory) -> dict[str, Consequence]:
    """Return the consequences by their objects, and the Kustomization where several have one."""
    every = consequences(compare(before, after))
    names = [consequence.id for consequence in every]
    return {
        f"{consequence.id}{f' of {consequence.owner.name}' * (names.count(consequence.id) > 1)}": consequence
        for consequence in every
    }


def effects(before: Inventory, after: Inventory) -> dict[str, tuple[Fate, Cause]]:
    return {name: (known.effect, known.cause) for name, known in found(before, after).items()}


def change_of(old: Any, new: Any, **spec: Any) -> Consequence:
    known = consequences(compare(inventory(owner("p", old, **spec)), inventory(owner("p", new, **spec))))
    assert len(known) == 1
    return known[0]
