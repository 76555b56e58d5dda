"""What a change does on a cluster, by its effect."""

from __future__ import annotations

from typing import Any

import pytest

from shared.frozen import replace
from shared.language.resolve.problems import Problem
from shared.platform.changes.effects import Cause, Fate
from tests.platform.effects import KEEP, change_of, effects, found
from tests.platform.inventories import (
    asked_for,
    claim,
    definition,
    deployment,
    inventory,
    manifest,
    owner,
    owner_id,
    stateful_set,
)

# What leaves git


def test_what_leaves_a_kustomization_that_prunes_is_deleted() -> None:
    before = inventory(owner("p", claim("a/b"), deployment("a/c")))
    assert effects(before, inventory(owner("p", deployment("a/c")))) == {
        "PersistentVolumeClaim a/b": (Fate.DELETED, Cause.NONE)
    }


@pytest.mark.parametrize(
    ("old", "new", "marks", "expected"),
    [
        ({"prune": False}, {"prune": False}, {}, (Fate.KEPT, Cause.PRUNE_OFF)),
        # Both run at the same commit, and the one with the old spec may be first.
        ({"prune": True}, {"prune": False}, {}, (Fate.DELETED, Cause.NONE)),
        ({"prune": False}, {"prune": True}, {}, (Fate.DELETED, Cause.NONE)),
        ({}, {}, KEEP, (Fate.KEPT, Cause.PRUNE_DISABLED)),
        ({}, {}, {"prune": "Disabled"}, (Fate.KEPT, Cause.PRUNE_DISABLED)),
        # An object that is not applied never gets its annotations.
        ({}, {}, {"reconcile": "disabled"}, (Fate.DELETED, Cause.NONE)),
        ({}, {}, {**KEEP, "reconcile": "disabled"}, (Fate.DELETED, Cause.NONE)),
        ({"suspend": True}, {"suspend": True}, {}, (Fate.UNREACHED, Cause.SUSPENDED)),
        ({}, {"suspend": True}, {}, (Fate.DELETED, Cause.NONE)),
        ({"deletionPolicy": "Orphan"}, {"deletionPolicy": "Orphan"}, {}, (Fate.DELETED, Cause.NONE)),
    ],
)
def test_a_removed_object_stays_only_where_flux_leaves_it(
    old: dict[str, Any], new: dict[str, Any], marks: dict[str, str], expected: tuple[Fate, Cause]
) -> None:
    rest = deployment("a/c")
    before = inventory(owner("p", claim("a/b", marks=marks), rest, **old))
    after = inventory(owner("p", rest, **new))
    assert effects(before, after)["PersistentVolumeClaim a/b"] == expected


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ({}, None),
        ({"deletionPolicy": "Orphan"}, Cause.ORPHANED),
        ({"deletionPolicy": "MirrorPrune"}, None),
        ({"deletionPolicy": "WaitForTermination"}, None),
        ({"prune": False}, Cause.PRUNE_OFF),
        ({"prune": False, "deletionPolicy": "Delete"}, None),
        ({"prune": False, "deletionPolicy": "MirrorPrune"}, Cause.PRUNE_OFF),
        ({"suspend": True}, Cause.SUSPENDED),
    ],
)
def test_a_removed_kustomization_takes_what_it_owns_along_as_its_policy_says(
    spec: dict[str, Any], cause: Cause | None
) -> None:
    gone = owner("gone", claim("a/b"), **spec)
    before, after = inventory(owner("p", asked_for(gone)), gone), inventory(owner("p", deployment("a/c")))
    known = found(before, after)
    removed = known["Kustomization flux-system/gone"]
    assert removed.effect is Fate.DELETED
    assert [str(name) for name in removed.takes] == ([] if cause else ["PersistentVolumeClaim a/b"])
    inside = known["PersistentVolumeClaim a/b"]
    assert (inside.effect, inside.cause) == ((Fate.KEPT, cause) if cause else (Fate.DELETED, Cause.NONE))


