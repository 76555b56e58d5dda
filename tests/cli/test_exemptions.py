"""Exemptions from drift that end: ``validate`` warns of them for people, scripts and GitHub."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import fleet_files
from tests.support.roadstead_command import roadstead, write

DAY = ("--on", "2026-01-01")
RULE = '{name: load, fields: [tags], action: ignore, owner: shop, reason: a test, expires: "2026-01-20"}'
OWN = f"  drift: {{rules: [{RULE}]}}\n"
SAID = "the exemption load of shop (a test) ends in 19 days, on 2026-01-20"


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    own = {"clusters/one/cluster.yaml": fleet_files.cluster("one", extra=OWN)}
    return write(tmp_path / "fleet", fleet_files.fleet("one", "two") | own)


def test_an_exemption_that_ends_soon_is_a_warning_at_its_line_and_the_manifest_is_valid(fleet: Path) -> None:
    done = roadstead("validate", *DAY, cwd=fleet)
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[-1]) == (0, "no problems: 2 clusters, 0 systems; 1 warning; 1 note")
    (warning,) = (text for text in lines if "warning: " in text)
    assert warning.startswith("clusters/one/cluster.yaml:11:")
    assert f" spec.drift.rules[load].expires: warning: {SAID}" in warning


def test_scripts_and_github_get_it_too(fleet: Path) -> None:
    view = json.loads(roadstead("validate", *DAY, "-o", "json", cwd=fleet).stdout)
    assert (view["valid"], [warning["field"] for warning in view["warnings"]]) == (
        True,
        ["spec.drift.rules[load].expires"],
    )
    shown = roadstead("validate", *DAY, "-o", "github", cwd=fleet).stdout
    assert shown.startswith("::warning file=clusters/one/cluster.yaml,line=11,")
