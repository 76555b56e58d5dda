"""A fleet whose people may ask for clusters."""

from __future__ import annotations

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.access import Principal, Role
from shared.app.api.acts.request_limits import ClusterRequest
from shared.app.api.acts.requests import request_cluster
from shared.app.http_result import HttpResult
from tests.support.one_cluster import files
from tests.support.pipeline_runs import push

RULE = "{roles: [Operator], classes: [small], environments: [development], locations: [eastus], atOnce: 1}"
SOMEBODY = Principal("7", "dana@example.com", frozenset({Role.OPERATOR}))
ASKED = ClusterRequest("test-aks", "small", "8h", "", "eastus", "a load test")


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


def ask(cloud: MemoryCloud, asked: ClusterRequest = ASKED, principal: Principal = SOMEBODY) -> HttpResult:
    """Ask for a cluster as somebody, and return the answer."""
    return request_cluster(asked, principal, cloud.ports)
