"""The implementations of the port of a git host: in memory, on a bare repository, and the adapters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from localcloud.azure_devops.devops_server import DevOpsServer
from localcloud.common.clock import system_clock
from localcloud.git.wire.ssh_server import GitOverSsh, new_key, public_key
from localcloud.git.world.git_commands import run_git
from localcloud.git.world.git_repository import GitRepository
from localcloud.git.world.memory_repository import MemoryRepository
from localcloud.git.world.new_commits import new_blob, new_commit
from localcloud.git.world.people import Teams
from localcloud.github.wire.github_server import GitHubServer
from localcloud.github.world_host import WorldHost
from localcloud.gitlab.wire.gitlab_server import GitLabServer
from localcloud.gitlab.world.project import Project
from shared.adapters.azure_devops import AzureDevOpsHost
from shared.adapters.azure_devops.host import CAPABILITIES as DEVOPS_HAS
from shared.adapters.git import GitServerHost
from shared.adapters.git.host import MOST_ENTRIES
from shared.adapters.git.ssh import SshGitServer
from shared.adapters.github import GitHubHost, github_auth
from shared.adapters.gitlab import GitLabHost
from shared.adapters.gitlab.host import CAPABILITIES as GITLAB_HAS
from shared.ports import CommitStatus, GitHost
from shared.ports.git_host import Addressee, Capability
from tests.support.azure_ports import StaticCredential
from tests.support.github_app import APP, KEY

DEVOPS = "azure-devops"
PLAIN = "git"
OVER_SSH = "git over ssh"
"""The host that has nothing but git, read over HTTP and over SSH."""
ON_GITHUB = ["memory", "memory as app", "world", "adapter", "adapter as app"]
CAPABILITIES: Mapping[str, frozenset[Capability]] = {
    "gitlab": GITLAB_HAS,
    DEVOPS: DEVOPS_HAS,
    PLAIN: frozenset(),
}
"""What each other host has, by its ``GIT_HOST``; a host is in each suite of what it has."""
WAYS: Mapping[str, Sequence[str]] = {PLAIN: (PLAIN, OVER_SSH)}
"""The ways in which a host is read, where there are several."""


def having(*capabilities: Capability, as_app: bool = True) -> list[str]:
    """Return the implementations that have all of these; GitHub has everything.

    ``as_app``: also those that are signed in as a GitHub App, where that makes a difference.
    """
    on_github = [name for name in ON_GITHUB if as_app or not name.endswith(" as app")]
    others = [host for host, has in CAPABILITIES.items() if has.issuperset(capabilities)]
    return [*on_github, *(name for host in others for name in WAYS.get(host, (host,)))]


WITH_A_TOKEN = [*(name for name in ON_GITHUB if not name.endswith(" as app")), "gitlab"]
"""Hosts that are read with a token, and that say when it ends."""
CASES = having(Capability.PULLS, Capability.REVIEWS, Capability.PROPOSALS)
"""Hosts whose changes are proposed and reviewed."""


@dataclass(frozen=True)
class Rules:
    """Where the rules of hosts differ; each is that of its documentation.

    ``keeps_statuses``: every status of a commit is stored, up to 1,000; else one changes until it has ended.
    ``texts``: a review has a text, and may be only that. ``withdrawn``: one that was taken back is shown.
    ``login``: a user is named by that form of a name.
    """

    description: int = 140
    title: int = 256
    text: int = 65_536
    note: int = 65_536
    target: int = 2_000
    keeps_statuses: bool = True
    texts: bool = True
    withdrawn: bool = True
    login: str = "{}"
    pull_page: str = "/pull/"
    review_page: str = "#pullrequestreview-{}"
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
    text=1_048_576,
    note=1_000_000,
    target=255,
    keeps_statuses=False,
    texts=False,
    withdrawn=False,
    pull_page="/-/merge_requests/",
    review_page="",
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
    texts=False,
    login="{}@example.com",
    pull_page="/pullrequest/",
    review_page="?discussionId={}",
    hidden="reviewer@example.com",
    addresses=dict.fromkeys(["ada@example.com", "7+lin@users.noreply.github.com"], _PERSON),
)


@dataclass(frozen=True)
class Case:
    """An implementation, as what it is signed in, and the repository and the teams behind it."""

    host: GitHost
    git: GitRepository | MemoryRepository
    app: bool
    teams: Teams
    server: GitHubServer | None = None
    others: dict[str, MemoryRepository] = field(default_factory=dict)
    rules: Rules = GITHUB
    other_server: GitLabServer | DevOpsServer | None = None

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
        if server := self.server or self.other_server:
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
        server = self.server or self.other_server
        if isinstance(server, GitHubServer | GitLabServer):
            server.credentials.token_expires = at


@contextmanager
def git_host_case(name: str, folder: Path) -> Iterator[Case]:
    """Serve an implementation, as ``having`` names it, with an empty repository."""
    kind, app = name.split()[0], name.endswith("app")
    if kind == "gitlab":
        with GitLabServer(folder, token="local") as gitlab:
            project = gitlab.create_repository("acme/fleet")
            reader = GitLabHost(gitlab.clone_url("acme/fleet"), "", "local")
            yield Case(reader, project, app, gitlab.groups, rules=GITLAB, other_server=gitlab)
            reader.close()
        return
    if kind == DEVOPS:
        with DevOpsServer(folder, accepts=lambda token: token == "a-token") as devops:
            git = devops.create_repository("acme/fleet")
            found = AzureDevOpsHost(devops.clone_url("acme/fleet"), StaticCredential())
            yield Case(found, git, app, devops.teams, rules=AZURE_DEVOPS, other_server=devops)
            found.close()
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
    with GitHubServer(folder, token="local", webhook_secret="s", app=APP) as server:
        git = server.create_repository("acme/fleet")
        if name == OVER_SSH:
            with reader_over_ssh(folder) as over_ssh:
                yield Case(over_ssh, git, app, server.teams, server)
            return
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


@contextmanager
def reader_over_ssh(folder: Path) -> Iterator[GitServerHost]:
    """Serve the repositories of a folder over SSH, and yield what reads acme/fleet."""
    key = new_key()
    with GitOverSsh(folder, new_key(), public_key(key)) as ssh:
        url = ssh.url("acme/fleet")
        server = SshGitServer(url, key, ssh.known_hosts, clock=system_clock)
        host = GitServerHost(url, server=server)
        yield host
        host.close()