def test_a_renamed_kustomization_takes_along_what_the_new_one_has_too() -> None:
    objects = manifest("Namespace", "monitoring"), claim("monitoring/samples")
    old, new = owner("monitoring", *objects), owner("observability", *objects, path="platform/monitoring")
    known = found(inventory(owner("p", asked_for(old)), old), inventory(owner("p", asked_for(new)), new))
    removed = known["Kustomization flux-system/monitoring"]
    assert (removed.effect, removed.other) == (Fate.DELETED, owner_id("observability"))
    assert [name.kind for name in removed.takes] == ["Namespace", "PersistentVolumeClaim"]
    assert known["Namespace monitoring of monitoring"].effect is Fate.MOVED
    added = known["Kustomization flux-system/observability"]
    assert (added.effect, added.other) == (Fate.ADDED, owner_id("monitoring"))


def test_a_rename_after_a_commit_with_orphan_touches_no_object() -> None:
    objects = manifest("Namespace", "monitoring"), claim("monitoring/samples")
    old = owner("monitoring", *objects, deletionPolicy="Orphan")
    new = owner("observability", *objects, path="platform/monitoring")
    known = found(inventory(owner("p", asked_for(old)), old), inventory(owner("p", asked_for(new)), new))
    assert not [name for name, consequence in known.items() if consequence.takes]
    assert {consequence.effect for consequence in known.values()} == {
        Fate.DELETED,  # the Kustomization itself
        Fate.KEPT,
        Fate.ADDED,
    }


def test_a_kustomization_that_another_one_applies_now_is_deleted_in_between() -> None:
    inner = owner("inner", claim("a/b"))
    before = inventory(owner("one", asked_for(inner), deployment("a/c")), owner("two"), inner)
    after = inventory(owner("one", deployment("a/c")), owner("two", asked_for(inner)), inner)
    known = found(before, after)["Kustomization flux-system/inner"]
    assert known.effect is Fate.MOVED
    assert [str(name) for name in known.takes] == ["PersistentVolumeClaim a/b"]


def test_a_kustomization_that_applies_itself_goes_when_its_path_moves() -> None:
    # Aviator-Coding/home-ops#1415 (2026-08-24): a folder without a kustomization.yaml has its own ks.yaml.
    own = owner("dns", deployment("a/b"), path="platform/old")
    before = inventory(owner("dns", deployment("a/b"), asked_for(own), path="platform/old"))
    known = found(before, inventory(owner("dns", deployment("a/b"), path="platform/new")))
    assert known["Kustomization flux-system/dns"].effect is Fate.MOVED
    assert known["Kustomization flux-system/dns"].takes


def test_a_removed_kustomization_that_is_not_pruned_stays_with_all_it_owns() -> None:
    gone = owner("gone", claim("a/b"))
    before = inventory(owner("p", asked_for(gone), prune=False), gone)
    known = effects(before, inventory(owner("p", deployment("a/c"), prune=False)))
    assert known["Kustomization flux-system/gone"] == (Fate.KEPT, Cause.PRUNE_OFF)
    assert known["PersistentVolumeClaim a/b"] == (Fate.KEPT, Cause.PRUNE_OFF)


def test_an_object_that_moves_is_deleted_and_created_again() -> None:
    rest = deployment("a/c"), deployment("a/d")
    before = inventory(owner("core", claim("a/b"), rest[0]), owner("edge", rest[1]))
    after = inventory(owner("core", rest[0]), owner("edge", claim("a/b"), rest[1]))
    known = found(before, after)
    moved = known["PersistentVolumeClaim a/b of core"]
    assert (moved.effect, moved.other) == (Fate.MOVED, owner_id("edge"))


def test_an_object_that_is_not_pruned_moves_without_a_difference() -> None:
    rest = deployment("a/c"), deployment("a/d")
    kept = claim("a/b", marks=KEEP)
    before = inventory(owner("core", kept, rest[0]), owner("edge", rest[1]))
    after = inventory(owner("core", rest[0]), owner("edge", kept, rest[1]))
    assert effects(before, after) == {"PersistentVolumeClaim a/b": (Fate.KEPT, Cause.PRUNE_DISABLED)}
    changed = inventory(owner("core", rest[0]), owner("edge", claim("a/b", "5Gi", marks=KEEP), rest[1]))
    assert effects(before, changed)["PersistentVolumeClaim a/b of edge"] == (
        Fate.STUCK,
        Cause.FIXED_FIELD,
    )


