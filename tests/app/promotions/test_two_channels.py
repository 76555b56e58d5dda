"""An environment that follows versions and node images: two pull requests that change one file."""

from __future__ import annotations

import pytest

from localcloud.azure.world.catalog import NODE_IMAGES
from localcloud.git.world.pull_requests import PullRecord
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from tests.support.channels import IMAGES, fleet, versions
from tests.support.pipeline_runs import push, pushed
from tests.support.promotions import decided

pytestmark = pytest.mark.lives
NAMES = ("development", "production")
BOTH = IMAGES.replace(b"spec:\n", b"spec:\n  kubernetes: {channel: stable}\n").replace(
    b"    kubernetesVersion: '1.36'\n", b""
)
FILE = "environments/development.versions.yaml"
OLD, NEW = "  minNodeImageVersion: '202510.19.1'\n", "  minNodeImageVersion: '202511.01.0'\n"


def begun() -> MemoryCloud:
    """Return a fleet whose version and node images are old."""
    cloud, found = MemoryCloud(), fleet(*NAMES, channel=BOTH)
    found |= {f"environments/{name}.versions.yaml": versions(name, "1.35.7", OLD) for name in NAMES}
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
