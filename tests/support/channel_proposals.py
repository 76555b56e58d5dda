"""Pull requests that propose versions of a channel."""

from __future__ import annotations

from localcloud.git.world.pull_requests import PullRecord
from localcloud.memory.memory_cloud import MemoryCloud
from shared.ports.state import Promotion
from shared.promotions import What
from tests.support.channels import fleet, versions

BRANCH = "roadstead/versions/example/development"


FILE = "environments/development.versions.yaml"


def tree(version: str = "1.35.7", *names: str) -> dict[str, bytes]:
    found = fleet(*(names or ("development", "production")))
    for name in names or ("development", "production"):
        found[f"environments/{name}.versions.yaml"] = versions(name, version)
    return found


def proposed(cloud: MemoryCloud, state: str = "open") -> list[PullRecord]:
    found = [pull for pull in cloud.repository.pulls.listed(state=state) if pull.head == BRANCH]
    return [*reversed(found)]


def stored(cloud: MemoryCloud) -> Promotion:
    found = cloud.state.promotion("development", What.VERSION)
    assert found is not None
    return found


def in_git(cloud: MemoryCloud, branch: str = "main", file: str = FILE) -> str:
    return cloud.repository.files(cloud.repository.head(branch))[file].decode()