def test_when_one_of_two_owners_leaves_an_object_it_is_deleted() -> None:
    # argoproj/argo-cd#22607 (2025-04-08)
    both = manifest("Namespace", "shared")
    rest = deployment("a/c")
    before = inventory(owner("core", both), owner("edge", both, rest))
    after = inventory(owner("core", both), owner("edge", rest))
    assert effects(before, after) == {"Namespace shared": (Fate.MOVED, Cause.NONE)}


# What goes with an object


def test_a_namespace_takes_all_in_it_and_what_kustomizations_in_it_own() -> None:
    team = owner("team", deployment("elsewhere/d"))
    before = inventory(owner("core", manifest("Namespace", "flux-system"), claim("a/b")), team)
    after = inventory(owner("core", claim("a/b")), team)
    root = found(before, after)["Namespace flux-system"].takes
    before = inventory(
        owner("core", manifest("Namespace", "flux-system"), claim("a/b"), asked_for(team)), team
    )
    after = inventory(owner("core", claim("a/b"), asked_for(team)), team)
    taken = found(before, after)["Namespace flux-system"].takes
    for names in (root, taken):  # whether Roadstead or another Kustomization applies it
        assert {"Deployment elsewhere/d", "Kustomization flux-system/team"} <= {*map(str, names)}


def test_the_definition_of_kustomizations_takes_all_of_them_with_what_they_own() -> None:
    spec = {"group": "kustomize.toolkit.fluxcd.io", "names": {"kind": "Kustomization"}}
    flux = manifest("CustomResourceDefinition", "kustomizations", "apiextensions.k8s.io/v1", spec=spec)
    before = inventory(owner("flux", flux, deployment("a/b")), owner("team", claim("a/c")))
    after = inventory(owner("flux", deployment("a/b")), owner("team", claim("a/c")))
    taken = {str(name) for name in found(before, after)["CustomResourceDefinition kustomizations"].takes}
    assert {"Kustomization flux-system/team", "PersistentVolumeClaim a/c"} <= taken


def test_a_kustomization_that_gets_another_source_may_lose_what_it_owns() -> None:
    fleet = owner("team", claim("a/b"))
    other = owner("team", sourceRef={"kind": "GitRepository", "name": "team"})
    ours, theirs = inventory(owner("p", asked_for(fleet)), fleet), inventory(owner("p", asked_for(other)))
    lost = found(ours, theirs)["Kustomization flux-system/team"]
    assert (lost.effect, lost.cause) == (Fate.UNKNOWN, Cause.ELSEWHERE)
    assert [str(name) for name in lost.takes] == ["PersistentVolumeClaim a/b"]
    assert effects(theirs, ours)["Kustomization flux-system/team"] == (Fate.UNKNOWN, Cause.ELSEWHERE)


def test_a_definition_takes_every_object_of_its_kind() -> None:
    backup = manifest("Backup", "a/nightly", "data.example.com/v1")
    before = inventory(owner("core", definition("Backup"), claim("a/b")), owner("edge", backup))
    after = inventory(owner("core", claim("a/b")), owner("edge", backup))
    assert [
        str(name) for name in found(before, after)["CustomResourceDefinition backups.data.example.com"].takes
    ] == ["Backup a/nightly"]


# What is harmless


def test_a_generated_object_is_followed_by_one_with_another_hash() -> None:
    old, new = (manifest("ConfigMap", f"a/rules-{hash_}") for hash_ in ("5h2mk4tc7b", "9d8f6g2h4k"))
    known = found(inventory(owner("p", old)), inventory(owner("p", new)))
    assert list(known) == ["ConfigMap a/rules-5h2mk4tc7b"]
    assert known["ConfigMap a/rules-5h2mk4tc7b"].effect is Fate.RENEWED


