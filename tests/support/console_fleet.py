"""A fleet in memory with something on each page of the console: a rollout, an approval, a failure, drift."""

from __future__ import annotations

from collections.abc import Iterator

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from shared.app.intake.webhook import PullChange
from shared.resource_ids import ClusterId
from tests.support.pipeline_runs import cloud_with, push
from tests.support.sweeps import sweep, tag_by_hand
from tests.support.team_systems import fleet, system

ROLLOUT = b"""\
  rollout:
    stages:
      - {name: development, select: {environments: [development]}, groups: [{maxConcurrency: "100%"}]}
      - name: first-region
        select: {locations: [westeurope]}
        groups: [{maxConcurrency: "50%"}]
      - name: everywhere
        approval: true
        gate: {owner: release-managers, reason: a day in the first region}
        groups: [{maxConcurrency: "25%"}]
"""
REGIONS = ("westeurope", "northeurope", "eastus", "southeastasia")
SHORT = ("weu", "neu", "eus", "sea")
"""The regions as in the names of the clusters."""


def clusters(size: int) -> Iterator[tuple[str, str, str]]:
    """Yield name, environment and region: in each region one cluster of development, others of production."""
    for region, short in zip(REGIONS, SHORT, strict=True):
        yield f"dev-{short}-1", "development", region
        for number in range(1, size + 1):
            yield f"shop-{short}-{number}", "production", region


def files(size: int, change: str = "", gone: tuple[str, ...] = ()) -> dict[str, bytes]:
    """Return the fleet; ``change`` is a tag of each cluster, and ``gone`` are the clusters that it lacks."""
    made = list(clusters(size))
    left = [name for name, _, _ in made if name not in gone]
    shop = system("shop", ", ".join(name for name in left if name.startswith("shop")))
    found = fleet(*left, systems={"shop": shop}, budget=9)
    found["fleet.yaml"] += ROLLOUT
    for name, environment, region in made:
        path = f"clusters/{name}/cluster.yaml"
        if path not in found:
            continue
        own = f"  environment: {environment}\n  deletionProtection: false\n"
        own += f"  tags: {{release: {change or 'r1'}}}\n"
        manifest = found[path].replace(b"spec:\n", f"spec:\n{own}".encode())
        found[path] = manifest.replace(b"eastus", region.encode())
    return found


def busy_fleet(size: int = 4) -> MemoryCloud:
    """Return the fleet in the midst of a rollout whose commit also removes two clusters."""
    cloud = cloud_with(files(size))
    drifted = ClusterId("00000000-0000-0000-0000-000000000001", f"rg-shop-eus-{size}", f"shop-eus-{size}")
    tag_by_hand(cloud, drifted, release="by-hand")
    sweep(cloud)
    wrong = "The value of parameter agentPoolProfile.osDiskSizeGB is invalid."
    cloud.azure.interventions.fail_next("shop-weu-1", "InvalidParameter", wrong)
    push(cloud, files(size, "r2", gone=(f"shop-sea-{size}", f"shop-neu-{size}")))
    propose(cloud, files(size, "r3", gone=(f"shop-sea-{size}", f"shop-neu-{size}", f"shop-weu-{size}")))
    cloud.run(600)
    return cloud


def propose(cloud: MemoryCloud, made: dict[str, bytes]) -> None:
    """Open a pull request with these files: it is planned as the cloud runs."""
    git = cloud.repository
    git.reset(git.head("main"), "topic")
    head = git.push(made, branch="topic")
    number = git.pulls.open("Release 3", "topic", "main").number
    accept(PullChange("pull", "pull", number, head, "opened"), cloud.ports)
