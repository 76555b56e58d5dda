"""The clusters that a system selects."""

from __future__ import annotations

import pytest

from tests.support.resolved_fleets import GOOD, with_change, with_files


def test_a_system_selects_clusters_by_name_and_by_label() -> None:
    labelled = GOOD["clusters/two/cluster.yaml"].replace(
        "  name: two\n", "  name: two\n  labels: {a: b, c: d}\n"
    )
    system = GOOD["systems/shop.yaml"].replace("names: [one]", "{}").replace("{}", "matchLabels: {a: b}")
    both = system.replace("matchLabels", "names: [one]\n    matchLabels")
    assert with_files(clusters__two__cluster=labelled, systems__shop=system).systems["shop"].clusters == (
        "two",
    )
    assert with_files(clusters__two__cluster=labelled, systems__shop=both).systems["shop"].clusters == (
        "one",
        "two",
    )


@pytest.mark.parametrize(
    ("labels", "clusters"),
    [
        ("roadstead.dev/environment: dev", ("one",)),
        ("roadstead.dev/class: web", ("one",)),
        ("roadstead.dev/class: plain", ()),
        ("roadstead.dev/environment: dev, roadstead.dev/class: web", ("one",)),
        ("roadstead.dev/environment: dev, team: shop", ()),
        ("roadstead.dev/environment: prod", ()),
    ],
)
def test_a_system_selects_clusters_by_environment_and_class(labels: str, clusters: tuple[str, ...]) -> None:
    fleet = with_change("systems/shop.yaml", "names: [one]", f"matchLabels: {{{labels}}}")
    assert fleet.problems == ()
    assert fleet.systems["shop"].clusters == clusters


def test_two_systems_cannot_have_one_namespace_on_a_cluster() -> None:
    fleet = with_files(systems__store=GOOD["systems/shop.yaml"].replace("name: shop", "name: store"))
    assert list(fleet.systems) == ["shop"]
    assert [str(problem) for problem in fleet.problems] == [
        "systems/store.yaml:9:16 spec.namespaces[0]: shop on one belongs to the system shop; "
        "choose another namespace"
    ]
