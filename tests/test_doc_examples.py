"""The manifests in the documents are right: each page's examples, in the example fleet, have no problem."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
import yaml

from shared.language.model.kinds import FleetSpec
from tests.support import fleet_files
from tests.support.operator_clusters import FILE
from tests.support.resolved_fleets import resolved

ROOT = Path(__file__).parent.parent
PLACES = {
    "Fleet": "fleet.yaml",
    "Environment": "environments/{}.yaml",
    "ClusterClass": "classes/{}.yaml",
    "Cluster": "clusters/{}/cluster.yaml",
    "System": "systems/{}.yaml",
}
PART = """\
apiVersion: roadstead.dev/v1alpha1
kind: Cluster
metadata: {{name: part-{}}}
{}  location: eastus
  environment: development
"""
"""A piece that begins with spec is one of a cluster's."""


OF_A_FLEET = ("environments:", "rollout:")
"""A piece that begins so is one of the spec in fleet.yaml."""


def blocks(page: Path) -> list[str]:
    """Return the YAML of a page."""
    found = re.findall(r"^ *```yaml\n(.*?)^ *```$", page.read_text(), re.M | re.S)
    return [textwrap.dedent(block) for block in found]


def manifests(page: Path) -> dict[str, bytes]:
    """Return the examples of a page by the path of their file."""
    found: dict[str, bytes] = {}
    for number, block in enumerate(blocks(page)):
        text = PART.format(number, block) if block.startswith("spec:") else block
        if "apiVersion: roadstead.dev/" in text:
            manifest = yaml.safe_load(text)
            path = PLACES[manifest["kind"]].format(manifest["metadata"]["name"])
            assert path not in found, f"{page.name} has {path} twice"
            found[path] = text.encode()
    return found


FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PIECES = [block for path in FILES for block in blocks(path) if block.startswith(OF_A_FLEET)]
PAGES = {path.relative_to(ROOT).as_posix(): examples for path in FILES if (examples := manifests(path))}


def test_there_are_examples_of_every_kind() -> None:
    assert {"README.md", "docs/fleet.md"} <= PAGES.keys()
    heads = b"\n".join(text for examples in PAGES.values() for text in examples.values())
    assert [kind for kind in PLACES if f"kind: {kind}\n".encode() not in heads] == []


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_have_no_problem(page: str) -> None:
    named = {FILE: b""}  # pages name the file of the Flux Operator, which the example does not have
    fleet = resolved(fleet_files.example() | named | PAGES[page])
    assert fleet.problems == ()
    assert len(fleet.clusters) >= len(
        PAGES[page].keys() & {f"clusters/{n}/cluster.yaml" for n in fleet.clusters}
    )


def test_the_pages_show_several_pieces_of_a_fleet() -> None:
    assert len(PIECES) > 4


@pytest.mark.parametrize("piece", PIECES)
def test_a_piece_of_a_fleet_is_valid(piece: str) -> None:
    assert FleetSpec.model_validate(yaml.safe_load(piece)).rollout is not None
