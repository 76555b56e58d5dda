"""A cluster in memory with the small Flux, and the objects that Flux reads."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from localcloud.common.clock import ManualClock
from localcloud.flux.flux_controllers import FluxControllers, GitRef, SourceRevision
from localcloud.kubernetes.world.kinds import BUILT_IN
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, WriteMode

COMPONENTS = Path(__file__).parents[2] / "examples/fleet/flux/gotk-components.yaml"
SOURCE = ("source.toolkit.fluxcd.io/v1", "GitRepository")
KUSTOMIZATION = ("kustomize.toolkit.fluxcd.io/v1", "Kustomization")
URL = "https://git.example.org/fleet.git"
WRITE = WriteMode(manager="test", force=True)
KINDS = {kind.kind: kind for kind in BUILT_IN}


@dataclass
class FluxCluster:
    """A cluster in memory with Flux, and the repository that Flux reads."""

    files: dict[str, bytes] = field(default_factory=dict)
    revision: str = "1" * 40
    password: str | None = None

    def __post_init__(self) -> None:
        self.clock = ManualClock()
        self.world = KubernetesWorld(self.clock)
        self.flux = FluxControllers(self.world, self._read, self.clock)

    def _read(self, url: str, ref: GitRef) -> SourceRevision | None:
        if url != URL:
            return None
        wanted = self.password
        accepts = None if wanted is None else lambda _user, password: bool(password == wanted)
        return SourceRevision(
            self.revision if ref.name == "refs/heads/main" else "", lambda: self.files, accepts
        )

    def commit(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        self.revision = f"{int(self.revision[0]) + 1}" * 40

    def at(self, api_version: str, kind: str, name: str, namespace: str = "flux-system") -> At:
        found = self.world.kind(api_version, kind)
        assert found is not None
        return At(found, name, namespace if found.namespaced else "")

    def apply(self, manifest: Mapping[str, Any]) -> None:
        metadata = manifest["metadata"]
        namespace = metadata.get("namespace", "")
        at = self.at(manifest["apiVersion"], manifest["kind"], metadata["name"], namespace)
        self.world.apply(at, manifest, WRITE)

    def install(self) -> None:
        for manifest in yaml.safe_load_all(COMPONENTS.read_text()):
            self.apply(manifest)
        self.let_time_pass()

    def sync(self, name: str = "flux-system", **spec: Any) -> None:
        ref = {"kind": "GitRepository", "name": "flux-system"}
        whole = {"interval": "10m", "path": "./clusters/alpha", "prune": True, "sourceRef": ref, **spec}
        self.apply(flux_object(KUSTOMIZATION, name, whole))

    def source(self, **spec: Any) -> None:
        whole = {"interval": "1m", "url": URL, "ref": {"branch": "main"}, **spec}
        self.apply(flux_object(SOURCE, "flux-system", whole))

    def let_time_pass(self, seconds: int = 4) -> None:
        """Let time go by, at least as long as Kubernetes needs to establish a definition."""
        for _ in range(4):
            self.clock.advance(seconds / 4)
            self.flux.reconcile()

    def ready(self, kind: tuple[str, str] = KUSTOMIZATION, name: str = "flux-system") -> tuple[str, str, str]:
        value = self.world.get(self.at(*kind, name))
        status = value.get("status") or {}
        found = [item for item in status.get("conditions") or () if item["type"] == "Ready"]
        assert not found or found[0]["observedGeneration"] == value["metadata"]["generation"]
        succeeded = status.get("observedGeneration") == value["metadata"]["generation"]
        assert not found or succeeded == (found[0]["status"] == "True")
        return (found[0]["status"], found[0]["reason"], found[0]["message"]) if found else ("", "", "")

    def maps(self, namespace: str = "team") -> list[str]:
        return [item["metadata"]["name"] for item in self.world.list(KINDS["ConfigMap"], namespace)[0]]


def flux_object(kind: tuple[str, str], name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "flux-system"}
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": spec}


def git_secret(name: str, password: str) -> dict[str, Any]:
    data = {"username": "git", "password": password}
    coded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "flux-system"}} | {
        "data": coded
    }
