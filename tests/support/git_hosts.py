"""The implementations of the port of a git host: in memory, on a bare repository, and the adapters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from localcloud.azure_devops.devops_server import DevOpsServer
from localcloud.github.wire.github_server import GitHubServer
from localcloud.github.world.commit_statuses import Statuses
from localcloud.github.world.git_commands import run_git
from localcloud.github.world.git_host import WorldHost
from localcloud.github.world.git_repository import GitRepository
from localcloud.github.world.memory_repository import MemoryRepository
from localcloud.github.world.new_commits import new_blob, new_commit
from localcloud.github.world.people import Teams
from localcloud.gitlab.wire.gitlab_server import GitLabServer
from localcloud.gitlab.world.job_statuses import JobStatuses
from localcloud.gitlab.world.project import Groups, Project
from shared.adapters.azure_devops import AzureDevOpsHost
from shared.adapters.git import GitServerHost
from shared.adapters.git.host import MOST_ENTRIES
from shared.adapters.github import GitHubHost, github_auth
from shared.adapters.gitlab import GitLabHost
from shared.ports import CommitStatus, GitHost
from shared.ports.git_host import Addressee
from tests.support.azure_ports import StaticCredential
from tests.support.github_app import APP, KEY

CASES = ["memory", "memory as app", "world", "adapter", "adapter as app", "gitlab"]
"""Hosts that have everything."""
DEVOPS = "azure-devops"
HOSTS = [*CASES, DEVOPS]
"""Hosts that have pull requests; what one of them lacks is in ``Capability`` and docs/architecture.md."""
PLAIN = "git"
"""The host that has nothing but git: what it lacks is in ``Capability`` and docs/architecture.md."""


@dataclass(frozen=True)
class Rules:
    """Where the rules of hosts differ; each is that of its documentation.

    ``keeps_statuses``: every status of a commit is stored, up to 1,000; else one changes until it has ended.
    ``votes``: a review is who approves now, or is against: it has no text and no number of its own, and what
    was withdrawn is not shown.
    """

    description: int = 140
    title: int = 256
    text: int = 65_536
    keeps_statuses: bool = True
    votes: bool = False
    pull_page: str = "/pull/"
    hidden: str = "3+reviewer@users.noreply.github.com"
    states: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, Addressee] = field(default_factory=dict)

    def shown(self, status: CommitStatus) -> CommitStatus:
        """Return a status in the host's words."""
        return replace(status, state=self.states.get(status.state, status.state))


_PERSON, _HIDDEN, _NOBODY = Addressee.PERSON, Addressee.HIDDEN, Addressee.NOBODY
GITHUB = Rules(
    addresses={
        "ada@example.com": _PERSON,
        "7+lin@users.noreply.github.com": _HIDDEN,
        "lin@users.noreply.github.com": _HIDDEN,
        "1+notcopilot@users.noreply.github.com": _HIDDEN,
        "noreply@github.com": _NOBODY,
        "7+app[bot]@users.noreply.github.com": _NOBODY,
        "223556219+copilot@users.noreply.github.com": _NOBODY,
    }
)
GITLAB = Rules(
    description=255,
    title=255,
    text=1_000_000,
    keeps_statuses=False,
    votes=True,
    pull_page="/-/merge_requests/",
    hidden="3-reviewer@users.noreply.gitlab.com",
    states={"failure": "failed", "error": "failed"},
    addresses={
        "ada@example.com": _PERSON,
        "7-lin@users.noreply.gitlab.com": _HIDDEN,
        "7-lin@users.noreply.gitlab.example.com": _HIDDEN,
        "lin@users.noreply.example.com": _PERSON,
        "noreply@127.0.0.1": _NOBODY,
        "project_7_bot_0a1b2c@noreply.gitlab.example.com": _NOBODY,
        "group_7_bot@noreply.gitlab.com": _NOBODY,
    },
)

AZURE_DEVOPS = Rules(
    pull_page="/pullrequest/",
    hidden="reviewer@example.com",
    addresses=dict.fromkeys(GITHUB.addresses, _PERSON),
)


