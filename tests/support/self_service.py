"""A fleet whose people may ask for clusters."""

from __future__ import annotations

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.one_cluster import files
from tests.support.pipeline_runs import push


def fleet(*rules: str) -> MemoryCloud:
    """Return a cloud of a fleet with these rules."""
    cloud = MemoryCloud(throttle=False)
    wanted = files()
    more = "".join(f"    - {rule}\n" for rule in rules)
    wanted["fleet.yaml"] = wanted["fleet.yaml"].replace(
        b"spec:\n", f"spec:\n  selfService:\n{more}".encode() if rules else b"spec:\n", 1
    )
    push(cloud, wanted)
    cloud.run()
    return cloud