def test_below_a_suspended_kustomization_nothing_is_reached() -> None:
    before = inventory(owner("p", deployment("a/b", "x:1"), suspend=True))
    after = inventory(owner("p", deployment("a/b", "x:2"), suspend=True))
    known = found(before, after)["Deployment a/b"]
    assert (known.effect, known.cause, known.detail) == (
        Fate.UNREACHED,
        Cause.SUSPENDED,
        "platform/p.yaml",
    )


def test_a_suspended_kustomization_creates_no_other() -> None:
    new = owner("new", deployment("a/b"))
    before = inventory(owner("p", deployment("a/c"), suspend=True))
    after = inventory(owner("p", deployment("a/c"), asked_for(new), suspend=True), new)
    assert effects(before, after) == {
        "Kustomization flux-system/new": (Fate.UNREACHED, Cause.SUSPENDED),
        "Deployment a/b": (Fate.UNREACHED, Cause.SUSPENDED),
    }


def test_a_kustomization_that_resumes_says_so() -> None:
    same = deployment("a/b")
    before, after = inventory(owner("p", same, suspend=True)), inventory(owner("p", same))
    assert effects(before, after) == {"Kustomization flux-system/p": (Fate.CHANGED, Cause.RESUMED)}


def test_an_object_that_is_not_reconciled_is_not_reached() -> None:
    marks = {"reconcile": "disabled"}
    change = change_of(deployment("a/b", "x:1", marks=marks), deployment("a/b", "x:2", marks=marks))
    assert (change.effect, change.cause) == (Fate.UNREACHED, Cause.NOT_RECONCILED)


# What is not known, and what is refused


def test_a_tree_that_cannot_be_built_counts_as_removed_with_all_it_reaches() -> None:
    inner = owner("inner", claim("a/b"))
    before = inventory(owner("p", asked_for(inner), deployment("a/c")), inner)
    known = found(before, inventory(owner("p", unbuilt="no kustomize here")))
    lost = known["Kustomization flux-system/p"]
    assert (lost.effect, lost.cause, lost.detail) == (
        Fate.UNKNOWN,
        Cause.UNBUILT,
        "no kustomize here",
    )
    assert [str(name) for name in lost.takes] == [
        "PersistentVolumeClaim a/b",
        "Deployment a/c",
        "Kustomization flux-system/inner",
    ]
    assert known["Kustomization flux-system/inner"].effect is Fate.UNKNOWN


@pytest.mark.parametrize(
    ("spec", "effect"),
    [
        ({}, Fate.UNKNOWN),
        ({"prune": False}, Fate.CHANGED),
        ({"suspend": True}, Fate.CHANGED),
    ],
)
def test_a_tree_that_is_never_built_may_lose_what_flux_would_prune(
    spec: dict[str, Any], effect: Fate
) -> None:
    old, new = (replace(owner("p", unbuilt="no kustomize", **spec), digest=digest) for digest in "ab")
    assert effects(inventory(old), inventory(new)) == {"Kustomization flux-system/p": (effect, Cause.UNBUILT)}


def test_a_kustomization_that_would_lose_all_is_emptied_and_not_removed() -> None:
    inner = owner("inner", claim("a/b"))
    before = inventory(owner("p", asked_for(inner), deployment("a/c")), inner)
    known = effects(before, inventory(owner("p")))
    assert known == {"Kustomization flux-system/p": (Fate.EMPTIED, Cause.NONE)}


def test_a_path_that_cannot_be_built_is_refused_and_not_a_removal() -> None:
    inner = owner("inner", claim("a/b"))
    before = inventory(owner("p", asked_for(inner), deployment("a/c")), inner)
    problem = Problem("platform/p.yaml", 1, 1, "spec.path", "there is no folder")
    gone = replace(owner("p", unbuilt="there is no folder"), problems=(problem,))
    for known in (effects(before, inventory(gone)), effects(inventory(), inventory(gone))):
        assert known == {"Kustomization flux-system/p": (Fate.BROKEN, Cause.UNBUILT)}


def test_the_same_inventory_has_no_consequence() -> None:
    same = inventory(owner("p", claim("a/b"), stateful_set(), definition("Backup")))
    assert not found(same, same)
