"""What may be deleted is said to be: against a model of kustomize-controller, in any order of its reconciles.

The model follows ``internal/controller/kustomization_controller.go`` of kustomize-controller: a Kustomization
applies the newest commit with the spec that it has at that moment, then deletes what left its inventory and
still has its label.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from shared.frozen import dataclass, field
from shared.json_tree import Json
from shared.platform.changes.guards import PlatformChange, judge
from shared.platform.changes.objects import is_owner, is_protected, is_skipped
from shared.platform.inventory import Inventory, ObjectId, Owner
from tests.platform.inventories import asked_for, claim, deployment, inventory, manifest, owner

NAMES = ("one", "two", "three", "four")
CONTENTS = (
    manifest("Namespace", "space"),
    claim("space/data"),
    deployment("space/app"),
    claim("other/data"),
    deployment("other/app"),
    claim("other/protected", marks={"prune": "disabled"}),
    deployment("other/skipped", marks={"reconcile": "disabled", "prune": "disabled"}),
)


def platform(random_: random.Random) -> Inventory:
    """Return Kustomizations below a root, some below others, each with some objects."""
    root = owner("root", *random_.sample(CONTENTS, 1), prune=random_.random() < 0.9)
    made: list[Owner] = []
    inside: dict[str, list[Json]] = {"root": [built.manifest for built in root.objects.values()]}
    for name in random_.sample(NAMES, random_.randint(0, 4)):
        spec: dict[str, Any] = {
            "prune": random_.random() < 0.8,
            "suspend": random_.random() < 0.15,
            "path": f"platform/{random_.choice((name, f'{name}-new'))}",
        }
        if random_.random() < 0.4:
            spec["deletionPolicy"] = random_.choice(["Orphan", "MirrorPrune", "Delete", "WaitForTermination"])
        child = owner(name, **spec)
        inside[name] = list(random_.sample(CONTENTS, random_.randint(1, 4)))
        inside[random_.choice(["root", *[known.id.name for known in made]])].append(asked_for(child))
        made.append(child)
    return inventory(*[owner(known.id.name, *inside[known.id.name], **known.spec) for known in (root, *made)])


@dataclass(frozen=True)
class Cluster:
    """Objects with the Kustomization whose label they have, and Kustomizations with their inventories."""

    commit: Inventory
    live: dict[ObjectId, tuple[Json, ObjectId]] = field(default_factory=dict)
    specs: dict[ObjectId, Json] = field(default_factory=dict)
    inventories: dict[ObjectId, frozenset[ObjectId]] = field(default_factory=dict)
    deleted: set[ObjectId] = field(default_factory=set)

    def reconcile(self, name: ObjectId) -> None:
        spec = self.specs.get(name)
        if spec is None or spec.get("suspend"):
            return
        objects = self._built(str(spec["path"]))
        if objects is None:
            return  # the path is not there: it stays as it is
        for known, given in objects.items():
            if not is_skipped(given):
                self.live[known] = given, name
                if is_owner(known):
                    self.specs[known] = given["spec"]
        stale = self.inventories.get(name, frozenset()) - objects.keys()
        self.inventories[name] = frozenset(objects)
        if spec.get("prune"):
            self._prune(name, stale)

    def _built(self, path: str) -> Mapping[ObjectId, Json] | None:
        same = [given for given in self.commit.owners.values() if given.spec["path"] == path]
        return {known: built.manifest for known, built in same[0].objects.items()} if same else None

    def _prune(self, owner_name: ObjectId, names: frozenset[ObjectId]) -> None:
        for name in sorted(names):
            given, label = self.live.get(name, ({}, None))
            if label == owner_name and not is_protected(given):
                self.delete(name)

    def delete(self, name: ObjectId) -> None:
        if name not in self.live and name not in self.specs:
            return
        self.live.pop(name, None)
        self.deleted.add(name)
        spec = self.specs.pop(name, None)
        if spec is not None and not spec.get("suspend"):
            policy = spec.get("deletionPolicy", "MirrorPrune")
            if policy in ("Delete", "WaitForTermination") or (policy == "MirrorPrune" and spec.get("prune")):
                self._prune(name, self.inventories.pop(name, frozenset()))
        if (name.group, name.kind) == ("", "Namespace"):
            for known in [known for known in (*self.live, *self.specs) if known.namespace == name.name]:
                self.delete(known)


def applied(before: Inventory, after: Inventory, random_: random.Random) -> Cluster:
    """Return a cluster that has all of ``before``, and whose Flux gets ``after`` now."""
    cluster = Cluster(after)
    owners = list(before.owners.values())
    random_.shuffle(owners)
    for given in owners:
        cluster.specs[given.id] = given.spec
        cluster.inventories[given.id] = frozenset(given.objects)
        for name, built in given.objects.items():
            if not is_skipped(built.manifest):
                cluster.live[name] = built.manifest, given.id
    return cluster


def orders(before: Inventory, after: Inventory, random_: random.Random) -> Iterator[Cluster]:
    for _ in range(4):
        cluster = applied(before, after, random_)
        for _ in range(30):
            known = sorted(cluster.specs)
            if known:
                cluster.reconcile(random_.choice(known))
        yield cluster


def destroyed(change: PlatformChange) -> set[ObjectId]:
    found = set[ObjectId]()
    for consequence in change.consequences:
        if consequence.destroys:
            found |= {consequence.id, *consequence.takes}
    return found


@pytest.mark.lives
def test_what_flux_deletes_in_any_order_is_said_before() -> None:
    for seed in range(300):
        random_ = random.Random(seed)
        before, after = platform(random_), platform(random_)
        change = judge(before, after, 20)
        if change.is_refused:
            continue
        had = {name for given in before.owners.values() for name in given.objects}
        for cluster in orders(before, after, random_):
            assert cluster.deleted & had <= destroyed(change), seed


def test_what_changes_nothing_deletes_nothing() -> None:
    for seed in range(100):
        random_ = random.Random(seed)
        same = platform(random_)
        places = [name for given in same.owners.values() for name in given.objects]
        for cluster in orders(same, same, random_):
            assert len(places) > len({*places}) or not cluster.deleted, seed
        assert not judge(same, same, 0).consequences, seed
