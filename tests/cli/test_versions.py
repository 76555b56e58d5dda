"""``roadstead versions``: the file with the version that an environment has of its channel."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.channels import fleet
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
    ],
)
def test_what_cannot_be_written_is_said(
    tmp_path: Path, arguments: tuple[str, str], code: int, message: str
) -> None:
    write(tmp_path, fleet("development", "production"))
    (tmp_path / FILE).unlink()
    done = roadstead("versions", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
