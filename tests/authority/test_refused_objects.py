"""What the rules of a platform refuse, the real API server refuses, and it takes everything else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from localcloud.common.clock import system_clock
from shared.adapters.kubernetes import KubernetesConnections
from shared.cluster.failures.errors import InvalidManifest
from shared.ports import KubernetesApi
from tests.authority.real_cluster import RealCluster
from tests.platform.judged_objects import OBJECTS, PODS, TAKEN, ingress, workload_with
from tests.support.kubernetes_ports import CLUSTER

CASES = [
    *OBJECTS,
    *((workload_with(pod, container), problem) for pod, container, problem in PODS),
    *((given, "") for given, _ in TAKEN if given.get("spec", {}).get("clusterIP", "None") == "None"),
    (ingress("/api(/|$)(.*)", "Prefix"), ""),
]


@pytest.fixture(scope="module")
def api(cluster: RealCluster) -> Iterator[KubernetesApi]:
    config = cluster.kubeconfig
    with closing(KubernetesConnections(lambda _: config, aad_token=None, clock=system_clock)) as connections:
        found = connections.connect(CLUSTER)
        found.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "platform"}})
        yield found


@pytest.mark.parametrize(("given", "problem"), CASES)
def test_the_api_server_refuses_what_the_rules_refuse(
    api: KubernetesApi, given: dict[str, Any], problem: str
) -> None:
    if not problem:
        api.apply(given, dry_run=True)
        return
    with pytest.raises(InvalidManifest):
        api.apply(given, dry_run=True)
