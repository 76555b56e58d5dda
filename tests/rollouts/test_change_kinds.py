"""Which strategy a commit has, by the kinds of changes that it makes."""

from __future__ import annotations

import pytest

from shared.language.model.rollout import Strategy
from shared.plan.differences import FieldChange
from shared.plan.plan import Action, Item
from shared.rollouts.candidates import kind_of, strategy_name

CAREFUL = Strategy(name="careful", changes=("versions",))
ORDINARY = Strategy(name="ordinary", changes=("any", "nodePools"))
QUICK = Strategy(name="quick", changes=("platform",))
IN_ORDER = (CAREFUL, ORDINARY, QUICK)


def change(path: str) -> FieldChange:
    return FieldChange(path, "old", "new")


def update(*paths: str) -> Item:
    return Item("one", Action.UPDATE, changes=tuple(map(change, paths)))


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("spec.kubernetesVersion", "versions"),
        ("spec.minNodeImageVersion", "versions"),
        ("spec.nodePools[apps].orchestratorVersion", "versions"),
        ("spec.nodePools[apps].nodeImageVersion", "versions"),
        ("spec.nodePools[apps].count", "nodePools"),
        ("spec.nodePools[apps]", "nodePools"),
        ("spec.flux.path", "platform"),
        ("spec.flux", "platform"),
        ("spec.bootstrapSecrets[age].keys", "platform"),
        ("systems[shop].quota", "platform"),
        ("spec.tags.flux", "any"),
        ("spec.fluxed", "any"),
        ("spec.networkProfile.podCidr", "any"),
    ],
)
def test_a_field_is_of_one_kind(path: str, kind: str) -> None:
    assert kind_of(change(path)) == kind


@pytest.mark.parametrize(
    ("updates", "name"),
    [
        ([update("spec.flux.path")], "quick"),
        ([update("spec.tags.a")], "ordinary"),
        ([update("spec.flux.path", "spec.tags.a")], "ordinary"),
        ([update("spec.flux.path"), update("spec.kubernetesVersion")], "careful"),
        ([update("spec.flux.path", "spec.suspend")], "quick"),
        ([update("spec.suspend")], "ordinary"),
    ],
)
def test_a_commit_has_the_first_strategy_that_names_one_of_its_kinds(updates: list[Item], name: str) -> None:
    assert strategy_name(IN_ORDER, updates) == name


def test_a_kind_that_no_strategy_names_is_any() -> None:
    assert (
        strategy_name((CAREFUL, Strategy(name="rest", changes=("any",))), [update("spec.flux.path")])
        == "rest"
    )


def test_a_fleet_with_the_same_stages_for_all_changes_names_no_strategy() -> None:
    assert strategy_name((), [update("spec.kubernetesVersion")]) == ""
