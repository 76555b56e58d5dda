"""The PullRequests port: in memory, on a bare repository, and the adapter over the server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from localcloud.github.wire.github_server import GitHubServer
from localcloud.github.world.git_repository import GitRepository
from localcloud.github.world.issues import WorldIssues
from localcloud.github.world.memory_repository import MemoryRepository
from localcloud.github.world.people import OPERATOR, Teams
from localcloud.github.world.proposing_port import WorldProposing
from localcloud.github.world.pull_requests_port import WorldPullRequests
from shared.adapters.github import GitHubRepository, github_auth
from shared.ports import Issues, Proposing, PullRequests
from tests.support.github_app import APP, KEY

CASES = ["memory", "memory as app", "world", "adapter", "adapter as app"]


@dataclass(frozen=True)
class Case:
    """An implementation of the port, as what it is signed in, and the repository and the teams behind it."""

    port: PullRequests
    issues: Issues
    proposing: Proposing
    git: GitRepository | MemoryRepository
    app: bool
    teams: Teams

    def branch(self, name: str, files: dict[str, bytes | None], author: str = "operator@example.com") -> str:
        self.git.reset(self.git.head("main"), name)
        return self.git.commit(files, branch=name, author=author)


@contextmanager
def pull_request_case(name: str, folder: Path) -> Iterator[Case]:
    """Serve one of ``CASES``, with a first commit."""
    kind, app = name.split()[0], name.endswith("app")
    if kind == "memory":
        commits = MemoryRepository()
        yield _started(
            Case(
                WorldPullRequests(commits.pulls, app=app),
                _world_issues(commits),
                _world_proposing(commits),
                commits,
                app,
                commits.pulls.teams,
            )
        )
        return
    if kind == "world":
        with GitRepository.create(folder / "fleet.git") as git:
            port, issues = WorldPullRequests(git.pulls), _world_issues(git)
            yield _started(Case(port, issues, _world_proposing(git), git, app, git.pulls.teams))
        return
    with GitHubServer(folder, token="local", webhook_secret="s", app=APP) as server:
        git = server.create_repository("acme/fleet")
        app_credentials = {"app_id": APP.id, "private_key": KEY, "installation_id": str(APP.installation)}
        auth = github_auth(**app_credentials) if app else github_auth(token="local")
        adapter = GitHubRepository("acme/fleet", auth, base_url=server.url)
        yield _started(Case(adapter.pulls, adapter.issues, adapter.proposing, git, app, server.teams))
        adapter.close()


def _world_issues(git: GitRepository | MemoryRepository) -> Issues:
    return WorldIssues(git.pulls.issues, OPERATOR.login)


def _world_proposing(git: GitRepository | MemoryRepository) -> Proposing:
    return WorldProposing(git, git.pulls, OPERATOR.login)


def _started(case: Case) -> Case:
    case.git.commit({"a.yaml": b"1\n", "b.yaml": b"1\n"})
    return case
