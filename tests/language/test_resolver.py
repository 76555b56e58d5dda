"""What the files of a commit request, and how their problems are reported."""

from __future__ import annotations

import pytest

from shared.language.desired import Desired
from tests.support import fleet_files
from tests.support.resolved_fleets import edited, resolved


def test_the_example_fleet_has_no_problem() -> None:
    fleet = resolved(fleet_files.example())
    assert fleet.problems == ()
    assert list(fleet.clusters) == ["atlantic-aks", "pacific-aks", "sargasso-aks"]


def test_a_cluster_inherits_the_defaults_that_it_does_not_override() -> None:
    spec = resolved(fleet_files.example()).clusters["sargasso-aks"].spec
    assert spec.sku.tier == "Free"
    assert spec.kubernetes_version == "1.36"
    pool = spec.node_pools[0]
    assert (pool.name, pool.vm_size, pool.count, pool.availability_zones) == (
        "system",
        "Standard_D4s_v5",
        1,
        (),
    )
    assert spec.tags == {"managed-by": "roadstead", "environment": "development"}


def test_the_stored_form_gives_the_same_cluster_and_digest_back() -> None:
    clusters = resolved(fleet_files.example()).clusters
    assert len(clusters) == 3
    for cluster in clusters.values():
        again = Desired(cluster.document())
        assert again == cluster
        assert again.digest == cluster.digest


def test_another_version_of_flux_gives_every_cluster_a_new_digest() -> None:
    before = resolved(fleet_files.example())
    files = fleet_files.example()
    after = resolved(files | {"flux/gotk-components.yaml": files["flux/gotk-components.yaml"] + b"#\n"})
    assert len(before.clusters) == 3
    assert all(before.clusters[name].digest != after.clusters[name].digest for name in before.clusters)


CLUSTER = "clusters/one/cluster.yaml"
INVALID = [
    (
        "location: eastus",
        "loaction: eastus",
        ":7:3 spec.loaction: there is no such field; did you mean location?",
    ),
    ("count: 1", "count: two", ':10:7 spec.nodePools[system].count: must be an integer, got "two"'),
    ("count: 1", "count: 1\n      nodeLabels: {a: 1}", "nodeLabels.a: must be a string, got 1"),
]
"""What catalogue.txt does not have, and how a place and a correction look."""


@pytest.mark.parametrize(("old", "new", "message"), INVALID, ids=[text[:40] for _, _, text in INVALID])
def test_a_problem_is_reported_with_its_place_and_a_correction(old: str, new: str, message: str) -> None:
    fleet = edited(old, new)
    assert fleet.clusters == {}
    assert len(fleet.problems) == 1
    line = str(fleet.problems[0])
    assert line.startswith(CLUSTER)
    assert message in line


def test_a_problem_in_the_defaults_is_reported_at_its_place_in_fleet_yaml() -> None:
    fleet = edited("vmSize: Standard_D4s_v5", "vmSize: tiny", "fleet.yaml")
    assert [problem.file for problem in fleet.problems] == ["fleet.yaml"]
    assert fleet.problems[0].field == "spec.defaults.nodePools[system].vmSize"
    assert list(fleet.invalid) == ["one"]


def test_all_problems_of_a_manifest_are_reported_at_once() -> None:
    fleet = edited("  resourceGroup: rg-one\n  location: eastus", "  resourceGroup: ''\n  location: ''")
    assert [problem.field for problem in fleet.problems] == ["spec.resourceGroup", "spec.location"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"fleet.yaml": None}, "the repository has no fleet.yaml"),
        ({"fleet.yaml": b"kind: Fleet\n"}, "apiVersion: is required"),
        ({"fleet.yaml": b"a: ["}, "not valid YAML"),
        ({CLUSTER: None, "clusters/one/notes.md": b""}, "the folder has no cluster.yaml; add it, or remove"),
        ({CLUSTER: b"[]"}, "must be an object, got a list"),
    ],
)
def test_a_missing_or_invalid_file_invalidates_what_depends_on_it(
    files: dict[str, bytes | None], message: str
) -> None:
    merged: dict[str, bytes | None] = {**fleet_files.fleet("one"), **files}
    fleet = resolved({path: content for path, content in merged.items() if content is not None})
    assert fleet.clusters == {}
    assert list(fleet.invalid) == ["one"]
    assert message in str(fleet.problems[0])


