"""``roadstead import --pull-request``: one pull request of a person, at the local GitHub."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.commands.write.import_pull import _REMOTE, BRANCH
from localcloud.github.wire.github_server import GitHubServer
from localcloud.memory.memory_cloud import MemoryCloud
from shared.github_app import api_address
from tests.support import fleet_files
from tests.support.found_clusters import BATCH, SUBSCRIPTION, WEB, create
from tests.support.pipeline_runs import cloud_with
from tests.support.roadstead_command import roadstead

pytestmark = pytest.mark.lives

NAMES = ("web-1", "web-2", "batch-1")
REPOSITORY = "acme/fleet"


@pytest.fixture
def cloud() -> MemoryCloud:
    """Return a cloud with the example fleet, and three clusters that belong to no fleet."""
    made = cloud_with(fleet_files.example())
    for name in NAMES:
        create(made, name, BATCH if name.startswith("batch") else WEB)
    made.clock.advance(600)
    return made


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHubServer]:
    """Serve GitHub with the repository of the fleet."""
    with GitHubServer(tmp_path / "github", token="local", webhook_secret="none") as server:
        server.create_repository(REPOSITORY).commit(fleet_files.example())
        yield server


def git(folder: Path, *arguments: str) -> str:
    named = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    command = ["git", "-C", str(folder), *named, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def clone(tmp_path: Path, github: GitHubServer) -> Path:
    """Return a clone, in which somebody has changed a file and committed nothing."""
    git(tmp_path, "clone", "--quiet", github.clone_url(REPOSITORY), "clone")
    git(tmp_path / "clone", "config", "user.name", "Ada")
    git(tmp_path / "clone", "config", "user.email", "ada@example.com")
    (tmp_path / "clone" / "notes.txt").write_text("mine")
    return tmp_path / "clone"


def imported(clone: Path, url: str, given: str = "local") -> subprocess.CompletedProcess[str]:
    """Run the command."""
    options = ("import", "--subscription", SUBSCRIPTION, "--pull-request", str(clone))
    return roadstead(*options, ROADSTEAD_URL=url, GITHUB_TOKEN=given, GH_TOKEN="")


def pulls(github: GitHubServer) -> list[Any]:
    return list(github.repository(REPOSITORY).pulls.listed(state="all"))


def test_many_clusters_come_in_one_pull_request_and_a_second_run_opens_no_other(
    github: GitHubServer, clone: Path, url: str
) -> None:
    done = imported(clone, url)
    assert done.returncode == 0, done.stdout + done.stderr
    (pull,) = pulls(github)
    assert f"/pull/{pull.number}" in done.stdout
    assert (pull.head, pull.base, pull.title) == (BRANCH, "main", "Import clusters")
    assert all(f"`{name}`" in pull.body for name in NAMES)
    changed = git(clone, "diff", "--name-only", "origin/main", pull.sha).split()
    assert set(changed) >= {f"clusters/{name}/cluster.yaml" for name in NAMES}
    assert all(path.startswith(("clusters/", "classes/imported")) for path in changed)
    assert git(clone, "status", "--porcelain").split() == ["??", "notes.txt"], "no file of the person changes"
    again = imported(clone, url)
    assert again.returncode == 0, again.stdout + again.stderr
    assert [(known.number, known.sha) for known in pulls(github)] == [(pull.number, pull.sha)]


def test_a_newer_main_is_taken_along_and_a_merged_import_imports_nothing(
    github: GitHubServer, clone: Path, url: str
) -> None:
    imported(clone, url)
    repository = github.repository(REPOSITORY)
    newer = repository.commit({"README.md": b"newer\n"})
    assert imported(clone, url).returncode == 0
    (pull,) = pulls(github)
    assert repository.is_descendant(pull.sha, newer)
    repository.pulls.merged_into_base(pull.number)
    done = imported(clone, url)
    assert (done.returncode, "there is no cluster to import" in done.stderr) == (1, True)
    assert len(pulls(github)) == 1


def test_what_somebody_else_pushed_to_the_branch_stays(github: GitHubServer, clone: Path, url: str) -> None:
    imported(clone, url)
    tip = github.repository(REPOSITORY).commit({"clusters/web-1/README.md": b"mine\n"}, branch=BRANCH)
    done = imported(clone, url)
    assert (done.returncode, f"somebody has pushed to {BRANCH}" in done.stderr) == (1, True)
    assert github.repository(REPOSITORY).head(BRANCH) == tip


def test_without_a_token_nothing_is_read_and_a_refused_one_is_said(
    github: GitHubServer, clone: Path, url: str
) -> None:
    done = imported(clone, url, given="")
    assert (done.returncode, "needs your token in GITHUB_TOKEN" in done.stderr) == (2, True)
    assert BRANCH not in git(clone, "ls-remote", "origin")
    done = imported(clone, url, given="another")
    assert done.returncode == 1
    assert "GitHub answered 401: Bad credentials" in done.stderr
    assert "another" not in done.stderr.replace("another cluster", "")
    assert imported(clone, url).returncode == 0
    assert len(pulls(github)) == 1


@pytest.mark.parametrize(
    ("remote", "api"),
    [
        ("https://github.com/acme/fleet.git", "https://api.github.com"),
        ("https://github.com/acme/fleet", "https://api.github.com"),
        ("git@github.com:acme/fleet.git", "https://api.github.com"),
        ("ssh://git@ghes.example.com:22/acme/fleet.git", "https://ghes.example.com/api/v3"),
        ("https://acme.ghe.com/acme/fleet/", "https://api.acme.ghe.com"),
    ],
)
def test_the_rest_api_of_a_remote_is_found(remote: str, api: str) -> None:
    found = _REMOTE.fullmatch(remote)
    assert found is not None
    assert found["name"] == "acme/fleet"
    assert api_address(found["web"] or f"https://{found['host']}") == api


@pytest.mark.parametrize(
    "remote", ["/srv/fleet.git", "https://user:token@github.com/acme/fleet", "acme/fleet"]
)
def test_a_remote_that_is_none_of_github_is_refused(remote: str) -> None:
    assert _REMOTE.fullmatch(remote) is None
