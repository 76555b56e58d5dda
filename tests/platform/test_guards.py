"""Which changes of a platform need an approval or are refused, and the way without loss."""

from __future__ import annotations

import random
from typing import Any

import pytest

from shared.platform.changes.effects import DESTROYING, Fate
from shared.platform.changes.fixed_fields import FIXED
from shared.platform.changes.guards import LOSSES, SENTENCES, GuardKind, Hint, judge
from shared.platform.changes.report import sections_of, text_of
from shared.platform.inventory import Inventory
from tests.platform.inventories import (
    asked_for,
    claim,
    definition,
    deployment,
    inventory,
    manifest,
    owner,
    release,
    stateful_set,
)

REST = deployment("a/rest")


def guards(before: Inventory, after: Inventory, budget: int = 20) -> list[tuple[str, GuardKind, Hint]]:
    return [(str(guard.id), guard.kind, guard.hint) for guard in judge(before, after, budget).guards]


@pytest.mark.parametrize(
    ("lost", "hint"),
    [
        (manifest("Namespace", "legacy"), Hint.REMOVE),
        (definition("Backup"), Hint.REMOVE),
        (claim("a/b"), Hint.REMOVE),
        (stateful_set(), Hint.REMOVE),
        (release("a/x"), Hint.SUSPEND),
    ],
)
def test_what_no_commit_brings_back_needs_an_approval(lost: dict[str, object], hint: Hint) -> None:
    before, after = inventory(owner("p", lost, REST)), inventory(owner("p", REST))
    assert [known[1:] for known in guards(before, after)] == [(GuardKind.LOSS, hint)]
    assert judge(before, after, 20).needs_approval
    assert not judge(after, before, 20).guards


def test_a_renamed_kustomization_needs_one_approval_with_the_way_in_two_commits() -> None:
    objects = manifest("Namespace", "monitoring"), claim("monitoring/samples"), deployment("monitoring/agent")
    old, new = owner("monitoring", *objects), owner("observability", *objects, path="platform/monitoring")
    change = judge(inventory(owner("p", asked_for(old)), old), inventory(owner("p", asked_for(new)), new), 20)
    (guard,) = change.guards
    assert guard.cause == (
        "Kustomization flux-system/monitoring is deleted, with what it owns: Namespace monitoring, "
        "PersistentVolumeClaim monitoring/samples, Deployment monitoring/agent"
    )
    assert guard.remedy == (
        "first commit spec.deletionPolicy: Orphan for Kustomization flux-system/monitoring; once every "
        "cluster has applied that, rename it in a second commit"
    )


def test_the_way_in_two_commits_needs_no_approval() -> None:
    objects = manifest("Namespace", "monitoring"), claim("monitoring/samples")
    old = owner("monitoring", *objects)
    orphan = owner("monitoring", *objects, deletionPolicy="Orphan")
    new = owner("observability", *objects, path="platform/monitoring")
    steps = [inventory(owner("p", asked_for(given)), given) for given in (old, orphan, new)]
    assert not judge(steps[0], steps[1], 0).guards
    # The Kustomization itself is the one object that goes.
    assert not judge(steps[1], steps[2], 1).guards


def test_a_definition_says_whose_objects_go() -> None:
    (guard,) = judge(
        inventory(owner("p", definition("Backup"), REST)), inventory(owner("p", REST)), 20
    ).guards
    assert guard.cause == (
        "CustomResourceDefinition backups.data.example.com is deleted, with every Backup of every namespace"
    )


