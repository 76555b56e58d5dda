"""A cluster of the local cloud serves the usual tools: the Python client, and kubectl where it is installed.

Both drive the same scenarios with the kubeconfig that the plane writes.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml
from kubernetes import watch as kubernetes_watch
from kubernetes.client import ApiException, CoreV1Api
from kubernetes.dynamic.exceptions import DynamicApiError

from localcloud.common.certificates import Authority
from localcloud.common.clock import system_clock
from localcloud.common.control_plane import KubernetesNode
from localcloud.common.programs import program
from localcloud.flux.flux_controllers import FluxOfClusters, GitRef, SourceRevision
from localcloud.kubernetes.wire.cluster_access import common_name
from localcloud.kubernetes.wire.kubernetes_servers import LOG_NAME, KubernetesPlane
from shared.resource_ids import ClusterId
from tests.support.kubernetes_drivers import Driver, KubectlDriver, PythonDriver, Refused
from tests.support.waiting import until
from tests.support.workloads import budget, pod

pytestmark = pytest.mark.lives

COMPONENTS = Path(__file__).parents[3] / "examples/fleet/flux/gotk-components.yaml"
TEAM_FILE = b"""
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: hello, namespace: team}
data: {colour: blue}
"""
SYNC = """
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m0s, url: "https://git.example.org/fleet.git", ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec:
  interval: 10m0s
  path: ./clusters/alpha
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
"""
CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "default"},
    "data": {"colour": "blue"},
}


watch: Any = kubernetes_watch  # the client is not typed


@dataclass
class Fixture:
    """A running cluster."""

    plane: KubernetesPlane
    authority: Authority
    cluster: ClusterId
    kubeconfig: Path
    folder: Path


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KubernetesPlane, Authority, Path]]:
    folder, authority = tmp_path_factory.mktemp("plane"), Authority()

    def read(_url: str, ref: GitRef) -> SourceRevision | None:
        source = SourceRevision("1" * 40, lambda: {"clusters/alpha/team.yaml": TEAM_FILE})
        return source if ref.name == "refs/heads/main" else None

    with KubernetesPlane(
        authority,
        accepts_token=lambda token: token == "a-token",
        extension=FluxOfClusters(read, system_clock),
        interval=0.2,
        log_dir=folder,
        kubeconfig_dir=folder,
    ) as plane:
        yield plane, authority, folder


@pytest.fixture
def fixture(running: tuple[KubernetesPlane, Authority, Path]) -> Iterator[Fixture]:
    plane, authority, folder = running
    cluster = ClusterId("00000000-0000-0000-0000-000000000001", "rg-fleet", "alpha")
    labels = {"kubernetes.azure.com/mode": "system"}
    plane.start(cluster, [KubernetesNode("aks-sys-0", "sys", "1.33.4", labels)])
    plane.set_entra(cluster, on=True)
    yield Fixture(plane, authority, cluster, folder / "alpha.yaml", folder)
    plane.stop(cluster)


@pytest.fixture(params=["python", "kubectl"])
def driver(request: pytest.FixtureRequest, fixture: Fixture, tmp_path: Path) -> Iterator[Driver]:
    if request.param == "kubectl":
        yield KubectlDriver(program("kubectl") or "", fixture.kubeconfig, tmp_path)
    else:
        client = PythonDriver(fixture.kubeconfig, tmp_path)
        yield client
        client.close()


def test_namespaces_and_nodes_are_listed(driver: Driver) -> None:
    assert {"default", "kube-system"} <= set(driver.names("v1 Namespace"))
    assert driver.names("v1 Node") == ["aks-sys-0"]
    driver.wait("v1 Node", "aks-sys-0", "Ready")


@pytest.mark.lives
def test_flux_brings_the_cluster_to_what_is_in_git(driver: Driver) -> None:
    driver.server_side(COMPONENTS.read_text(), manager="test")
    for name in ("gitrepositories.source", "kustomizations.kustomize"):
        kind = "apiextensions.k8s.io/v1 CustomResourceDefinition"
        driver.wait(kind, f"{name}.toolkit.fluxcd.io", "Established")
    driver.apply(SYNC)
    sync = ("kustomize.toolkit.fluxcd.io/v1 Kustomization", "flux-system")
    driver.wait(*sync, "Ready", "flux-system")
    assert driver.get("v1 ConfigMap", "hello", "team")["data"] == {"colour": "blue"}
    driver.delete(*sync, "flux-system")
    until(lambda: "team" not in driver.names("v1 Namespace"))


def test_applying_again_changes_nothing(driver: Driver) -> None:
    text = yaml.safe_dump(CONFIG_MAP)

    def version() -> str:
        return str(driver.get("v1 ConfigMap", "settings", "default")["metadata"]["resourceVersion"])

    driver.server_side(text, manager="one")
    first = version()
    driver.server_side(text, manager="one")
    assert version() == first
    driver.apply(text)
    second = version()
    driver.apply(text)
    assert version() == second


def test_a_conflict_of_managers_is_reported(driver: Driver) -> None:
    driver.server_side(yaml.safe_dump(CONFIG_MAP), manager="one")
    with pytest.raises(Refused, match=r'conflict with \\*"one\\*"'):
        driver.server_side(yaml.safe_dump({**CONFIG_MAP, "data": {"colour": "red"}}), manager="two")


def test_what_is_deleted_is_not_found(driver: Driver) -> None:
    driver.apply(yaml.safe_dump(CONFIG_MAP))
    driver.delete("v1 ConfigMap", "settings", "default")
    with pytest.raises(Refused, match="not found"):
        driver.get("v1 ConfigMap", "settings", "default")


def test_a_watch_streams_changes_and_gives_its_thread_back(fixture: Fixture, tmp_path: Path) -> None:
    client = PythonDriver(fixture.kubeconfig, tmp_path)
    seen: list[tuple[str, str]] = []
    list_maps = CoreV1Api(client.client).list_namespaced_config_map

    def follow() -> None:
        for event in watch.Watch().stream(list_maps, "default", _request_timeout=10):
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "DELETED":
                return

    follower = threading.Thread(target=follow)
    follower.start()
    client.apply(yaml.safe_dump(CONFIG_MAP))
    until(lambda: seen == [("ADDED", "settings")])
    client.delete("v1 ConfigMap", "settings", "default")
    follower.join(10)
    assert seen == [("ADDED", "settings"), ("DELETED", "settings")]
    for _ in range(8):  # twice the threads of the server: each must come back when its client hangs up
        answer: Any = list_maps("default", watch=True, _preload_content=False)
        answer.close()
    assert client.names("v1 Namespace")
    client.close()


def _status(fixture: Fixture, *, token: str = "", common: str = "") -> int:
    config = yaml.safe_load(fixture.plane.kubeconfig(fixture.cluster))
    options: dict[str, Any] = {"ca_certs": str(fixture.folder / "ca.pem")}
    fixture.authority.write(fixture.folder / "ca.pem")
    if common:
        certificate, key = fixture.authority.client_pair(common)
        (fixture.folder / "cert.pem").write_bytes(certificate)
        (fixture.folder / "key.pem").write_bytes(key)
        options |= {"cert_file": fixture.folder / "cert.pem", "key_file": fixture.folder / "key.pem"}
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with urllib3.PoolManager(retries=False, **options) as pool:
        url = config["clusters"][0]["cluster"]["server"]
        return pool.request("GET", f"{url}/api/v1/nodes", headers=headers).status


def test_only_the_clusters_own_certificate_or_an_accepted_token_gets_in(fixture: Fixture) -> None:
    assert _status(fixture) == 401
    assert _status(fixture, token="a-token") == 200
    assert _status(fixture, token="another") == 401
    assert _status(fixture, common=common_name(fixture.cluster)) == 200
    other = ClusterId("00000000-0000-0000-0000-000000000001", "rg-fleet", "beta")
    assert _status(fixture, common=common_name(other)) == 401


def test_a_cluster_without_entra_id_accepts_no_token(fixture: Fixture) -> None:
    fixture.plane.set_entra(fixture.cluster, on=False)
    assert _status(fixture, token="a-token") == 401
    assert _status(fixture, common=common_name(fixture.cluster)) == 200


def test_kubeconfigs_are_private_and_requests_are_logged_without_secrets(fixture: Fixture) -> None:
    assert fixture.kubeconfig.stat().st_mode & 0o777 == 0o600
    _status(fixture, token="a-token")
    lines = (fixture.folder / LOG_NAME).read_text()
    entry = json.loads(lines.splitlines()[-1])
    assert (entry["service"], entry["path"], entry["status"]) == ("kubernetes/alpha", "/api/v1/nodes", 200)
    assert "a-token" not in lines


def test_a_stopped_cluster_answers_no_longer(fixture: Fixture, tmp_path: Path) -> None:
    client = PythonDriver(fixture.kubeconfig, tmp_path)
    fixture.plane.stop(fixture.cluster)
    with pytest.raises((urllib3.exceptions.HTTPError, ApiException, DynamicApiError)):
        client.names("v1 Namespace")
    assert not fixture.kubeconfig.exists()
    client.close()


def test_a_stopped_cluster_refuses_connections_at_once(fixture: Fixture) -> None:
    config = yaml.safe_load(fixture.plane.kubeconfig(fixture.cluster))
    server = urllib3.util.parse_url(config["clusters"][0]["cluster"]["server"])
    fixture.plane.stop(fixture.cluster)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((str(server.host), int(server.port or 0)))


def test_a_list_shows_useful_columns(driver: Driver) -> None:
    assert driver.table("v1 Node")[0] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert driver.table("v1 Node")[1][1::3] == ["Ready", "v1.33.4"]
    driver.server_side(COMPONENTS.read_text(), manager="test")
    definition = "kustomizations.kustomize.toolkit.fluxcd.io"
    driver.wait("apiextensions.k8s.io/v1 CustomResourceDefinition", definition, "Established")
    driver.apply(SYNC)
    kind = "kustomize.toolkit.fluxcd.io/v1 Kustomization"
    driver.wait(kind, "flux-system", "Ready", "flux-system")
    header, row = driver.table(kind, "flux-system")
    assert header == ["NAME", "AGE", "READY", "STATUS"]
    assert row[2:] == ["True", f"Applied revision: main@sha1:{'1' * 40}"]
    assert driver.table("apps/v1 Deployment", "flux-system")[1][:2] == ["kustomize-controller", "1/1"]


def test_a_drain_empties_a_node_as_far_as_budgets_allow(driver: Driver) -> None:
    pods = [pod(name, "aks-sys-0", labels={"app": "web"}) for name in "ab"]
    driver.apply(yaml.safe_dump_all([budget(minAvailable=1), *pods]))
    with pytest.raises(Refused, match="disruption budget"):
        driver.drain("aks-sys-0")
    assert len(driver.names("v1 Pod", "default")) == 1
    assert driver.get("v1 Node", "aks-sys-0")["spec"]["unschedulable"] is True
    driver.delete("policy/v1 PodDisruptionBudget", "web", "default")
    driver.drain("aks-sys-0")
    assert driver.names("v1 Pod", "default") == []