@dataclass(frozen=True)
class Case:
    """An implementation, as what it is signed in, and the repository and the teams behind it."""

    host: GitHost
    git: GitRepository | MemoryRepository
    app: bool
    teams: Teams | Groups
    server: GitHubServer | None = None
    others: dict[str, MemoryRepository] = field(default_factory=dict)
    rules: Rules = GITHUB
    gitlab: GitLabServer | None = None
    devops: DevOpsServer | None = None

    @property
    def statuses(self) -> Statuses | JobStatuses:
        """The statuses that were written."""
        return self.git.jobs if isinstance(self.git, Project) else self.git.statuses

    def with_large_tree(self) -> str:
        """Return a commit whose tree is not read: GitHub cuts it off, or it has too many entries."""
        self.git.truncate_trees = True
        if not isinstance(self.git, Project):
            return self.git.commit({"a.yaml": b"1"})
        blob = new_blob(self.git.path, b"1")
        lines = "".join(f"100644 blob {blob}\t{number}\n" for number in range(MOST_ENTRIES + 1))
        tree = run_git(self.git.path, "mktree", stdin=lines.encode()).decode().strip()
        commit = new_commit(self.git.path, tree, "Many", [])
        self.git.reset(commit)
        return commit

    def another(self, name: str) -> GitRepository | MemoryRepository:
        """Create another repository, "owner/name"."""
        if server := self.server or self.gitlab or self.devops:
            return server.create_repository(name)
        self.others[name] = created = MemoryRepository()
        created.id = len(self.others) + 1000
        return created

    def branch(self, name: str, files: dict[str, bytes | None], author: str = "operator@example.com") -> str:
        self.git.reset(self.git.head("main"), name)
        return self.git.commit(files, branch=name, author=author)

    def token_ends(self, at: datetime) -> None:
        """Let the token of the host end at a time."""
        self.git.token_expires = at
        if server := self.server or self.gitlab:
            server.credentials.token_expires = at

    @property
    def of_github(self) -> bool:
        """Whether its people, reviews and addresses are as GitHub has them."""
        return self.devops is None


@contextmanager
def git_host_case(name: str, folder: Path) -> Iterator[Case]:
    """Serve one of ``CASES``, with an empty repository."""
    kind, app = name.split()[0], name.endswith("app")
    if kind == "gitlab":
        with GitLabServer(folder, token="local") as gitlab:
            project = gitlab.create_repository("acme/fleet")
            reader = GitLabHost(gitlab.clone_url("acme/fleet"), "", "local")
            yield Case(reader, project, app, gitlab.groups, rules=GITLAB, gitlab=gitlab)
            reader.close()
        return
    if kind == "memory":
        commits, others = MemoryRepository(), dict[str, MemoryRepository]()
        host = WorldHost(commits, app=app, others=others)
        yield Case(host, commits, app, commits.pulls.teams, others=others)
        return
    if kind == "world":
        with GitRepository.create(folder / "fleet.git") as git:
            others = dict[str, MemoryRepository]()
            yield Case(WorldHost(git, others=others), git, app, git.pulls.teams, others=others)
        return
    if kind == DEVOPS:
        with DevOpsServer(folder, accepts=lambda token: token == "a-token") as devops:
            git = devops.create_repository("acme/fleet")
            found = AzureDevOpsHost(devops.clone_url("acme/fleet"), StaticCredential())
            yield Case(found, git, app, devops.teams, rules=AZURE_DEVOPS, devops=devops)
            found.close()
        return
    with GitHubServer(folder, token="local", webhook_secret="s", app=APP) as server:
        git = server.create_repository("acme/fleet")
        if kind == PLAIN:
            plain = GitServerHost(server.clone_url("acme/fleet"), "operator", "local")
            yield Case(plain, git, app, server.teams, server)
            plain.close()
            return
        app_credentials = {"app_id": APP.id, "private_key": KEY, "installation_id": str(APP.installation)}
        auth = github_auth(**app_credentials) if app else github_auth(token="local")
        adapter = GitHubHost("acme/fleet", auth, base_url=server.url)
        yield Case(adapter, git, app, server.teams, server)
        adapter.close()
