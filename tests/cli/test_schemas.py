"""The JSON Schemas are current, take every right file, and refuse what an editor can see is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from bench.fleet import generate
from cli import schemas
from cli.templates import cluster, repository
from tests.support import fleet_files
from tests.support.roadstead_command import roadstead

pytestmark = pytest.mark.lives

ROOT = Path(__file__).parent.parent.parent
COPIES = [ROOT / "schemas", ROOT / "examples" / "fleet" / ".roadstead" / "schemas"]


@cache
def documents() -> Mapping[str, Any]:
    return schemas.documents()


@cache
def validator(name: str) -> Draft202012Validator:
    parts = [(published, Resource.from_contents(document)) for published, document in documents().items()]
    registry: Registry[Any] = Registry().with_resources(parts)
    return Draft202012Validator(documents()[name], registry=registry)


def manifests(files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the files that are manifests of ours, read."""
    read = {path: yaml.safe_load(content) for path, content in files.items() if path.endswith(".yaml")
            and not path.startswith(("flux/", "platform/", "teams/"))}  # fmt: skip
    assert len(read) > 3
    return read


def wrong(manifest: Any) -> list[str]:
    return [error.message for error in validator(f"{manifest['kind'].lower()}.json").iter_errors(manifest)]


@pytest.mark.parametrize("folder", COPIES, ids=lambda folder: folder.parent.name)
def test_the_schemas_in_the_repository_are_current(folder: Path) -> None:
    written = {path.name: path.read_text() for path in folder.iterdir()}
    assert written == schemas.texts(), "make generate writes them again"


def test_each_is_a_schema() -> None:
    assert documents()
    for document in documents().values():
        Draft202012Validator.check_schema(document)


def test_every_file_of_the_example_and_of_generated_fleets_is_valid() -> None:
    new = {path: text.encode() for path, text in repository("new", "", "").items()}
    new |= {path: text.encode() for path, text in [cluster("alpha", {"class": "standard"})]}
    for files in (fleet_files.example(), fleet_files.fleet("one"), generate(3), new):
        found = {path: wrong(manifest) for path, manifest in manifests(files).items()}
        assert {path: errors for path, errors in found.items() if errors} == {}


@pytest.mark.parametrize(
    ("spec", "right"),
    [
        (
            {
                "class": "x",
                "location": None,
                "tags": {"a": None},
                "nodePools": [{"name": "a", "$patch": "delete"}],
            },
            True,
        ),
        ({"resourceGroup": "rg-{name}", "azure": {"properties": {"any": {"thing": [1]}}}}, True),
        ({"networkProfile": {"podCidr": None}, "sku": None, "nodePools": None}, True),
        ({"locaton": "eastus"}, False),
        ({"sku": {"tier": "Gold"}}, False),
        ({"nodePools": [{"name": "a", "count": 2000}]}, False),
        ({"nodePools": [{"count": 2}]}, False),
        ({"nodePools": [{"name": "a", "vmsize": "Standard_D4s_v5"}]}, False),
        ({"kubernetesVersion": 1.33}, False),
    ],
)
def test_a_layer_may_be_partial_and_may_take_away_but_not_be_wrong(spec: Any, right: bool) -> None:
    head = {"apiVersion": "roadstead.dev/v1alpha1", "metadata": {"name": "x"}}
    assert (wrong({**head, "kind": "Cluster", "spec": spec}) == []) is right
    shared = {key: value for key, value in spec.items() if key not in ("class", "environment")}
    for kind in ("Fleet", "Environment"):
        assert (wrong({**head, "kind": kind, "spec": {"defaults": shared}}) == []) is right


def test_a_class_and_an_environment_are_chosen_where_the_language_lets_them_be() -> None:
    head = {"apiVersion": "roadstead.dev/v1alpha1", "metadata": {"name": "x"}}
    assert wrong({**head, "kind": "ClusterClass", "spec": {"class": "y"}}) == []
    assert wrong({**head, "kind": "ClusterClass", "spec": {"environment": "y"}})
    assert wrong({**head, "kind": "Fleet", "spec": {"defaults": {"class": "y"}}})


def test_only_a_cluster_is_adopted_and_suspended() -> None:
    head = {"apiVersion": "roadstead.dev/v1alpha1"}
    plain, adopting = {"name": "x"}, {"name": "x", "annotations": {"roadstead.dev/adopt": "when-equal"}}
    spec = {"suspend": {"owner": "a", "reason": "b", "until": "2026-05-01T13:00:00Z"}}
    assert wrong({**head, "kind": "Cluster", "metadata": adopting, "spec": spec}) == []
    assert wrong({**head, "kind": "ClusterClass", "metadata": plain, "spec": spec})
    assert wrong({**head, "kind": "Environment", "metadata": plain, "spec": {"defaults": spec}})
    adopting["annotations"] = {"roadstead.dev/adopt": "always"}
    assert wrong({**head, "kind": "Cluster", "metadata": adopting, "spec": spec})


def test_a_text_is_described_by_its_meaning_and_its_rule() -> None:
    parts = documents()["clusterspec.json"]["$defs"]
    size = parts["ManualScale"]["properties"]["size"]["description"]
    assert size == "The size of the nodes. Must be a VM size such as Standard_D4s_v5."
    network = parts["NetworkProfile"]["properties"]["dnsServiceIP"]["description"]
    assert network.endswith("in serviceCidr. Must be an address such as 10.0.0.10.")


def test_each_file_of_the_example_names_the_schema_of_its_kind_in_a_place_that_is_there() -> None:
    files = fleet_files.example()
    found_manifests = manifests(files)
    assert {"fleet.yaml", "clusters/pacific-aks/cluster.yaml"} <= set(found_manifests)
    for path, manifest in found_manifests.items():
        found = re.match(rb"# yaml-language-server: \$schema=(\S+)\n", files[path])
        assert found, path
        there = (fleet_files.EXAMPLE / path).parent / found[1].decode()
        assert there.is_file()
        assert there.name == f"{manifest['kind'].lower()}.json"


def test_the_command_prints_one_and_writes_all(tmp_path: Path) -> None:
    assert json.loads(roadstead("schema", "Cluster").stdout) == documents()["cluster.json"]
    assert roadstead("schema", "--write", str(tmp_path / "new")).returncode == 0
    assert {path.name for path in (tmp_path / "new").iterdir()} == set(documents())
    for arguments in ([], ["cloud"]):
        done = roadstead("schema", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert "clusterclass" in done.stderr
