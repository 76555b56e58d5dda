"""``roadstead validate``: what it prints in each of its forms, and its exit status."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from cli.commands.write.validate import print_problems, workflow_commands
from cli.worktree import open_worktree
from shared.language.resolve.problems import Problem
from tests.support import fleet_files
from tests.support.roadstead_command import roadstead, write

pytestmark = pytest.mark.lives

WRONG = {
    "clusters/one/cluster.yaml": fleet_files.cluster("one").replace(b"location", b"locaton"),
    "clusters/two/cluster.yaml": fleet_files.cluster("two", extra="  class: appps\n"),
}
PROBLEMS = [
    "clusters/one/cluster.yaml:7:3 spec.locaton: there is no such field; did you mean location?",
    "clusters/two/cluster.yaml:11:3 spec.class: there is no class appps; did you mean apps?",
]
EARLY = ("--on", "2026-01-01")
"""Before AKS warns of anything that these manifests have."""


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    return write(tmp_path / "fleet", fleet_files.fleet("one", "two", "three") | WRONG)


def test_a_valid_repository_is_reported_in_one_line(tmp_path: Path) -> None:
    done = roadstead("validate", *EARLY, cwd=write(tmp_path, fleet_files.example()))
    assert (done.returncode, done.stdout, done.stderr) == (0, "no problems: 3 clusters, 1 system\n", "")


def test_all_problems_are_listed_at_once_by_file_with_their_places(wrong: Path) -> None:
    done = roadstead("validate", *EARLY, cwd=wrong)
    summary = "2 problems in 2 files: 2 of 3 clusters are invalid; 1 note"
    lines = done.stdout.splitlines()
    assert [*lines[:4], lines[-1]] == [PROBLEMS[0], "", PROBLEMS[1], "", summary]
    assert ["note: " in line for line in lines[4:-1]] == [True, False]
    assert (done.returncode, done.stderr) == (1, "")


def test_a_problem_outside_the_clusters_is_reported_without_counting_them(tmp_path: Path) -> None:
    wrong = {"classes/unused.yaml": b"kind: ClusterClass\n"}
    done = roadstead("validate", *EARLY, cwd=write(tmp_path, fleet_files.fleet("one") | wrong))
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].endswith(" in 1 file; every cluster is valid; 1 note")


def test_places_are_seen_from_the_current_folder(wrong: Path) -> None:
    done = roadstead("validate", "fleet", cwd=wrong.parent)
    assert done.stdout.startswith(f"fleet/{PROBLEMS[0]}\n")
    elsewhere = roadstead("validate", str(wrong), cwd=wrong / "flux")
    assert elsewhere.stdout.startswith(f"{PROBLEMS[0]}\n")


def test_a_terminal_of_80_columns_shows_a_long_problem_wrapped_below_its_place(tmp_path: Path) -> None:
    out = Console(width=80, force_terminal=True, color_system=None, file=io.StringIO(), record=True)
    tree = open_worktree(write(tmp_path, fleet_files.example()))
    print_problems([Problem("clusters/one/cluster.yaml", 7, 3, "spec.locaton", "is wrong " * 20)], tree, out)
    lines = out.export_text().splitlines()
    assert lines[0] == "clusters/one/cluster.yaml:7:3"
    assert all(len(text) <= 80 for text in lines)
    assert lines[1].startswith("    spec.locaton: is wrong")


def test_json_has_every_problem_and_the_clusters(wrong: Path) -> None:
    done = roadstead("validate", "-o", "json", cwd=wrong)
    view = json.loads(done.stdout)
    assert (done.returncode, view["fleet"], view["valid"]) == (1, "example", False)
    assert (view["clusters"], view["invalidClusters"]) == (["three"], ["one", "two"])
    assert view["problems"][0] == {
        "file": "clusters/one/cluster.yaml",
        "line": 7,
        "column": 3,
        "field": "spec.locaton",
        "message": "there is no such field; did you mean location?",
        "more": 0,
    }


def test_workflow_commands_cannot_be_broken_out_of() -> None:
    printed = list(
        workflow_commands([Problem("a,b:c%\n.yaml", 2, 3, "spec.x", "50% off\r\n::error::no")], str)
    )
    place = "file=a%2Cb%3Ac%25%0A.yaml,line=2,col=3"
    assert printed == [f"::error {place},title=Roadstead::spec.x: 50%25 off%0D%0A::error::no"]


def test_annotations_and_a_summary_for_a_workflow(wrong: Path) -> None:
    lines = roadstead("validate", *EARLY, "-o", "github", cwd=wrong).stdout.splitlines()
    assert re.match(
        r"::error file=clusters/one/cluster.yaml,line=7,col=3,title=Roadstead::spec.locaton", lines[0]
    )
    assert lines[2].startswith("::notice file=fleet.yaml,line=")
    assert lines[3].startswith("2 problems")


@pytest.mark.parametrize("arguments", [["nowhere"], ["--output", "xml"], ["clusters"]])
def test_a_usage_error_is_exit_status_2_and_no_traceback(wrong: Path, arguments: list[str]) -> None:
    done = roadstead("validate", *arguments, cwd=wrong)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
