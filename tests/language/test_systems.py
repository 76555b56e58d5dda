"""The clusters that a system selects."""

from __future__ import annotations

import pytest

from tests.support.resolved_fleets import GOOD, with_change, with_files
from tests.support.sources import WITH_IDENTITY

RESERVED = (
    "9:16 spec.namespaces[0]: must be a namespace of the team's own, not default, flux-system or kube-*"
)


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


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "[shop]",
            "[kube-system]",
            f"{RESERVED}, got kube-system",
        ),
        (
            "[shop]",
            "[default]",
            f"{RESERVED}, got default",
        ),
        (
            "[shop]\n",
            "[shop]\n  groups: [{id: shop-team}]\n",
            "10:13 spec.groups[0].id: must be the object id of an Entra group, such as "
            "00000000-0000-0000-0000-000000000001, got shop-team",
        ),
        ("[shop]", "[shop, shop]", "9:3 spec.namespaces: has shop twice; keep one"),
        (
            "example/shop\n",
            "example/shop\n    environments: {pord: {branch: stable}}\n",
            "12:20 spec.source.environments.pord: there is no environment pord; did you mean prod?",
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_file_line_and_field(old: str, new: str, problem: str) -> None:
    fleet = with_change("systems/shop.yaml", old, new)
    assert [str(problem) for problem in fleet.problems] == [f"systems/shop.yaml:{problem}"]
    assert set(fleet.clusters) == {"one", "two"}


def test_a_cluster_has_its_systems_in_its_document_and_not_their_selectors() -> None:
    fleet = with_files()
    assert [system["name"] for system in fleet.clusters["one"].document()["systems"]] == ["shop"]
    assert "clusters" not in fleet.clusters["one"].document()["systems"][0]
    assert "systems" not in fleet.clusters["two"].document()


IDENTITY = "00000000-0000-0000-0000-00000000000a"


@pytest.mark.parametrize("place", ["", "environments.dev."])
def test_a_system_does_not_pull_as_the_identity_of_the_flux_of_one_of_its_clusters(place: str) -> None:
    flux = f"{WITH_IDENTITY}  flux: {{workloadIdentity: {{clientId: {IDENTITY.upper()}}}}}\n"
    one = GOOD["clusters/one/cluster.yaml"].replace("spec:\n", f"spec:\n{flux}")
    own = f"{{clientId: {IDENTITY}, tenantId: {IDENTITY}}}"
    identity = own.replace("0000a", "0000b", 1) if place else own
    more = f"    provider: azure\n    workloadIdentity: {identity}\n"
    more += f"    environments: {{dev: {{workloadIdentity: {own}}}}}\n" if place else ""
    fleet = with_files(clusters__one__cluster=one, systems__shop=GOOD["systems/shop.yaml"] + more)
    [problem] = [str(problem) for problem in fleet.problems]
    assert (
        f"spec.source.{place}workloadIdentity.clientId: is the identity of the platform's Flux on one"
        in problem
    )
    assert fleet.clusters["one"].systems == ()
    other = with_files(systems__shop=GOOD["systems/shop.yaml"] + more)
    assert other.problems == ()


def test_a_system_names_no_cluster_in_which_roadstead_applies_nothing() -> None:
    one = GOOD["clusters/one/cluster.yaml"].replace("spec:\n", "spec:\n  flux: {install: extension}\n")
    fleet = with_files(clusters__one__cluster=one)
    assert [str(problem) for problem in fleet.problems] == [
        "systems/shop.yaml:8:13 spec.clusters.names[0]: the flux.install of one is extension: Roadstead "
        "applies no system there; remove it"
    ]
    assert "one" in fleet.clusters
    assert fleet.clusters["one"].systems == ()


def test_a_cluster_in_which_roadstead_applies_nothing_changes_no_system_that_its_labels_match() -> None:
    two = GOOD["clusters/two/cluster.yaml"].replace("  name: two\n", "  name: two\n  labels: {a: b}\n")
    two = two.replace("spec:\n", "spec:\n  flux: {install: extension}\n")
    system = GOOD["systems/shop.yaml"].replace("names: [one]", "names: [one]\n    matchLabels: {a: b}")
    fleet = with_files(clusters__two__cluster=two, systems__shop=system)
    assert fleet.problems == ()
    assert fleet.systems["shop"].clusters == ("one",)
