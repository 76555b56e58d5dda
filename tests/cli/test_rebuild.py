"""``roadstead rebuild``: the manifest asks for one, perhaps under another name, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support import fleet_files
from tests.support.roadstead_command import roadstead, write

pytestmark = pytest.mark.lives

FILE = "clusters/one/cluster.yaml"
FLEET = fleet_files.fleet("one")


def added(folder: Path, before: bytes) -> list[str]:
    lines = before.decode().splitlines()
    return [line for line in (folder / FILE).read_text().splitlines() if line not in lines]


@pytest.mark.parametrize("name", ["one", "cluster/one"])
def test_the_manifest_gets_a_time_and_keeps_everything_else(tmp_path: Path, name: str) -> None:
    write(tmp_path, FLEET)
    done = roadstead("rebuild", name, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "one is deleted with everything that runs there, and created again" in done.stdout
    new = added(tmp_path, FLEET[FILE])
    assert [line.split(":")[0].strip() for line in new] == ["annotations", "roadstead.dev/rebuild"]
    assert roadstead("validate", cwd=tmp_path).returncode == 0


def test_a_time_that_the_manifest_has_is_replaced_by_a_later_one(tmp_path: Path) -> None:
    future = b'name: one\n  annotations: {roadstead.dev/rebuild: "2999-01-01T00:00:00Z"}\n'
    write(tmp_path, FLEET | {FILE: FLEET[FILE].replace(b"name: one\n", future)})
    assert roadstead("rebuild", "one", str(tmp_path), cwd=tmp_path.parent).returncode == 0
    assert added(tmp_path, FLEET[FILE]) == ['  annotations: {roadstead.dev/rebuild: "2999-01-01T00:00:01Z"}']


@pytest.mark.parametrize(
    ("manifest", "name", "code", "message"),
    [
        (FLEET[FILE], "two", 1, "there is no cluster two: clusters/two/cluster.yaml does not exist"),
        (FLEET[FILE], "One", 2, "NAME must be"),
        (b"a: [", "one", 1, "write the annotation roadstead.dev/rebuild into its metadata by hand"),
        (b"- a\n", "one", 1, "write the annotation roadstead.dev/rebuild into its metadata by hand"),
    ],
)
def test_what_cannot_be_rebuilt_is_left_as_it_is(
    tmp_path: Path, manifest: bytes, name: str, code: int, message: str
) -> None:
    write(tmp_path, FLEET | {FILE: manifest})
    done = roadstead("rebuild", name, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert message in done.stderr
    assert (tmp_path / FILE).read_bytes() == manifest


def test_a_cluster_that_is_to_be_adopted_is_not_valid_with_a_rebuild(tmp_path: Path) -> None:
    adopted = b"name: one\n  annotations: {roadstead.dev/adopt: when-equal}\n"
    write(tmp_path, FLEET | {FILE: FLEET[FILE].replace(b"name: one\n", adopted)})
    done = roadstead("rebuild", "one", cwd=tmp_path)
    assert done.returncode == 1
    assert "exclude each other" in done.stdout


OLD, NEW = "clusters/one/cluster.yaml", "clusters/two/cluster.yaml"


def manifest(folder: Path, file: str = NEW) -> dict[str, dict[str, object]]:
    loaded: dict[str, dict[str, object]] = yaml.safe_load((folder / file).read_text())
    return loaded


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_manifest_moves_to_the_new_name_and_says_what_it_replaces(tmp_path: Path) -> None:
    annotated = b'name: one\n  annotations: {roadstead.dev/rebuild: "2026-01-01T00:00:00Z"}\n'
    write(tmp_path, FLEET | {OLD: FLEET[OLD].replace(b"name: one\n", annotated) + b"  dnsPrefix: my-one\n"})
    done = roadstead("rebuild", "one", "--as", "two", "--location", "westeurope", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "two is created. one is deleted when two is Ready." in done.stdout
    assert not (tmp_path / OLD).parent.exists()
    new, before = manifest(tmp_path), yaml.safe_load(FLEET[OLD])
    assert new["metadata"] == {"name": "two", "annotations": {"roadstead.dev/replaces": "one"}}
    changed = {"location": "westeurope", "resourceGroup": "rg-two", "dnsPrefix": "my-two"}
    assert new["spec"] == before["spec"] | changed
    assert roadstead("validate", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("more", "arguments", "code", "message"),
    [
        ({}, ("one", "--as", "one"), 2, "--as is the name of another cluster"),
        ({}, ("none", "--as", "two"), 1, "there is no cluster none"),
        ({}, ("one", "--as", "Two"), 2, "--as must be"),
        ({}, ("one", "--as", "two", "--location", "West Europe!"), 2, "--location must be"),
        ({}, ("one", "--location", "westeurope"), 2, "--location is for --as"),
        ({NEW: fleet_files.cluster("two")}, ("one", "--as", "two"), 1, "there is a cluster two already"),
        ({"clusters/one/notes.md": b"x"}, ("one", "--as", "two"), 1, "notes.md is in the folder of one"),
        ({OLD: b"a: ["}, ("one", "--as", "two"), 1, "by hand"),
        (
            {OLD: fleet_files.cluster("one", extra="  nodeResourceGroup: nodes\n")},
            ("one", "--as", "two"),
            1,
            "one has nodeResourceGroup nodes in the same subscription too; they must differ",
        ),
    ],
)
def test_what_cannot_exist_beside_the_old_cluster_changes_no_file(
    tmp_path: Path, more: dict[str, bytes], arguments: tuple[str, ...], code: int, message: str
) -> None:
    write(tmp_path, FLEET | more)
    before = everything(tmp_path)
    done = roadstead("rebuild", *arguments, cwd=tmp_path)
    assert done.returncode == code
    assert message in " ".join((done.stdout + done.stderr).split())
    assert everything(tmp_path) == before