@pytest.mark.parametrize(
    ("claims", "loss", "hint"),
    [("Delete", "with its claims", Hint.RETAIN), ("", "its claims stay", Hint.SUCCESSOR)],
)
def test_a_stateful_set_that_is_made_again_says_whether_its_claims_go(
    claims: str, loss: str, hint: Hint
) -> None:
    old, new = (stateful_set(size, claims=claims, marks={"force": "enabled"}) for size in ("10Gi", "20Gi"))
    (guard,) = judge(inventory(owner("p", old)), inventory(owner("p", new)), 20).guards
    assert (guard.kind, guard.hint) == (GuardKind.LOSS, hint)
    assert guard.cause == (
        "StatefulSet platform/store is deleted and created again, because "
        "spec.volumeClaimTemplates[data].spec.resources.requests.storage never changes and force is on, "
        f"{loss}"
    )


@pytest.mark.parametrize("name", ["source-controller", "kustomize-controller", "helm-controller"])
def test_a_controller_of_flux_neither_goes_nor_stops_without_an_approval(name: str) -> None:
    running, stopped = deployment(f"flux-system/{name}"), deployment(f"flux-system/{name}")
    stopped["spec"] = {**stopped["spec"], "replicas": 0}
    for rest, effect in (((REST,), Fate.DELETED), ((REST, stopped), Fate.STOPPED)):
        (guard,) = judge(inventory(owner("p", REST, running)), inventory(owner("p", *rest)), 20).guards
        assert (guard.kind, guard.effect) == (GuardKind.LOSS, effect)
        assert "Flux brings no commit to these clusters any more" in guard.cause
    assert not judge(inventory(owner("p", stopped)), inventory(owner("p", running)), 20).guards


def test_without_force_it_is_refused_and_no_approval_helps() -> None:
    change = judge(
        inventory(owner("p", stateful_set("10Gi"))), inventory(owner("p", stateful_set("20Gi"))), 20
    )
    assert (change.is_refused, change.needs_approval) == (True, False)
    assert "never changes: Flux would apply nothing of Kustomization flux-system/p any more" in (
        change.guards[0].cause
    )


def test_a_target_namespace_prunes_what_was_elsewhere() -> None:
    before = inventory(owner("p", claim("a/b"), targetNamespace="a"))
    after = inventory(owner("p", claim("c/b"), targetNamespace="c"))
    (guard,) = judge(before, after, 20).guards
    assert guard.hint is Hint.PRUNE_OFF
    assert "change spec.targetNamespace in a second commit" in guard.remedy


def test_more_objects_than_the_budget_need_an_approval() -> None:
    many = [deployment(f"a/d{number}") for number in range(4)]
    before, after = inventory(owner("p", *many)), inventory(owner("p", many[0]))
    assert not judge(before, after, 3).guards
    (guard,) = judge(before, after, 2).guards
    assert guard.kind is GuardKind.BUDGET
    assert guard.cause == (
        "3 objects of a cluster are deleted, guards.deleteBudget.objects in fleet.yaml allows 2"
    )


def test_what_a_guard_covers_is_not_counted_again() -> None:
    gone = owner("gone", *[deployment(f"b/d{number}") for number in range(30)])
    before = inventory(owner("p", asked_for(gone), REST), gone)
    assert guards(before, inventory(owner("p", REST))) == [
        ("Kustomization flux-system/gone", GuardKind.LOSS, Hint.ORPHAN)
    ]


def test_generated_objects_count_for_nothing() -> None:
    old, new = (
        [manifest("ConfigMap", f"a/c{number}-{hash_}") for number in range(9)]
        for hash_ in ("5h2mk4tc7b", "9d8f6g2h4k")
    )
    assert not judge(inventory(owner("p", *old)), inventory(owner("p", *new)), 0).guards


def test_what_stays_on_the_clusters_needs_nothing() -> None:
    kept = claim("a/b", marks={"prune": "disabled"})
    before, after = inventory(owner("p", kept, REST)), inventory(owner("p", REST))
    assert not judge(before, after, 0).guards
    assert not judge(before, before, 0).consequences


def test_a_tree_that_is_not_built_counts_as_removed() -> None:
    before = inventory(owner("p", claim("a/b")))
    change = judge(before, inventory(owner("p", unbuilt="no kustomize")), 20)
    assert change.guards[0].kind is GuardKind.UNKNOWN
    assert change.needs_approval
    assert not judge(inventory(owner("p", unbuilt="no kustomize")), before, 20).guards


