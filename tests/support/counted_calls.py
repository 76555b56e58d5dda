"""A port that counts its calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.servicebus.world.broker_values import SessionLock
from shared.ports import Ports, TreeEntry
from tests.support.replaced_ports import Around


@dataclass
class Calls:
    """What the repository was asked for; ``change`` is done to every file of an archive."""

    blobs: list[str] = field(default_factory=list)
    archives: int = 0
    trees: int = 0

    def watch(self, cloud: MemoryCloud) -> None:
        git = cloud.repository

        def blob(sha: str) -> bytes:
            self.blobs.append(sha)
            return git.blob(sha)

        def archive(commit: str, paths: Collection[str]) -> Mapping[str, bytes]:
            self.archives += 1
            return {path: self.change(path, data) for path, data in git.archive(commit, paths).items()}

        def tree(commit: str) -> list[TreeEntry]:
            self.trees += 1
            return list(git.tree(commit))

        def counted(ports: Ports) -> Ports:
            return replace(ports, git_host=Around(cloud.git_host, blob=blob, archive=archive, tree=tree))

        cloud.with_ports(counted)

    def change(self, _path: str, data: bytes) -> bytes:
        return data


def deliveries(cloud: MemoryCloud) -> Counter[str]:
    """Return how many messages of each queue the cloud delivers, counted from now on."""
    counted, deliver = Counter[str](), cloud.deliver

    def counting(queue: str, lock: SessionLock, ports: Ports) -> None:
        counted[queue] += 1
        deliver(queue, lock, ports)

    cloud.deliver = counting  # type: ignore[method-assign]
    return counted
