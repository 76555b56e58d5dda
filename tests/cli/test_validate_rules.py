"""``roadstead validate`` shows what the rules of a platform find, and its notes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support import fleet_files
from tests.support.roadstead_command import roadstead, write

KUSTOMIZATION = b"kind: Kustomization\nresources: [namespaces.yaml, bad.yaml]\n"
BAD = b"""apiVersion: v1
kind: Namespace
metadata:
  name: Apps_Bad
---
apiVersion: v1
kind: ConfigMap
metadata: {name: nowhere}
"""


def test_the_first_change_of_a_user_is_refused_with_its_line(tmp_path: Path) -> None:
    files = {
        **fleet_files.example(),
        "platform/base/kustomization.yaml": KUSTOMIZATION,
        "platform/base/bad.yaml": BAD,
    }
    fleet = write(tmp_path, files)
    done = roadstead("validate", "--on", "2026-01-01", "-o", "wide", cwd=fleet)
    lines = [line for line in done.stdout.splitlines() if line]
    assert done.returncode == 1
    assert lines[0].startswith(
        "platform/base/bad.yaml:4:3 metadata.name: Namespace Apps_Bad: the name must be"
    )
    assert lines[1].startswith(
        "platform/base/bad.yaml:8:1 metadata: note: ConfigMap nowhere has no namespace"
    )
    view = json.loads(roadstead("validate", "--on", "2026-01-01", "-o", "json", cwd=fleet).stdout)
    assert [note["line"] for note in view["platform"]["notes"]] == [8]


def test_notes_are_shown_without_being_asked_for_and_leave_the_exit_code_alone(tmp_path: Path) -> None:
    nowhere = "\n---\n".join(
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: nowhere-{number:02}}}" for number in range(12)
    )
    files = {
        **fleet_files.example(),
        "platform/base/kustomization.yaml": KUSTOMIZATION,
        "platform/base/bad.yaml": nowhere.encode(),
    }
    fleet = write(tmp_path, files)
    done = roadstead("validate", "--on", "2026-01-01", cwd=fleet)
    lines = [line for line in done.stdout.splitlines() if line]
    assert done.returncode == 0
    assert len([line for line in lines if ": note: " in line]) == 10
    assert lines[-2] == "... and 2 more notes; -o wide shows them"
    assert lines[-1].startswith("no problems: ")
    assert lines[-1].endswith("; 12 notes")
    annotated = roadstead("validate", "--on", "2026-01-01", "-o", "github", cwd=fleet)
    assert annotated.returncode == 0
    assert annotated.stdout.count("::notice file=platform/base/bad.yaml") == 10
