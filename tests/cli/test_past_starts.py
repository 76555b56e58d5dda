"""Maintenance windows that begin on a day of the past: ``validate`` and a pull request warn of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import fleet_files
from tests.support.roadstead_command import roadstead, write

WINDOW = "aksManagedAutoUpgradeSchedule"
OWN = f"""  maintenanceWindows:
    - name: {WINDOW}
      maintenanceWindow:
        schedule: {{weekly: {{intervalWeeks: 1, dayOfWeek: Sunday}}}}
        durationHours: 4
        startTime: "02:00"
        startDate: "2026-01-05"
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    own = {"clusters/one/cluster.yaml": fleet_files.cluster("one", extra=OWN)}
    return write(tmp_path / "fleet", fleet_files.fleet("one", "two") | own)


def test_a_day_of_the_past_is_a_warning_at_its_line_and_the_manifest_is_valid(fleet: Path) -> None:
    done = roadstead("validate", "--on", "2026-01-06", cwd=fleet)
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[-1]) == (0, "no problems: 2 clusters, 0 systems; 1 warning; 1 note")
    (warning,) = (text for text in lines if "warning: " in text)
    place = f"spec.maintenanceWindows[{WINDOW}].maintenanceWindow.startDate"
    assert "clusters/one/cluster.yaml:17:" in warning
    assert f"{place}: warning: 2026-01-05 has passed" in warning
    shown = roadstead("validate", "--on", "2026-01-06", "-o", "github", cwd=fleet).stdout
    assert shown.startswith("::warning file=clusters/one/cluster.yaml,line=17,")


def test_today_and_a_day_to_come_are_no_warning(fleet: Path) -> None:
    for day in ("2026-01-05", "2025-12-31"):
        shown = roadstead("validate", "--on", day, cwd=fleet).stdout
        assert "no problems: 2 clusters, 0 systems; 1 note\n" in shown