def test_a_fleet_of_another_name_is_not_ours_to_serve() -> None:
    fleet = edited("name: example", "name: other", "fleet.yaml")
    assert "this app serves the fleet example, not other" in str(fleet.problems[0])
    assert fleet.guards is None


@pytest.mark.parametrize("path", ["fleet.yaml", "clusters"])
def test_a_link_in_the_place_of_fleet_yaml_or_clusters_leaves_the_guards_unknown(path: str) -> None:
    files = {p: c for p, c in fleet_files.fleet("one").items() if p != path and not p.startswith("clusters")}
    fleet = resolved(files, frozenset({path}))
    assert fleet.guards is None
    assert [str(problem) for problem in fleet.problems] == [
        f"{path}:1:1: {path} is a symlink or submodule; "
        "Roadstead reads plain files: put the file itself there"
    ]


MISPLACED = [
    (
        "clusters/two/cluster.yaml",
        True,
        "clusters/two/cluster.yaml is a symlink or submodule; Roadstead reads",
    ),
    ("clusters/two", True, "clusters/two is a symlink or submodule; Roadstead reads plain files"),
    ("clusters/two", False, "a cluster is a folder; write its manifest to clusters/two/cluster.yaml"),
    ("clusters/two.yaml", False, "a cluster is a folder; write its manifest to clusters/two/cluster.yaml"),
    ("clusters/prod/two/cluster.yaml", False, "is too deep to be read; move it to clusters/two/cluster.yaml"),
    ("clusters/two/Cluster.yaml", False, "the folder has no cluster.yaml; rename Cluster.yaml to"),
    ("clusters/two/cluster.yaml.txt", False, "rename cluster.yaml.txt to cluster.yaml"),
    ("clusters/two/notes", True, "the folder has no cluster.yaml; add it, or remove the whole folder"),
]


@pytest.mark.parametrize(("path", "linked", "message"), MISPLACED, ids=[text for *_, text in MISPLACED])
def test_an_unreadable_folder_does_not_count_as_deleted(path: str, linked: bool, message: str) -> None:
    files = fleet_files.fleet("one") | ({} if linked else {path: b""})
    fleet = resolved(files, frozenset({path} if linked else ()))
    assert list(fleet.clusters) == ["one"]
    assert message in str(fleet.invalid["two"][0])


@pytest.mark.parametrize("path", ["Clusters/two/cluster.yaml", "cluster/two/Cluster.yml"])
def test_a_folder_that_is_called_nearly_clusters_does_not_count_as_deleted(path: str) -> None:
    fleet = resolved({**fleet_files.fleet("one"), path: b""})
    assert (list(fleet.clusters), list(fleet.invalid)) == (["one"], ["two"])
    (problem,) = (found for found in fleet.problems if found.file == path)
    assert "only clusters/ is read" in problem.message
    assert "move it to clusters/two/cluster.yaml" in problem.message


@pytest.mark.parametrize("path", ["clusters/README.md", "clusters/.gitkeep"])
def test_a_file_that_cannot_have_been_a_cluster_is_ignored(path: str) -> None:
    fleet = resolved({**fleet_files.fleet("one"), path: b""})
    assert (list(fleet.clusters), fleet.problems) == (["one"], ())


TOKEN = "ghp_planted0123456789"


@pytest.mark.parametrize(
    "text",
    [
        f"flux: {{repository: 'https://bot:{TOKEN}@github.com/x/y'}}",
        f"flux: {{repository: 'https://{TOKEN}@github.com/x/y'}}",
        f"flux: {{repository: 'https://bot:a/{TOKEN}@github.com/x/y'}}",
        f"flux: {{repository: 'bot:{TOKEN}@github.com/x/y'}}",
        f"flux: {{repository: 'https://github.com/x/y?token={TOKEN}'}}",
        f"flux: {{path: 'https://bot:{TOKEN}@github.com/x/../y'}}",
        f"flux: {{'https://bot:{TOKEN}@github.com': x}}",
        f"location: 'https://bot:{TOKEN}@github.com/x/y'",
    ],
)
def test_no_message_shows_a_token_from_an_address(text: str) -> None:
    fleet = edited("  location: eastus\n", f"  {text}\n")
    assert fleet.problems
    assert TOKEN not in str(fleet.problems)
