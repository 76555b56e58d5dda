"""A cluster whose node pool was upgraded a moment ago, and what tests ask of its rollback."""

from __future__ import annotations

from typing import Any

from localcloud.git.world.pull_requests import PullRecord
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.pulls import roll_back
from shared.app.http_result import HttpResult
from shared.app.intake.accept import accept
from shared.json_tree import Json
from tests.support.one_cluster import files, pool, pools, ready
from tests.support.pipeline_runs import push, pushed

OLD_IMAGE = "AKSUbuntu-2204gen2containerd-202510.19.1"
NEW_IMAGE = "AKSUbuntu-2204gen2containerd-202511.01.0"
OFF = "  autoUpgradeProfile: {upgradeChannel: none, nodeOSUpgradeChannel: None}\n"
"""YAML of a cluster that nothing upgrades by itself."""
OLD, NEW = ("1.35.7", OLD_IMAGE), ("1.36.3", NEW_IMAGE)


def version(number: str) -> str:
    """Return YAML of a cluster's version."""
    return f'  kubernetesVersion: "{number}"\n'


def upgraded(channels: str = OFF, extra: str = "") -> MemoryCloud:
    """Return a cloud in which every pool was upgraded from the old versions to the new ones."""
    cloud = ready(pool() + version("1.35") + channels)
    for name in ("system", "apps"):
        cloud.azure.interventions.set_node_image(cloud.azure.ids()[0], name, OLD_IMAGE)
    change(cloud, channels=channels, extra=extra)
    assert runs(cloud) == NEW
    return cloud


def change(cloud: MemoryCloud, *, channels: str = OFF, extra: str = "", **fields: Any) -> str:
    """Push the cluster with the new version and these fields of its pool, and let what follows end."""
    commit = push(cloud, files(pool(**fields) + version("1.36") + channels + extra))
    cloud.run()
    return commit


def ask(cloud: MemoryCloud, name: str = "apps", reason: str = "") -> HttpResult:
    """Ask for the rollback of a pool."""
    return roll_back("one", name, "ops", cloud.ports, reason)


def open_pulls(cloud: MemoryCloud) -> list[PullRecord]:
    """Return the open pull requests."""
    return list(cloud.repository.pulls.listed(state="open"))


def merge(cloud: MemoryCloud) -> str:
    """Merge the open pull request, let what follows end, and return the commit."""
    (found,) = open_pulls(cloud)
    record = cloud.repository.pulls.merged_into_base(found.number)
    accept(pushed(cloud, record.merge_commit), cloud.ports)
    cloud.run()
    return str(record.merge_commit)


def manifest(cloud: MemoryCloud, branch: str = "main") -> str:
    """Return the cluster's manifest on a branch."""
    return cloud.repository.files(cloud.repository.head(branch))["clusters/one/cluster.yaml"].decode()


def profile(cloud: MemoryCloud, name: str = "apps") -> Json:
    """Return a pool as Azure shows it."""
    return pools(cloud)[name]


def runs(cloud: MemoryCloud, name: str = "apps") -> tuple[str, str]:
    """Return the version and the image that a pool runs."""
    found = profile(cloud, name)
    return found["currentOrchestratorVersion"], found["nodeImageVersion"]
