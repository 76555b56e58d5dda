"""``roadstead rebuild``: the manifest asks for a rebuild, and nothing else of it changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import fleet_files
from tests.support.roadstead_command import roadstead, write

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
