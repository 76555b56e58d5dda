"""A problem of a file that several clusters use: who is affected, and where it is reported."""

from __future__ import annotations

import pytest

from tests.support.resolved_fleets import GOOD, resolved, with_change, with_files


def test_an_invalid_shared_file_invalidates_its_users_and_no_other_cluster() -> None:
    assert list(with_change("classes/plain.yaml", "tier: Standard", "tier: gold").invalid) == ["one"]
    assert list(with_change("environments/dev.yaml", "tags:", "tag:").invalid) == ["one"]
    assert list(with_change("environments/prod.yaml", "production", "produktion").invalid) == []
    wrong = with_change("fleet.yaml", "kubernetesVersion", "kubernetesversion")
    assert (list(wrong.invalid), wrong.guards) == (["one", "two"], None)


def test_a_problem_of_a_shared_file_is_reported_once_and_is_one_of_each_of_its_clusters() -> None:
    wrong = with_change(
        "fleet.yaml", "    resourceGroup: rg-{name}\n", "    resourceGroup: rg-{naem}\n    dnsPrefix: 5\n"
    )
    assert [problem.file for problem in wrong.problems] == ["fleet.yaml", "fleet.yaml"]
    assert wrong.invalid == dict.fromkeys(("one", "two"), wrong.problems)


def test_a_shared_value_that_is_invalid_in_every_cluster_is_reported_once() -> None:
    wrong = with_change("fleet.yaml", "resourceGroup: rg-{name}", "resourceGroup: rg/{name}")
    assert [(problem.file, problem.line) for problem in wrong.problems] == [("fleet.yaml", 13)]
    assert list(wrong.invalid) == ["one", "two"]


@pytest.mark.parametrize(
    ("environments", "invalid"),
    [
        ("[dev, prod, dev]", ["one"]),
        ("[dev, prod, prod]", []),
        ("[dev, prod, tset]", []),
        ("[prod]", ["one"]),
    ],
)
def test_an_invalid_list_of_environments_invalidates_only_the_clusters_of_these(
    environments: str, invalid: list[str]
) -> None:
    wrong = with_change("fleet.yaml", "[dev, prod]", environments)
    assert list(wrong.invalid) == invalid
    assert len(wrong.problems) == 1


def test_nothing_may_be_deleted_while_the_list_of_environments_is_invalid() -> None:
    assert with_change("fleet.yaml", "[dev, prod]", "[dev, prod, tset]").guards is None


def test_removals_over_an_invalid_layer_are_not_reported() -> None:
    removed = "    nodePools: [{name: apps, $patch: delete}]\n    tags:"
    files = GOOD | {
        "environments/dev.yaml": GOOD["environments/dev.yaml"].replace("    tags:", removed, 1),
        "classes/web.yaml": "not: [a manifest",
    }
    problems = resolved({path: text.encode() for path, text in files.items()}).problems
    assert {problem.file for problem in problems} == {"classes/web.yaml"}


def test_a_shared_file_that_cannot_be_read_is_reported_and_invalidates_its_users() -> None:
    files = {path: text.encode() for path, text in GOOD.items() if path != "classes/web.yaml"}
    linked = resolved(files, frozenset({"classes/web.yaml"}))
    assert [str(problem) for problem in linked.invalid["one"]] == [
        "classes/web.yaml:1:1: classes/web.yaml is a symlink or submodule; "
        "Roadstead reads plain files: put the file itself there"
    ]
    missing = resolved(files)
    assert "there is no class web" in str(missing.invalid["one"][0])
    renamed = resolved(files | {"classes/web.yml": GOOD["classes/web.yaml"].encode()})
    assert "classes/web.yml:1:1: must be called classes/web.yaml" in map(str, renamed.problems)


def test_two_clusters_that_azure_cannot_both_have_are_both_invalid() -> None:
    text = GOOD["clusters/two/cluster.yaml"].replace("  location", "  nodeResourceGroup: nodes\n  location")
    three = text.replace("name: two", "name: three")
    fleet = with_files(clusters__two__cluster=text, clusters__three__cluster=three)
    assert list(fleet.clusters) == ["one"]
    assert [str(problem) for problem in fleet.invalid["three"]] == [
        "clusters/three/cluster.yaml:6:3 spec.nodeResourceGroup: two has nodeResourceGroup nodes in the same "
        "subscription too; they must differ"
    ]


def test_a_folder_whose_name_no_cluster_can_have_is_the_only_thing_that_is_wrong() -> None:
    text = GOOD["clusters/two/cluster.yaml"].replace("two", "my cluster")
    fleet = resolved(
        {
            path: content.encode()
            for path, content in (GOOD | {"clusters/my cluster/cluster.yaml": text}).items()
        }
    )
    rule = "1 to 63 lowercase letters, digits and hyphens, with a letter or digit at both ends"
    assert [str(problem) for problem in fleet.problems] == [
        f"clusters/my cluster:1:1: the folder's name must be {rule}"
    ]