def test_a_path_that_is_emptied_is_refused() -> None:
    change = judge(inventory(owner("p", claim("a/b"))), inventory(owner("p")), 20)
    assert (change.is_refused, change.needs_approval) == (True, False)
    assert change.guards[0].cause == (
        "Kustomization flux-system/p would lose all of its objects: its path ./platform/p has none"
    )


def test_a_kustomization_of_another_source_may_own_anything() -> None:
    other = owner("team", sourceRef={"kind": "GitRepository", "name": "team"})
    before, after = inventory(owner("p", asked_for(other), REST)), inventory(owner("p", REST))
    (guard,) = judge(before, after, 20).guards
    assert (guard.kind, guard.hint) == (GuardKind.LOSS, Hint.ORPHAN)
    orphan = owner("team", deletionPolicy="Orphan")
    assert not judge(inventory(owner("p", asked_for(orphan), REST)), after, 20).guards


def test_another_source_needs_an_approval_in_both_directions() -> None:
    fleet = owner("team", claim("a/b"))
    other = owner("team", sourceRef={"kind": "GitRepository", "name": "team"})
    ours, theirs = inventory(owner("p", asked_for(fleet)), fleet), inventory(owner("p", asked_for(other)))
    for before, after in ((ours, theirs), (theirs, ours)):
        (guard,) = judge(before, after, 20).guards
        assert guard.cause.startswith("Kustomization flux-system/team gets another source")
        assert "change spec.sourceRef in a second commit" in guard.remedy


def test_there_is_a_sentence_for_everything_that_a_guard_is_about() -> None:
    assert LOSSES.keys() == DESTROYING
    assert SENTENCES.keys() == {*GuardKind} - {GuardKind.LOSS}


def _junk(random_: random.Random, depth: int = 4) -> Any:
    names = ("spec", "versions", "names", "kind", "replicas", "chart", "template", "containers", "schema")
    keys = (*names, "requests", "storage", "volumeClaimTemplates", "metadata", "ref", "sourceRef", "name")
    if depth == 0 or random_.random() < 0.3:
        return random_.choice([None, "", "x", 0, 1.5, True, [], {}, "1e99", "10Gi"])
    if random_.random() < 0.3:
        return [_junk(random_, depth - 1) for _ in range(random_.randint(0, 3))]
    return {key: _junk(random_, depth - 1) for key in random_.sample(keys, 4)}


@pytest.mark.lives
def test_a_manifest_of_any_form_is_compared() -> None:
    for seed in range(300):
        random_ = random.Random(seed)
        kinds = [
            ("", "Service"),
            ("", "Pod"),
            ("", "Secret"),
            ("", "PersistentVolumeClaim"),
            *[(row.group, row.kind) for row in FIXED],
            ("helm.toolkit.fluxcd.io", "HelmRelease"),
            ("source.toolkit.fluxcd.io", "OCIRepository"),
            ("source.toolkit.fluxcd.io", "GitRepository"),
            ("kustomize.toolkit.fluxcd.io", "Kustomization"),
        ]
        group, kind = random_.choice(kinds)
        sides = []
        for _ in range(2):
            given = manifest(kind, "a/b", f"{group}/v1" if group else "v1", spec=_junk(random_))
            given["metadata"] |= {"labels": _junk(random_, 1), "annotations": _junk(random_, 1)}
            sides.append(inventory(owner("p", given, REST), *[owner("q")] * random_.randint(0, 1)))
        for before, after in (sides, reversed(sides), (sides[0], inventory(owner("p", REST)))):
            change = judge(before, after, 0)
            assert all(guard.cause and guard.remedy for guard in change.guards), seed
            for section in sections_of({"one": change}, {}):
                assert section.heading, seed
                assert list(text_of(section, 80)), seed
