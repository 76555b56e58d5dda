"""What AKS retires: ``validate`` warns of it; ``why`` and ``status`` show it of a running cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.azure.availability.announcements import AS_OF
from tests.support import fleet_files
from tests.support.one_cluster import ready
from tests.support.pipeline_runs import ready as ready_fleet
from tests.support.roadstead_command import on_terminal, plain, roadstead, write
from tests.support.served_api import served

pytestmark = pytest.mark.lives

DAY = ("--on", "2027-02-01")
OLD_POOL = "    - {name: old, vmSize: Standard_D4s_v5, count: 1, osSKU: Ubuntu2204}\n"


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Return a fleet in which two clusters have the version of fleet.yaml, and one has its own."""
    own = {"clusters/three/cluster.yaml": fleet_files.cluster("three", extra="  kubernetesVersion: '1.37'\n")}
    return write(tmp_path / "fleet", fleet_files.fleet("one", "two") | own)


def test_the_example_fleet_and_a_new_one_have_nothing_that_retires(tmp_path: Path) -> None:
    example = roadstead("validate", "--on", "2026-11-23", cwd=write(tmp_path / "a", fleet_files.example()))
    assert example.stdout == "no problems: 3 clusters, 1 system\n"
    given = (
        "--subscription",
        "00000000-0000-0000-0000-000000000001",
        "--repository",
        "https://github.com/example/fleet",
    )
    assert roadstead("init", str(tmp_path / "b"), *given).returncode == 0
    new = roadstead("validate", "--on", "2026-11-23", cwd=tmp_path / "b")
    assert new.stdout == "no problems: 0 clusters, 0 systems\n"


def test_a_value_of_a_shared_file_is_one_warning_and_the_manifests_are_valid(fleet: Path) -> None:
    done = roadstead("validate", *DAY, cwd=fleet)
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert lines[-1] == "no problems: 3 clusters, 0 systems; 1 warning; 1 note"
    (warning,) = (text for text in lines if "warning: " in text)
    assert warning.startswith("fleet.yaml:")
    assert (
        " spec.kubernetesVersion: warning: Kubernetes 1.36 leaves support on 2027-06-30, in 149 days"
        in warning
    )


def test_a_warning_of_a_pool_names_the_pool_at_its_line(tmp_path: Path) -> None:
    pool = fleet_files.fleet() | {
        "clusters/one/cluster.yaml": fleet_files.cluster(
            "one", extra=f"{OLD_POOL}  kubernetesVersion: '1.32'\n"
        )
    }
    done = roadstead("validate", *DAY, cwd=write(tmp_path, pool))
    assert "spec.nodePools[old].osSKU: warning: Ubuntu 22.04 leaves support on 2027-06-30" in done.stdout


def test_no_warning_comes_more_than_180_days_ahead(fleet: Path) -> None:
    done = roadstead("validate", "--on", "2026-01-01", cwd=fleet)
    assert "warning" not in done.stdout
    assert done.stdout.endswith("no problems: 3 clusters, 0 systems; 1 note\n"), "the note is of Flux's wait"


def test_scripts_and_github_get_the_warnings_apart_from_the_problems(fleet: Path) -> None:
    view = json.loads(roadstead("validate", *DAY, "-o", "json", cwd=fleet).stdout)
    assert (view["valid"], view["problems"], view["retirementsOf"]) == (True, [], AS_OF.isoformat())
    assert [warning["field"] for warning in view["warnings"]] == ["spec.kubernetesVersion"]
    first = roadstead("validate", *DAY, "-o", "github", cwd=fleet).stdout.splitlines()[0]
    assert first.startswith("::warning file=fleet.yaml,line=")


def test_a_table_older_than_half_a_year_is_no_secret(fleet: Path) -> None:
    done = roadstead("validate", "--on", "2028-01-01", cwd=fleet)
    assert f"the table of retirements is of {AS_OF}, older than half a year" in done.stdout


def test_a_day_of_another_form_is_a_usage_error(fleet: Path) -> None:
    done = roadstead("validate", "--on", "tomorrow", cwd=fleet)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "roadstead: --on 'tomorrow' must be a day such as 2026-01-31\n"
    assert roadstead("validate", "--on", "", cwd=fleet).returncode == 2


@pytest.fixture
def cloud() -> MemoryCloud:
    cloud = ready()
    cloud.clock.advance(394 * 24 * 3600)
    return cloud


@pytest.mark.parametrize("columns", [80, 120])
def test_why_and_status_show_what_a_running_cluster_loses(url: str, cloud: MemoryCloud, columns: int) -> None:
    for command in (("why", "one"), ("status", "one")):
        _, shown = on_terminal(*command, columns=columns, rows=60, ROADSTEAD_URL=url)
        rows = [row.rstrip() for row in plain(shown).splitlines()]
        assert max(map(len, rows)) <= columns
        text = " ".join(" ".join(rows).split())
        assert (
            "retirement kubernetesVersion: Kubernetes 1.36 leaves support on 2027-06-30, in 151 days" in text
        )
    _, shown = on_terminal("status", columns=columns, ROADSTEAD_URL=url)
    rows = [row.rstrip() for row in plain(shown).splitlines() if row.strip()]
    note = "1 cluster runs what AKS retires: roadstead why NAME"
    assert rows.index(note) > next(at for at, row in enumerate(rows) if row.startswith("one "))


def test_of_a_fleet_that_is_not_shown_whole_status_counts_the_retirements_of_what_it_shows() -> None:
    cloud = ready_fleet("one", "two")
    cloud.clock.advance(394 * 24 * 3600)
    with served(cloud.ports) as url:
        done = roadstead("status", "--prefix", "one", ROADSTEAD_URL=url)
    assert "1 cluster shown here runs what AKS retires: roadstead why NAME" in done.stdout


def test_the_api_has_the_field_the_day_and_the_source(url: str, cloud: MemoryCloud) -> None:
    for command in (("why", "one"), ("status", "one")):
        view = json.loads(roadstead(*command, "-o", "json", ROADSTEAD_URL=url).stdout)
        (found,) = view["retirements"]
        assert (found["field"], found["what"], found["on"]) == (
            *("kubernetesVersion", "Kubernetes 1.36"),
            "2027-06-30",
        )
        assert found["source"].startswith("https://learn.microsoft.com/")
