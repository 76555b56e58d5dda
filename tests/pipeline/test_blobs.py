"""A manifest is read from GitHub once, whoever reads it, and a push costs what it changed."""

from __future__ import annotations

from dataclasses import replace

from localcloud.world.cloud import MemoryCloud
from shared.pipeline.blobs import KeptBlobs
from shared.ports import Repository
from tests import fleetfiles
from tests.pipeline.test_main_job import push
from tests.pipeline.test_safety import Around


def counted(cloud: MemoryCloud, reads: list[str]) -> None:
    """Start the app anew with nothing in memory; ``reads`` gets every blob that GitHub is asked for."""

    def blob(sha: str) -> bytes:
        reads.append(sha)
        return cloud.repository.blob(sha)

    inner: Repository = Around(cloud.repository, blob=blob)
    cloud.with_ports(lambda ports: replace(ports, repository=KeptBlobs(inner, cloud.state)))


def test_a_push_reads_only_the_blobs_that_changed_also_after_a_cold_start() -> None:
    cloud = MemoryCloud()
    names = [f"c{number}" for number in range(12)]
    first: list[str] = []
    counted(cloud, first)
    push(cloud, fleetfiles.fleet(*names))
    cloud.run()
    assert len(first) == len(set(first))
    second: list[str] = []
    counted(cloud, second)
    files = fleetfiles.fleet(*names)
    for name in names[:5]:
        files[f"clusters/{name}/cluster.yaml"] = fleetfiles.cluster(name, count=2)
    push(cloud, files)
    cloud.run()
    large = [sha for sha in second if len(cloud.repository.blob(sha)) > 60_000]
    assert len(set(second) - set(large)) == 5


def test_a_large_file_is_not_kept() -> None:
    cloud = MemoryCloud()
    commit = cloud.repository.commit({"large": b"x" * 60_001, "small": b"x"})
    blobs = KeptBlobs(cloud.repository, cloud.state)
    for entry in blobs.tree(commit):
        assert len(blobs.blob(entry.sha)) == entry.size
    assert [len(content) for content in cloud.state.blobs().values()] == [1]
