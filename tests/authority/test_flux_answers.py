"""The real Flux controllers report of the objects of ``tests/support/flux_scenarios.py`` what is recorded."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from localcloud.common.control_plane import KubernetesNode
from localcloud.github.wire.github_server import GitHubServer
from localcloud.kubernetes.world.kinds import BUILT_IN, ResourceKind, kinds_of
from localcloud.kubernetes.world.object_store import At, WriteMode
from tests.authority.flux_components import NAMESPACE, components
from tests.authority.node_agent import NodeAgent
from tests.authority.pod_programs import PodPrograms
from tests.authority.real_cluster import RealCluster
from tests.authority.real_world import RealWorld, Refused
from tests.support import flux_scenarios
from tests.support.flux_scenarios import FILES, KUSTOMIZATIONS, SOURCES
from tests.support.recorded_answers import recorded

pytestmark = pytest.mark.timeout(600)
_WRITE = WriteMode(manager="test", force=True)
_KINDS = {"g": "GitRepository", "k": "Kustomization"}
_PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class Flux:
    """A real cluster with the real Flux, and the repository that it reads."""

    world: RealWorld
    url: str
    kinds: Mapping[str, ResourceKind]

    def apply(self, body: Mapping[str, Any]) -> None:
        metadata, kind = body["metadata"], self.kinds[body["kind"]]
        at = At(kind, metadata["name"], metadata.get("namespace", "") if kind.namespaced else "")
        eventually(lambda: self._applied(at, body))

    def _applied(self, at: At, body: Mapping[str, Any]) -> bool:
        try:
            self.world.apply(at, body, _WRITE)
        except Refused as error:
            if error.status not in (403, 404):  # its definition or its namespace is not served yet
                raise
            return False
        return True

    def source(self, name: str, spec: Mapping[str, Any]) -> None:
        whole = {"interval": "1m", "url": self.url, "ref": {"branch": "main"}, **spec}
        whole["url"] = whole["url"].replace("https://git.example.org/nothing", f"{self.url}-nothing")
        self._object("g", name, whole)

    def kustomization(self, name: str, spec: Mapping[str, Any]) -> None:
        ref = {"kind": "GitRepository", "name": "good"}
        whole = {"interval": "10m", "path": f"./{name}", "prune": True, "sourceRef": ref, **spec}
        self._object("k", name, whole)

    def request(self, name: str) -> None:
        kind, _, plain = name.partition(" ")
        annotations = {"reconcile.fluxcd.io/requestedAt": "r1"}
        self._object(kind, plain, None, manager="requests", annotations=annotations)

    def _object(
        self, sort: str, name: str, spec: Mapping[str, Any] | None, *, manager: str = "test", **metadata: Any
    ) -> None:
        kind = self.kinds[_KINDS[sort]]
        body: dict[str, Any] = {"apiVersion": kind.api_version, "kind": kind.kind}
        body["metadata"] = {"name": name, "namespace": NAMESPACE, **metadata}
        body |= {} if spec is None else {"spec": spec}
        self.world.apply(At(kind, name, NAMESPACE), body, WriteMode(manager=manager, force=True))

    def reported(self, names: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for name in names:
            kind, _, plain = name.partition(" ")
            found[name] = flux_scenarios.shown(self.world.get(At(self.kinds[_KINDS[kind]], plain, NAMESPACE)))
        return found


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.5)


@pytest.fixture
def flux(tmp_path: Path) -> Iterator[Flux]:
    with (
        GitHubServer(tmp_path / "host", token="local", webhook_secret="s") as server,
        RealCluster(tmp_path / "cluster") as cluster,
    ):
        server.create_repository("acme/fleet")
        url = server.clone_url("acme/fleet")
        commit(tmp_path / "copy", url)
        pods = PodPrograms(cluster, tmp_path / "pods", ca=tmp_path / "cluster/ca.crt")
        agent = NodeAgent(cluster.world, program=pods)
        agent.set_nodes([KubernetesNode("node-1", "system", cluster.version)])
        documents = list(yaml.safe_load_all(components()))
        served = [
            kind
            for item in documents
            if item["kind"] == "CustomResourceDefinition"
            for kind in reversed(kinds_of(item))
        ]
        kinds = {kind.kind: kind for kind in (*served, *BUILT_IN)}
        made = Flux(cluster.world, url, kinds)
        for item in documents:
            made.apply(item)
        yield made
        agent.close()
        pods.close()


def commit(folder: Path, url: str) -> None:
    """Push the files to the branch main."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    people = [f"GIT_{role}_{field}" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")]
    environment = {**os.environ, **dict.fromkeys(people, "test@example.org")}
    for command in ("init -q -b main", "add -A", "commit -qm files", f"push -q {url} main"):
        subprocess.run(["git", *command.split()], cwd=folder, env=environment, check=True)


def test_the_real_controllers_report_what_is_recorded(flux: Flux) -> None:
    real = recorded(flux_scenarios.RECORDED)
    data = {"username": "x", "password": "wrong"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bad", "namespace": NAMESPACE}}
    flux.apply({**secret, "stringData": data})
    for name, spec in SOURCES.items():
        flux.source(name, spec)
    others = dict(KUSTOMIZATIONS)
    unhealthy = others.pop("unhealthy")
    for name, spec in others.items():
        flux.kustomization(name, spec)
    eventually(lambda: flux.reported(real["first"]) == real["first"])
    assert flux.reported(real["first"]) == real["first"]
    flux.kustomization("unhealthy", unhealthy)  # in the namespace that there is now
    flux.source("good", {"ref": {"branch": "gone"}})
    flux.kustomization("good", {"path": "./nowhere"})
    for name in ("g branch", "k broken", "k paused", "g suspended"):
        flux.request(name)
    eventually(lambda: flux.reported(real["second"]) == real["second"])
    assert flux.reported(real["second"]) == real["second"]
