"""The file with Flux's components is checked before a cluster exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.frozen import replace
from shared.language.desired import Desired
from shared.platform.rules.components import components_problem, controllers_with, definitions_in
from tests.support.desired_clusters import desired

FILE = "flux/gotk-components.yaml"
RIGHT = (Path(__file__).parents[2] / "examples/fleet" / FILE).read_bytes()
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
SYNC = b"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: flux-system\n"


def problem(content: bytes, cluster: Desired | None = None) -> str:
    found = components_problem(content, FILE, desired=cluster or desired("one"))
    return str(found) if found else ""


def test_the_components_of_the_example_are_right() -> None:
    assert problem(RIGHT) == ""
    assert {"GitRepository", "Kustomization"} <= {d["spec"]["names"]["kind"] for d in definitions_in(RIGHT)}


@pytest.mark.parametrize(
    ("content", "place", "message"),
    [
        (POINTER, "1:1", "is a pointer of Git LFS, and not the file"),
        (b"installing components in flux-system namespace\n---\n" + RIGHT, "1:1", "document 1 is not a Kube"),
        (b"# a comment\n" + RIGHT + b"---\nreplicas: 3\n", "", "is not a Kubernetes object with a name"),
        (b"a: [\n" + RIGHT, "", "not valid YAML"),
        (b"", "1:1", "the file has no Kubernetes object"),
        (SYNC, "1:1", "has no definition of GitRepository and no Deployment source-controller"),
    ],
)
def test_any_other_file_is_refused_at_its_line(content: bytes, place: str, message: str) -> None:
    found = problem(content)
    assert found.startswith(f"{FILE}:{place}")
    assert message in found


def test_a_stray_document_is_refused_at_its_own_line() -> None:
    lines = RIGHT.count(b"\n")
    assert problem(RIGHT + b"---\nreplicas: 3\n").startswith(f"{FILE}:{lines + 2}:1")


def test_the_flags_are_those_of_the_lock_down() -> None:
    assert controllers_with(RIGHT, desired("one")) == (frozenset(), frozenset())
    blocking, confining = controllers_with(RIGHT, replace(desired("one"), had_systems=True))
    assert "kustomize-controller" in blocking & confining
