"""Who may enter a real API server, as the adapter reports it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from localcloud.common.clock import system_clock
from localcloud.kubernetes.world.kinds import SERVICE_ACCOUNT
from shared.adapters.kubernetes import KubernetesConnections
from shared.cluster.failures.errors import Unauthenticated, Unauthorized
from tests.authority.real_cluster import RealCluster
from tests.support.kubernetes_ports import CLUSTER


@pytest.fixture
def token(cluster: RealCluster) -> Callable[[str], str]:
    """Create a service account without any role, and return its tokens."""

    def of(name: str) -> str:
        cluster.world.create(SERVICE_ACCOUNT, "default", {"metadata": {"name": name}})
        path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return str(cluster.world.call("POST", path, body)["status"]["token"])

    return of


def check(config: str) -> None:
    with closing(KubernetesConnections(lambda _: config, aad_token=None, clock=system_clock)) as connections:
        connections.connect(CLUSTER).check()


def test_an_administrator_passes_the_check(cluster: RealCluster) -> None:
    check(cluster.kubeconfig)


def test_an_unknown_token_is_unauthenticated_and_not_shown(cluster: RealCluster) -> None:
    with pytest.raises(Unauthenticated) as refused:
        check(cluster.kubeconfig_with_token("a-secret-token"))
    assert "a-secret-token" not in str(refused.value)


def test_an_identity_without_roles_is_unauthorized(cluster: RealCluster, token: Callable[[str], str]) -> None:
    with pytest.raises(Unauthorized, match="the identity may not"):
        check(cluster.kubeconfig_with_token(token("nobody")))
