"""``roadstead versions``: the file with the version that an environment has of its channel."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.channels import fleet
from tests.support.flux_channels import with_extension, with_operator
from tests.support.roadstead_command import roadstead, write

FILE = "environments/development.versions.yaml"


def without_the_file() -> dict[str, bytes]:
    return {path: content for path, content in fleet("development").items() if path != FILE}


def test_the_file_is_written_and_makes_the_fleet_valid(tmp_path: Path) -> None:
    write(tmp_path, without_the_file())
    before = roadstead("validate", cwd=tmp_path)
    assert before.returncode == 1
    assert "`roadstead versions development VERSION` writes it" in before.stdout + before.stderr
    done = roadstead("versions", "development", "1.36.3", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "The app changes it by pull requests." in done.stdout
    assert roadstead("validate", cwd=tmp_path).returncode == 0
    explained = roadstead("explain", "a1", cwd=tmp_path).stdout
    (line,) = [line for line in explained.splitlines() if "kubernetesVersion" in line]
    assert "1.36.3" in line
    assert FILE in line


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("staging", "1.36"), 1, "there is no environment staging"),
        (("developmnt", "1.36"), 1, "did you mean development?"),
        (("development", "newest"), 2, "newest is no version of Kubernetes"),
        (("production", "1.36"), 1, "is there already; write kubernetesVersion"),
        (
            ("production", "--flux", "2.8.8"),
            1,
            'write flux: {instance: {distribution: {version: "2.8.8"}}} below',
        ),
        (("development", "--extension", "1.22"), 2, "1.22 is no whole version; write one such as 1.19.5"),
        (("development", "--extension", "1.22.1", "--flux", "2.8.8"), 2, "a file has one version of Flux"),
        (("development",), 2, "or a version of Flux with --extension or --flux"),
    ],
)
def test_what_cannot_be_written_is_said(
    tmp_path: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    write(tmp_path, fleet("development", "production"))
    (tmp_path / FILE).unlink()
    done = roadstead("versions", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr


@pytest.mark.parametrize(
    ("tree", "option", "version"),
    [(with_extension(), "--extension", "1.22.1"), (with_operator(), "--flux", "2.8.7")],
)
def test_a_version_of_flux_is_written_where_clusters_have_it(
    tmp_path: Path, tree: dict[str, bytes], option: str, version: str
) -> None:
    write(tmp_path, {path: content for path, content in tree.items() if path != FILE})
    assert roadstead("validate", cwd=tmp_path).returncode == 1
    done = roadstead("versions", "development", option, version, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert roadstead("validate", cwd=tmp_path).returncode == 0
    explained = roadstead("explain", "a1", cwd=tmp_path).stdout.splitlines()
    assert [line for line in explained if f"version: {version}" in line and FILE in line]
