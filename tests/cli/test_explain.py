"""``roadstead explain``: what it prints is the resolved spec, and every place it names says the value."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.worktree import open_worktree
from tests.support import fleet_files
from tests.support.roadstead_command import on_terminal, plain, roadstead, write

pytestmark = pytest.mark.lives


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return write(tmp_path, fleet_files.example())


def without_empty(value: Any) -> Any:
    """Return a value without what is empty."""
    if isinstance(value, dict):
        return {key: without_empty(inner) for key, inner in value.items() if inner not in ({}, [], None)}
    return [without_empty(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("name", ["atlantic-aks", "pacific-aks", "sargasso-aks"])
def test_it_prints_the_resolved_spec_as_yaml_at_any_width(example: Path, name: str, width: int) -> None:
    shown = plain(on_terminal("explain", name, cwd=example, columns=width)[1])
    document = open_worktree(example).resolve().clusters[name].document()
    assert without_empty(yaml.safe_load(shown)["spec"]) == without_empty(document["spec"])
    comments = [text for text in shown.splitlines()[1:] if "#" in text]
    assert comments
    assert all(len(text) <= width for text in comments)


def test_a_long_value_has_its_source_above_and_moves_no_other_comment(tmp_path: Path) -> None:
    tags = "  tags:\n    note: " + "long-" * 40 + "\n"
    files = fleet_files.fleet("one") | {"clusters/one/cluster.yaml": fleet_files.cluster("one", extra=tags)}
    shown = roadstead("explain", "one", cwd=write(tmp_path, files)).stdout.splitlines()
    place = next(number for number, text in enumerate(shown) if "note: long-" in text)
    assert shown[place - 1].strip().startswith("# clusters/one/cluster.yaml:")
    assert max(text.index("  # ") for text in shown if "  # " in text.lstrip()) <= 60


def test_every_place_that_it_names_holds_the_value(example: Path) -> None:
    done = roadstead("explain", "pacific-aks", cwd=example)
    shown = re.findall(r"(\w*)[:-] (\S+)[ ]+# (\S+):(\d+)$", done.stdout, re.MULTILINE)
    assert len(shown) > 25
    filled = {"resourceGroup": "rg-{name}", "deletionProtection": "production: true"}
    for field, value, file, line in shown:
        written = (example / file).read_text().splitlines()[int(line) - 1]
        assert filled.get(field, value.strip("'")) in written, (field, value, file, line)


def test_scripts_get_the_whole_spec_and_a_place_for_every_value(example: Path) -> None:
    view = json.loads(roadstead("explain", "pacific-aks", "-o", "json", cwd=example).stdout)
    document = open_worktree(example).resolve().clusters["pacific-aks"].document()
    assert view["spec"] == document["spec"]
    facts = ("example", "pacific-aks", "apps-fixed", "production")
    assert (view["fleet"], view["name"], view["class"], view["environment"]) == facts
    assert re.fullmatch(r"classes/apps.yaml:\d+", view["sources"]["spec.nodePools[apps].vmSize"])
    assert re.fullmatch(r"clusters/pacific-aks/cluster.yaml:\d+", view["sources"]["spec.location"])
    assert view["sources"]["spec.nodePools[apps].mode"] == "default"


def test_layers_defaults_class_and_environment_are_shown(example: Path) -> None:
    shown = roadstead("explain", "pacific-aks", cwd=example).stdout
    assert shown.startswith("# pacific-aks: class apps-fixed, environment production; fleet example\n")
    for pattern in (
        r"tier: Standard +# fleet.yaml:\d+",
        r"vmSize: Standard_D8s_v5 +# classes/apps.yaml:\d+",
        r"deletionProtection: true +# environments/production.yaml:\d+",
        r"location: westus2 +# clusters/pacific-aks/cluster.yaml:\d+",
        r"mode: User +# default",
        r"- name: apps ",
    ):
        assert re.search(pattern, shown), pattern


def test_an_unknown_name_is_reported_with_the_nearest_one(example: Path) -> None:
    done = roadstead("explain", "pacifc-aks", cwd=example)
    assert (done.returncode, done.stdout) == (1, "")
    message = "roadstead: there is no cluster pacifc-aks in the repository; did you mean pacific-aks?\n"
    assert done.stderr == message


def test_an_invalid_cluster_shows_its_problems(tmp_path: Path) -> None:
    files = fleet_files.fleet("one") | {"clusters/one/cluster.yaml": b"kind: Cluster\n"}
    done = roadstead("explain", "one", cwd=write(tmp_path, files))
    assert done.returncode == 1
    assert "clusters/one/cluster.yaml:1:1 apiVersion: is required; add it" in done.stdout
    explained = roadstead("explain", "one", "-o", "json", cwd=tmp_path)
    assert (explained.returncode, json.loads(explained.stdout)["problems"][0]["field"]) == (1, "apiVersion")
