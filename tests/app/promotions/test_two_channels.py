"""An environment that follows versions and node images: two pull requests that change one file."""

from __future__ import annotations

import pytest

from localcloud.azure.world.catalog import NODE_IMAGES
from localcloud.git.world.pull_requests import PullRecord
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from tests.support.channels import IMAGES, fleet, versions
from tests.support.pipeline_runs import push, pushed
from tests.support.promotions import asked_again, decided, problem, pulls

pytestmark = pytest.mark.lives
NAMES = ("development", "production")
BOTH = IMAGES.replace(b"spec:\n", b"spec:\n  kubernetes: {channel: stable}\n").replace(
    b"    kubernetesVersion: '1.36'\n", b""
)
FILE = "environments/development.versions.yaml"
OLD, NEW = "  minNodeImageVersion: '202510.19.1'\n", "  minNodeImageVersion: '202511.01.0'\n"


def begun(production: str = "1.35.7") -> MemoryCloud:
    """Return a fleet whose node images are old, and its versions, but perhaps that of production."""
    cloud, found = MemoryCloud(), fleet(*NAMES, channel=BOTH)
    for name, version in zip(NAMES, ("1.35.7", production), strict=True):
        found[f"environments/{name}.versions.yaml"] = versions(name, version, OLD)
    push(cloud, found)
    cloud.run()
    for record in cloud.state.clusters():
        cloud.azure.interventions.set_node_image(record.desired.id, "system", NODE_IMAGES[0])
    return cloud


def proposed(cloud: MemoryCloud) -> dict[str, PullRecord]:
    listed = cloud.repository.pulls.listed()
    return {pull.head.split("/")[1]: pull for pull in listed if pull.head.endswith("/development")}


@pytest.mark.parametrize(("first", "second"), [("versions", "images"), ("images", "versions")])
def test_a_merge_of_one_leaves_the_other_one_to_be_merged(first: str, second: str) -> None:
    cloud = begun()
    opened = proposed(cloud)
    assert opened.keys() == {first, second}
    record = cloud.repository.pulls.merged_into_base(opened[first].number)
    accept(pushed(cloud, record.merge_commit), cloud.ports)
    decided(cloud, record.number, "closed")
    assert proposed(cloud)[second].number == opened[second].number
    merged = cloud.repository.pulls.merged_into_base(opened[second].number)
    assert cloud.repository.files(merged.merge_commit)[FILE] == versions("development", "1.36.3", NEW)


def test_a_version_that_would_go_down_holds_the_promotion_of_an_image_too() -> None:
    cloud = begun(production="1.36.3")
    record = cloud.repository.pulls.merged_into_base(proposed(cloud)["images"].number)
    accept(pushed(cloud, record.merge_commit), cloud.ports)
    cloud.run()
    asked_again(cloud)
    assert pulls(cloud) == []
    assert problem(cloud) == (
        "version: no version is lowered, and b1, b2 of production has a newer one than 1.35.7"
    )
