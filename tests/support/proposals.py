"""A fleet repository in memory with pull requests, and what GitHub shows on them."""

from __future__ import annotations

from dataclasses import dataclass

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from shared.app.intake.webhook import PullChange, Push
from tests.support import fleet_files


@dataclass(frozen=True)
class Repo:
    """A cloud with a fleet that is planned, and a branch for pull requests."""

    cloud: MemoryCloud

    def push(self, files: dict[str, bytes]) -> str:
        commit = self.cloud.repository.push(files)
        accept(Push("d1", f"push-{commit}", commit), self.cloud.ports)
        self.cloud.run()
        return commit

    def propose(self, files: dict[str, bytes], *, fork: bool = False) -> int:
        git = self.cloud.repository
        git.reset(git.head("main"), "topic")
        head = git.push(files, branch="topic")
        number = git.pulls.open("A change", "topic", "main", fork=fork).number
        self.tell(number, head, "opened")
        return number

    def proposed(self, extra: str) -> str:
        """Return the comment on a pull request that adds a cluster to one and two."""
        added = {"clusters/three/cluster.yaml": fleet_files.cluster("three", extra=extra)}
        (comment,) = self.comments(self.propose(fleet_files.fleet("one", "two") | added))
        return comment

    def announce(self, number: int, head: str, action: str = "synchronize") -> None:
        accept(PullChange("d1", f"{action}-{head}", number, head, action), self.cloud.ports)

    def tell(self, number: int, head: str, action: str = "synchronize") -> None:
        self.announce(number, head, action)
        self.cloud.run()

    def comments(self, number: int) -> list[str]:
        return [comment.body for comment in self.cloud.repository.pulls.comments(number)]

    def status(self, commit: str) -> tuple[str, str, str]:
        latest = self.cloud.repository.statuses.latest(commit)[0].status
        return latest.context, latest.state, latest.description


def fleet_of(cloud: MemoryCloud) -> Repo:
    """Return the repository of a planned fleet of the clusters one and two."""
    repo = Repo(cloud)
    repo.push(fleet_files.fleet("one", "two"))
    return repo
