"""A commit takes a cluster outside Azure: wherever people read of it, it is released and not destroyed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.plans import plan_view
from shared.cluster.record_parts import Phase
from shared.language.model.notification_kinds import NotificationKind
from tests.support.attached_clusters import SECRET, attached, cloud_with_harbour, files
from tests.support.console_pages import shown
from tests.support.fleet_files import fleet
from tests.support.notifications import notifying
from tests.support.notified import ALL, kinds, titles
from tests.support.pipeline_runs import phases, push, status, step_until
from tests.support.roadstead_command import plain, roadstead, write
from tests.support.served_api import served

pytestmark = pytest.mark.lives

PROTECTED = "  deletionProtection: true\n"
UNTRUE = re.compile(r"delet|destroy|everything that runs there:", re.IGNORECASE)
"""No part of what is said of a release, but for the names of guards."""
GUARDS = re.compile(r"deletionProtection(: false)?|guards\.deleteBudget")


@pytest.fixture
def cloud() -> MemoryCloud:
    """Return a cloud whose newest commit takes an attached cluster, which is protected."""
    made = attached(extra=PROTECTED)
    push(made, fleet())
    made.run()
    return made


@pytest.fixture
def url(cloud: MemoryCloud) -> Iterator[str]:
    with served(cloud.ports) as address:
        yield address


def is_true(text: str) -> bool:
    """Return whether a text announces no destruction."""
    return UNTRUE.search(GUARDS.sub("", text)) is None


@pytest.mark.parametrize(
    "arguments",
    [("status",), ("status", "harbour"), ("why", "harbour"), ("plans",), ("wait", "harbour", "--timeout=1s")],
)
def test_a_release_that_waits_is_no_delete_anywhere(url: str, arguments: tuple[str, ...]) -> None:
    done = roadstead(*arguments, ROADSTEAD_URL=url)
    assert is_true(done.stdout), done.stdout
    assert is_true(done.stderr), done.stderr


def test_the_head_of_the_fleet_counts_releases_apart(url: str) -> None:
    assert "1 release needs approval (roadstead approve " in roadstead("status", ROADSTEAD_URL=url).stdout


def test_the_first_page_of_the_console_counts_releases_apart(cloud: MemoryCloud) -> None:
    assert "1 release of the newest commit: approval needed" in shown(cloud.ports, "/").text


def test_an_approval_asks_to_release_what_it_releases(cloud: MemoryCloud, url: str) -> None:
    commit = cloud.repository.head("main")[:8]
    done = roadstead("approve", commit, ROADSTEAD_URL=url)
    assert f"The plan of {commit} releases 1 cluster outside Azure; what runs there stays:" in done.stdout
    assert is_true(done.stdout + done.stderr), done.stdout + done.stderr
    assert "Release all of this? [y/N]" in done.stdout + done.stderr


def test_an_approval_of_both_says_which_is_which() -> None:
    made = cloud_with_harbour()
    push(made, files("one", extra=PROTECTED))
    made.run()
    push(made, fleet("two"))
    made.run()
    with served(made.ports) as address:
        done = roadstead("approve", made.repository.head("main")[:8], ROADSTEAD_URL=address)
        head = plain(roadstead("status", ROADSTEAD_URL=address).stdout)
    text = done.stdout + done.stderr
    assert text.index("deletes 1 cluster, and everything that runs there:") < text.index("  one")
    assert text.index("releases 1 cluster outside Azure; what runs there stays:") < text.index("  harbour")
    assert "Delete and release all of this?" in text
    assert "1 removal and 1 release need approval" in head


def test_the_plan_before_the_merge_says_that_what_runs_there_stays(url: str, tmp_path: Path) -> None:
    done = roadstead("plan", cwd=write(tmp_path, fleet()), ROADSTEAD_URL=url)
    assert "releases the cluster: what runs there stays" in done.stdout
    assert is_true(done.stdout), done.stdout


def test_a_rebuild_is_refused_before_a_file_changes(tmp_path: Path) -> None:
    before = files()["clusters/harbour/cluster.yaml"]
    done = roadstead("rebuild", "harbour", cwd=write(tmp_path, files()))
    assert (done.returncode, done.stdout) == (1, "")
    assert "harbour is outside Azure, and only a cluster in Azure is rebuilt" in done.stderr
    assert (tmp_path / "clusters/harbour/cluster.yaml").read_bytes() == before


def test_one_that_is_replaced_is_said_to_be_released(tmp_path: Path) -> None:
    own = files()["clusters/harbour/cluster.yaml"].replace(SECRET.encode(), b'"{name}-kubeconfig"')
    folder = write(tmp_path, files() | {"clusters/harbour/cluster.yaml": own})
    done = roadstead("rebuild", "harbour", "--as", "quay", cwd=folder)
    assert "quay is attached. harbour is released when quay is Ready; what runs there stays." in done.stdout
    assert is_true(done.stdout), done.stdout


def test_the_page_the_status_and_the_notification_of_the_commit_are_true(cloud: MemoryCloud) -> None:
    commit = cloud.repository.head("main")
    detail = plan_view(commit, cloud.ports)
    assert detail is not None
    (item,) = detail["items"]
    assert (item["action"], item["releases"], item["needsApproval"]) == ("on-hold", True, True)
    assert is_true(shown(cloud.ports, f"/plans/{commit}").text)
    assert is_true(status(cloud, commit)[1])


def test_a_release_that_is_carried_out_has_its_own_words() -> None:
    cloud = attached()
    push(cloud, notifying(fleet(), ALL))
    step_until(cloud, lambda: phases(cloud) == {"harbour": Phase.DELETING})
    with served(cloud.ports) as address:
        shown = roadstead("status", "-o", "name", "--phase", "Releasing", ROADSTEAD_URL=address)
        assert shown.stdout == "cluster/harbour\n", shown.stderr
        cloud.run()
        assert phases(cloud) == {}
        gone = roadstead("why", "harbour", ROADSTEAD_URL=address).stdout
        waited = roadstead("wait", "harbour", "--for=deleted", ROADSTEAD_URL=address).stdout
    assert "harbour, Released" in gone
    assert "is no longer of this fleet (Released: " in gone
    assert waited == "harbour is released: what runs there stays\n"
    assert kinds(cloud, "all") == [(NotificationKind.RELEASED, "harbour", False)]
    assert titles(cloud, "all") == ["example: 1 cluster released"]
    detail = plan_view(cloud.repository.head("main"), cloud.ports)
    assert detail is not None
    assert [item["action"] for item in detail["items"]] == ["release"]
