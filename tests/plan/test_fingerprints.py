"""The manifest of a certainly unchanged cluster is not read, and no other cluster counts as unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from shared.language.desired import Desired, normalised
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.repository_layout import Files, blob_id
from shared.language.resolve.resolver import finish, first_files, resolve, resolve_clusters, resolve_shared
from shared.language.resolve.reuse import KnownCluster, fingerprint_of
from shared.plan.make_plan import make_plan
from tests.support.desired_clusters import Row
from tests.support.sample import examples

HEAD = "apiVersion: roadstead.dev/v1alpha1\nkind: {}\nmetadata: {{name: {}{}}}\nspec:\n"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("a", "b", "c", "d")


def head(kind: str, name: str, more: str = "") -> str:
    return HEAD.format(kind, name, more)


def cluster(name: str, *, count: int = 1, cls: str = "", env: str = "dev", more: str = "") -> str:
    chosen = f"  class: {cls}\n" * bool(cls) + f"  environment: {env}\n" * bool(env)
    pools = f"  nodePools: [{{name: system, count: {count}}}]\n"
    return head("Cluster", name, f", labels: {{n: {name}}}") + chosen + pools + more


def fleet() -> dict[str, str]:
    """Return a fleet of four clusters in two environments and two classes, one above the other."""
    defaults = (
        "  defaults:\n    subscriptionId: 00000000-0000-0000-0000-000000000001\n"
        "    resourceGroup: rg-{name}\n    location: eastus\n    kubernetesVersion: '1.36'\n"
        "    nodePools: [{name: system, mode: System, vmSize: Standard_D4s_v5}]\n"
        "    flux: {repository: 'https://github.com/example/fleet', path: './platform/{environment}'}\n"
    )
    return {
        "fleet.yaml": head("Fleet", "example") + "  environments: [dev, prod]\n" + defaults,
        "environments/dev.yaml": head("Environment", "dev") + "  defaults: {tags: {env: dev}}\n",
        "environments/prod.yaml": head("Environment", "prod") + "  production: true\n",
        "classes/base.yaml": head("ClusterClass", "base") + "  sku: {tier: Standard}\n",
        "classes/big.yaml": head("ClusterClass", "big") + "  class: base\n  tags: {size: big}\n",
        "systems/shop.yaml": head("System", "shop")
        + "  clusters: {matchLabels: {n: a}}\n  namespaces: [shop]\n",
        "flux/gotk-components.yaml": "kind: List\n",
        "clusters/a/cluster.yaml": cluster("a"),
        "clusters/b/cluster.yaml": cluster("b", cls="base"),
        "clusters/c/cluster.yaml": cluster("c", cls="big", env="prod"),
        "clusters/d/cluster.yaml": cluster("d", cls="big"),
    }


def resolved(
    files: Mapping[str, str], known: Mapping[str, KnownCluster], read: list[str], code: str = "1"
) -> DesiredFleet:
    """Resolve a commit in stages, as the pipeline does; ``read`` gets the paths that are read."""
    contents = {path: text.encode() for path, text in files.items()}
    tree = Files({path: blob_id(content) for path, content in contents.items()})

    def content(paths: Sequence[str]) -> Mapping[str, bytes]:
        assert not {*paths} & {*read}, "no file is read twice"
        read.extend(paths)
        return {path: contents[path] for path in paths}

    first = content(first_files(tree, known))
    shared = resolve_shared("example", tree, first, known=known, code_version=code)
    clusters = resolve_clusters(shared, content(shared.needed))
    return finish(clusters, content(clusters.needed))


def recorded(found: DesiredFleet) -> dict[str, KnownCluster]:
    """Return what would be recorded once a fleet was planned."""
    return {
        name: KnownCluster(
            desired.document(), desired.digest, fingerprint_of(found.inputs.get(name, ""), desired.digest)
        )
        for name, desired in found.clusters.items()
    }


def resolved_again(files: dict[str, str]) -> list[str]:
    """Return the clusters that are read when a commit with these files follows the one of the fleet."""
    read: list[str] = []
    known = recorded(resolved(fleet(), {}, []))
    again = resolved(fleet() | files, known, read)
    taken = {*again.unchanged}
    folders = {path.split("/")[1] for path in read if path.startswith("clusters/")}
    assert not taken & folders
    return sorted(folders)


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ({}, ""),
        ({"README.md": "words"}, ""),
        ({"clusters/b/cluster.yaml": cluster("b", count=2, cls="base")}, "b"),
        ({"environments/dev.yaml": fleet()["environments/dev.yaml"].replace("env: dev", "env: x")}, "abd"),
        ({"environments/prod.yaml": head("Environment", "prod") + "  production: false\n"}, "c"),
        ({"classes/big.yaml": fleet()["classes/big.yaml"].replace("size: big", "size: huge")}, "cd"),
        ({"classes/base.yaml": fleet()["classes/base.yaml"].replace("Standard", "Free")}, "bcd"),
        ({"classes/base.yaml": "# words\n" + fleet()["classes/base.yaml"]}, ""),
        ({"classes/other.yaml": head("ClusterClass", "other") + "  sku: {tier: Free}\n"}, ""),
        ({"fleet.yaml": fleet()["fleet.yaml"] + "  guards: {deleteBudget: {count: 3}}\n"}, ""),
        ({"fleet.yaml": fleet()["fleet.yaml"].replace("1.36", "1.37")}, "abcd"),
        ({"flux/gotk-components.yaml": "kind: List\nitems: []\n"}, "abcd"),
        ({"systems/shop.yaml": fleet()["systems/shop.yaml"].replace("n: a", "n: b")}, ""),
        ({"classes/big.yaml": fleet()["classes/big.yaml"].replace("class: base", "class: gone")}, "cd"),
        ({"fleet.yaml": fleet()["fleet.yaml"].replace("[dev, prod]", "[dev]")}, "c"),
    ],
)
def test_only_the_clusters_that_a_commit_can_change_are_read(files: dict[str, str], names: str) -> None:
    assert "".join(resolved_again(files)) == names


def test_a_cluster_without_its_class_or_in_another_folder_is_resolved_again() -> None:
    empty = fleet() | {"classes/base.yaml": head("ClusterClass", "base").replace("spec:", "spec: {}")}
    known = recorded(resolved(empty, {}, []))
    del empty["classes/base.yaml"], empty["classes/big.yaml"]
    assert sorted(resolved(empty, known, []).invalid) == ["b", "c", "d"]
    deep = fleet() | {"clusters/x/a/cluster.yaml": cluster("a")}
    known = recorded(resolved(fleet(), {}, []))
    assert sorted(resolved(deep, known, []).invalid) == ["a", "x"]


def test_new_code_resolves_every_cluster_once_more() -> None:
    known = recorded(resolved(fleet(), {}, [], code="1"))
    for code, taken in (("1", 4), ("2", 0)):
        again = resolved(fleet(), known, [], code=code)
        assert len(again.unchanged) == taken


def test_a_cluster_whose_record_does_not_match_its_fingerprint_is_read() -> None:
    known = recorded(resolved(fleet(), {}, []))
    known["a"] = replace(known["a"], digest="0" * 16)
    known["b"] = replace(known["b"], fingerprint="")
    known["c"] = replace(known["c"], fingerprint=known["a"].fingerprint)
    again = resolved(fleet(), known, [])
    assert [*again.unchanged] == ["d"]


EDITS = st.sampled_from(
    [
        *((f"clusters/{name}/cluster.yaml", "count: 1", "count: 2") for name in NAMES),
        *((f"clusters/{name}/cluster.yaml", "nodePools", "nodePool") for name in NAMES),
        ("clusters/b/cluster.yaml", "class: base", "class: big"),
        ("clusters/a/cluster.yaml", "environment: dev", "environment: prod"),
        ("clusters/d/cluster.yaml", "spec:\n", "spec:\n  dnsPrefix: a\n  resourceGroup: rg-a\n"),
        ("clusters/c/cluster.yaml", "spec:\n", "spec:\n  nodeResourceGroup: rg-a\n"),
        ("clusters/a/cluster.yaml", "n: a", "n: z"),
        ("classes/big.yaml", "class: base", "class: big"),
        ("classes/big.yaml", "size: big", "size: '{location}'"),
        ("classes/base.yaml", "tier: Standard", "tier: Golden"),
        ("environments/prod.yaml", "production: true", "production: false"),
        ("environments/dev.yaml", "{env: dev}", "{env: '{class}'}"),
        ("fleet.yaml", "[dev, prod]", "[dev]"),
        ("fleet.yaml", "'1.36'", "'1.35'"),
        ("fleet.yaml", "[dev, prod]", "[dev, prod, test]"),
        ("fleet.yaml", "location: eastus\n", "location: {a: b}\n"),
        ("systems/shop.yaml", "n: a", "n: c"),
        ("flux/gotk-components.yaml", "List", "Kind"),
    ]
)
LOST = st.sampled_from(
    ["flux/gotk-components.yaml", "classes/big.yaml", "environments/prod.yaml", "fleet.yaml"]
    + [f"clusters/{name}/cluster.yaml" for name in NAMES]
)
ADDED = st.sampled_from(
    [
        ("clusters/x/a/cluster.yaml", "", "words"),
        ("clusters/b.yaml", "", "words"),
        ("environments/prod.yml", "", "words"),
        ("classes/base/base.yaml", "", "words"),
    ]
)
CHANGES = st.lists(st.one_of(EDITS, LOST, ADDED), max_size=4)


def changed(files: dict[str, str], changes: list[str | tuple[str, str, str]]) -> dict[str, str]:
    for change in changes:
        if isinstance(change, str):
            files.pop(change, None)
            files |= {"clusters/a/notes.txt": ""}
        elif change[0] in files or not change[1]:
            path, old, new = change
            files[path] = files.get(path, "").replace(old, new, 1)
    return files


@pytest.mark.lives
@settings(max_examples=examples(300))
@given(CHANGES, CHANGES)
def test_records_change_the_cost_of_a_commit_and_nothing_else(
    before: list[str | tuple[str, str, str]], after: list[str | tuple[str, str, str]]
) -> None:
    old = changed(fleet(), before)
    new = changed(dict(old), after)
    known = recorded(resolved(old, {}, []))
    contents = {path: text.encode() for path, text in new.items()}
    tree = Files({path: blob_id(content) for path, content in contents.items()})
    plain = resolve("example", tree, contents, code_version="1")
    quick = resolved(new, known, [])
    assert quick == plain
    assert list(quick.clusters) == list(plain.clusters)
    assert [desired.digest for desired in quick.clusters.values()] == [
        desired.digest for desired in plain.clusters.values()
    ]
    assert recorded(quick) == recorded(plain)
    rows = {name: Row(fingerprint.document) for name, fingerprint in known.items()}
    assert make_plan("c" * 40, quick, rows, now=NOW) == make_plan("c" * 40, plain, rows, now=NOW)


def test_a_stored_cluster_is_validated_only_when_its_spec_is_read() -> None:
    one = resolved(fleet(), {}, []).clusters["a"]
    document = one.document()
    document["spec"] = {**document["spec"], "kubernetesVersion": "2.0"}
    stored = Desired(document)
    assert stored.id == one.id
    assert stored.document() == document
    with pytest.raises(ValidationError):
        _ = stored.spec
    assert normalised(document) == document


def test_a_default_that_was_added_since_is_no_difference() -> None:
    document = resolved(fleet(), {}, []).clusters["a"].document()
    flux = {key: value for key, value in document["spec"]["flux"].items() if key != "branch"}
    assert normalised({**document, "spec": {**document["spec"], "flux": flux}}) == document
