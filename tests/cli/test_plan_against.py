"""``roadstead plan --against COMMIT``: two states of a repository are compared without an app."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from cli.errors import CommandError, UsageError
from cli.fleet_api.recorded import Against
from cli.terminal import plan_view
from cli.terminal.platform_view import PlatformView
from cli.worktree import open_commit, open_worktree
from shared.plan.plan import Plan
from shared.platform.changes.guards import judge
from shared.platform.changes.report import sections_of
from shared.prices.price_file import written
from tests.platform.inventories import claim, deployment, inventory, owner
from tests.support import fleet_files
from tests.support.git_folders import WITHOUT_APP, committed
from tests.support.recorded_prices import prices_of
from tests.support.roadstead_command import roadstead, write

pytestmark = pytest.mark.lives

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet"
FLEET = fleet_files.fleet("one", "two", "three")


@pytest.mark.parametrize(
    ("name", "content", "status", "summary"),
    [
        ("one", fleet_files.cluster("one"), 0, "3 unchanged"),
        ("one", fleet_files.cluster("one", count=3), 3, "1 update, 2 unchanged"),
        ("four", fleet_files.cluster("four"), 3, "1 create, 3 unchanged"),
        ("one", b"kind: Cluster", 1, "1 invalid, 2 unchanged"),
    ],
)
def test_the_files_are_compared_with_a_commit(
    tmp_path: Path, name: str, content: bytes, status: int, summary: str
) -> None:
    commit = committed(tmp_path, FLEET)
    write(tmp_path, {f"clusters/{name}/cluster.yaml": content})
    done = roadstead("plan", "--against", "HEAD", "--exit-code", cwd=tmp_path, **WITHOUT_APP)
    assert done.stdout.splitlines()[0] == f"Compared with commit {commit[:8]}: {summary}", done.stderr
    assert done.returncode == status
    view = json.loads(
        roadstead("plan", "--against", "main", "-o", "json", cwd=tmp_path, **WITHOUT_APP).stdout
    )
    assert view["against"] == commit


def test_a_removed_cluster_and_a_refused_change_are_as_in_the_app(tmp_path: Path) -> None:
    committed(tmp_path, FLEET)
    (tmp_path / "clusters/one/cluster.yaml").unlink()
    moved = fleet_files.cluster("two").replace(b"eastus", b"westus2")
    write(tmp_path, {"clusters/two/cluster.yaml": moved})
    text = " ".join(roadstead("plan", "--against", "HEAD", cwd=tmp_path, **WITHOUT_APP).stdout.split())
    assert "spec.location cannot change from eastus to westus2" in text
    assert "delete one deletes the cluster" in text


def test_a_manifest_that_was_invalid_before_is_new_and_said_to_be(tmp_path: Path) -> None:
    commit = committed(tmp_path, {**FLEET, "clusters/one/cluster.yaml": b"kind: Cluster"})
    write(tmp_path, FLEET)
    lines = roadstead("plan", "--against", commit[:9], cwd=tmp_path, **WITHOUT_APP).stdout.splitlines()
    assert lines[0].endswith("1 create, 2 unchanged")
    assert lines[1] == f"{commit[:8]} has no valid manifest of one: what is valid now is new"


def test_a_rebuild_that_the_commit_asked_for_is_not_asked_for_again(tmp_path: Path) -> None:
    asked = b"  name: one\n  annotations: {roadstead.dev/rebuild: '2026-11-01T00:00:00Z'}\n"
    again = {"clusters/one/cluster.yaml": fleet_files.cluster("one").replace(b"  name: one\n", asked, 1)}
    committed(tmp_path, {**FLEET, **again})
    done = roadstead("plan", "--against", "HEAD", cwd=tmp_path, **WITHOUT_APP)
    assert done.stdout.splitlines()[0].endswith("3 unchanged"), done.stdout


def test_a_fleet_in_a_folder_of_a_repository_is_read_there(tmp_path: Path) -> None:
    write(tmp_path / "fleets" / "prod", FLEET)
    commit = committed(tmp_path, {"README.md": b"", "fleets/other/fleet.yaml": b""})
    tree = open_commit(tmp_path / "fleets" / "prod", commit)
    assert tree.files.blobs == dict(open_worktree(tmp_path / "fleets" / "prod").files.blobs)
    assert tree.read("fleet.yaml") == FLEET["fleet.yaml"]


def test_links_of_a_commit_are_no_plain_files(tmp_path: Path) -> None:
    write(tmp_path, FLEET)
    (tmp_path / "linked").symlink_to("/etc")
    commit = committed(tmp_path, {"names/with ümlaut\n.yaml": b"a: 1"})
    tree = open_commit(tmp_path, commit)
    assert tree.files.other == {"linked"}
    assert tree.read("names/with ümlaut\n.yaml") == b"a: 1"


@pytest.mark.parametrize("width", [80, 120])
def test_changes_of_flux_fit_the_terminal_and_are_there_for_scripts(width: int) -> None:
    names = {f"production-{number:02}": "production" for number in range(14)}
    before = inventory(owner("p", claim("a/b"), deployment("a/c", "x:1")))
    after = inventory(owner("p", deployment("a/c", "x:2")))
    sections = sections_of(dict.fromkeys(names, judge(before, after, 20)), names)
    platform = PlatformView(sections)
    out = Console(width=width, file=io.StringIO(), record=True)
    out.print(plan_view.table(Plan(""), [], Against("a commit"), platform=platform))
    text = out.export_text()
    assert max(map(len, text.splitlines())) <= width
    assert "\nFlux on 14 clusters of production (1 path): needs approval\n" in text
    assert "production-03, production-04 and 9 more" in " ".join(text.split())
    assert "  - PersistentVolumeClaim a/b\n      needs approval: PersistentVolumeClaim a/b is deleted" in text
    view = plan_view.as_json(Plan(""), [], "fleet", Against("a commit"), None, platform=platform)
    (shown,) = view["platform"]["changes"]
    assert (len(shown["clusters"]), shown["state"]) == (14, "needs approval")
    assert shown["changes"][0]["destroys"] == ["PersistentVolumeClaim a/b"]


@pytest.mark.parametrize("name", ["nothing", "-h", "", "HEAD:fleet.yaml", "--all", "a\nb", "a\0b"])
def test_what_is_no_commit_is_an_error_of_use(tmp_path: Path, name: str) -> None:
    committed(tmp_path, FLEET)
    with pytest.raises(UsageError, match="there is no commit"):
        open_commit(tmp_path, name)


def test_without_a_repository_or_a_fleet_it_says_so(tmp_path: Path) -> None:
    with pytest.raises((UsageError, CommandError)):
        open_commit(tmp_path, "HEAD")
    commit = committed(tmp_path, {"README.md": b""})
    with pytest.raises(UsageError, match=r"has no fleet\.yaml"):
        open_commit(tmp_path, commit)


def test_only_one_comparison_is_asked_for(tmp_path: Path) -> None:
    committed(tmp_path, FLEET)
    done = roadstead("plan", "--against", "HEAD", "--empty", cwd=tmp_path, **WITHOUT_APP)
    assert (done.returncode, done.stdout) == (2, "")
    assert "give one of them" in done.stderr


def test_a_plan_says_by_how_much_it_changes_the_list_price(tmp_path: Path) -> None:
    fleet = Path(shutil.copytree(EXAMPLE, tmp_path / "fleet"))
    clusters = open_worktree(fleet).resolve().clusters
    (fleet / "prices.yaml").write_text(written(prices_of(cluster.spec for cluster in clusters.values())))

    done = roadstead("plan", str(fleet), "--empty")
    shown = json.loads(roadstead("plan", str(fleet), "--empty", "-o", "json").stdout)["listPrice"]

    assert (
        "List price: +$2,852 (+$5,399 with autoscaled pools at their maximum) a month, prices of 2026-09-23"
        in done.stdout
    )
    assert "  atlantic-aks: +$1,193 (+$3,740 with autoscaled pools at their maximum)" in done.stdout
    assert "not counted" not in done.stdout
    assert (shown["low"], shown["high"], shown["currency"]) == (2851.97, 5398.63, "USD")
    assert any(detail.startswith("not counted: ") for detail in shown["details"])
