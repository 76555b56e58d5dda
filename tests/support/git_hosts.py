"""The implementations of the port of a git host: in memory, on a bare repository, and two adapters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from localcloud.azure_devops.devops_server import DevOpsServer
from localcloud.github.wire.github_server import GitHubServer
from localcloud.github.world.git_host import WorldHost
from localcloud.github.world.git_repository import GitRepository
from localcloud.github.world.memory_repository import MemoryRepository
from localcloud.github.world.people import Teams
from shared.adapters.azure_devops import AzureDevOpsHost
from shared.adapters.git import GitServerHost
from shared.adapters.github import GitHubHost, github_auth
from shared.ports import GitHost
from tests.support.azure_ports import StaticCredential
from tests.support.github_app import APP, KEY

CASES = ["memory", "memory as app", "world", "adapter", "adapter as app"]
"""Hosts that have everything."""
DEVOPS = "azure-devops"
HOSTS = [*CASES, DEVOPS]
"""Hosts that have pull requests; what one of them lacks is in ``Capability`` and docs/architecture.md."""
PLAIN = "git"
"""The host that has nothing but git: what it lacks is in ``Capability`` and docs/architecture.md."""


@dataclass(frozen=True)
class Case:
    """An implementation, as what it is signed in, and the repository and the teams behind it."""

    host: GitHost
    git: GitRepository | MemoryRepository
    app: bool
    teams: Teams
    server: GitHubServer | None = None
    others: dict[str, MemoryRepository] = field(default_factory=dict)
    devops: DevOpsServer | None = None

    def another(self, name: str) -> GitRepository | MemoryRepository:
        """Create another repository, "owner/name"."""
        server = self.server or self.devops
        if server:
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
        if self.server:
            self.server.credentials.token_expires = at

    @property
    def of_github(self) -> bool:
        """Whether its people, reviews and addresses are as GitHub has them."""
        return self.devops is None


@contextmanager
def git_host_case(name: str, folder: Path) -> Iterator[Case]:
    """Serve one of ``CASES``, with an empty repository."""
    kind, app = name.split()[0], name.endswith("app")
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
            yield Case(found, git, app, devops.teams, devops=devops)
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
