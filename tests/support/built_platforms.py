"""What Flux applies on a cluster, from manifests that a test writes: each Kustomization owns one file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from textwrap import dedent
from types import FrameType
from typing import Any

import yaml

from shared.platform.inventory import BuiltObject, Inventory, ObjectId, Owner
from shared.platform.rules import ClusterPlatform, Finding, findings_of, placed
from tests.support.flux_definitions import real_definitions

KUSTOMIZE = "kustomize.toolkit.fluxcd.io"
MAIN = ObjectId(KUSTOMIZE, "Kustomization", "flux-system", "flux-system")
SOURCE = ObjectId("source.toolkit.fluxcd.io", "GitRepository", "flux-system", "flux-system")
FACTS = ObjectId("", "ConfigMap", "flux-system", "cluster-facts")


class Platform:
    """A platform and its files; ``kustomize`` adds a Kustomization, ``add`` an object of the first one."""

    def __init__(self, *documents: str, spec: dict[str, Any] | None = None, **options: Any) -> None:
        """Begin with the first Kustomization, whose file is ``platform/all.yaml``."""
        self.files: dict[str, str] = {}
        self._specs: dict[ObjectId, tuple[Mapping[str, Any], str]] = {
            MAIN: (_spec("platform") | (spec or {}), "")
        }
        self._objects: dict[ObjectId, dict[ObjectId, BuiltObject]] = {MAIN: {}}
        self._extra: dict[str, Mapping[str, Any]] = {}
        self._options: dict[str, Any] = {
            "kubernetes": "1.34",
            "provided": (SOURCE, FACTS),
            "definitions": real_definitions(),
        }
        self._options |= options
        for document in documents:
            self.add(document)

    def add(self, text: str, *, owner: ObjectId = MAIN, file: str = "platform/all.yaml") -> Platform:
        """Add documents to the file of a Kustomization."""
        before = f"{self.files[file]}---\n" if file in self.files else ""
        self.files[file] = before + dedent(text).lstrip("\n")
        for manifest in yaml.safe_load_all(dedent(text)):
            built = BuiltObject(manifest, file)
            self._objects[owner][built.id] = built
        return self

    def kustomize(
        self,
        name: str,
        *documents: str,
        spec: Mapping[str, Any] | None = None,
        namespace: str = "flux-system",
        **extra: Any,
    ) -> Platform:
        """Add a Kustomization that the first one applies; what one of another source owns is not known."""
        owner = ObjectId(KUSTOMIZE, "Kustomization", namespace, name)
        path = f"platform/layers/{name}"
        whole = {**_spec(path), **(spec or {})}
        manifest = {
            "apiVersion": f"{KUSTOMIZE}/v1",
            "kind": "Kustomization",
            "metadata": {"name": name, "namespace": namespace},
            "spec": whole,
        }
        file = f"platform/{name}.yaml"
        self.add(yaml.safe_dump(manifest, sort_keys=False), file=file)
        if whole["sourceRef"] == {"kind": "GitRepository", "name": "flux-system"}:
            self._specs[owner], self._objects[owner] = (whole, file), {}
        self._extra[name] = extra
        for document in documents:
            self.add(document, owner=owner, file=f"{path}/all.yaml")
        return self

    @property
    def platform(self) -> ClusterPlatform:
        """What the rules look at."""
        owners = {
            owner: Owner(owner, spec, file, self._objects[owner], **self._extra.get(owner.name, {}))
            for owner, (spec, file) in self._specs.items()
        }
        return ClusterPlatform(Inventory(owners), **self._options)

    def read(self, file: str) -> bytes | None:
        """Return the content of a file."""
        return self.files[file].encode() if file in self.files else None

    @property
    def problems(self) -> list[str]:
        """What is refused."""
        return self._said(notes=False)

    @property
    def notes(self) -> list[str]:
        """What is said besides."""
        return self._said(notes=True)

    def _said(self, *, notes: bool) -> list[str]:
        found = [finding for finding in findings_of(self.platform, self.read) if finding.is_note == notes]
        return [str(problem) for problem in sorted({placed(finding, self.read) for finding in found})]


def calls_of(
    rule: Callable[[ClusterPlatform], Iterable[Finding]], platform: Platform
) -> tuple[list[Finding], int]:
    """Return what a rule finds, and how many functions of Python it calls for that."""
    whole, counted = platform.platform, 0

    def count_call(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal counted
        counted += event == "call"

    sys.setprofile(count_call)
    try:
        found = list(rule(whole))
    finally:
        sys.setprofile(None)
    return found, counted


def _spec(path: str) -> dict[str, Any]:
    return {
        "interval": "10m",
        "sourceRef": {"kind": "GitRepository", "name": "flux-system"},
        "path": f"./{path}",
        "prune": True,
        "wait": True,
    }


def deployment(name: str = "web", *, image: str = "registry.k8s.io/pause:3.10", **spec: Any) -> str:
    """Return a Deployment of the namespace platform that nothing is wrong with."""
    labels = {"app": name}
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "platform"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": image}]},
            },
            **spec,
        },
    }
    return yaml.safe_dump(manifest, sort_keys=False)


NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: platform}\n"


def release(name: str, chart: str, **spec: Any) -> str:
    """Return a HelmRelease of a chart of the repository in ``CHARTS``."""
    reference = {"kind": "HelmRepository", "name": "charts", "namespace": "flux-system"}
    manifest = {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": name, "namespace": "flux-system"},
        "spec": {"interval": "1h", "chart": {"spec": {"chart": chart, "sourceRef": reference}}, **spec},
    }
    return yaml.safe_dump(manifest, sort_keys=False)


CHARTS = """
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: flux-system}
spec: {interval: 1h, url: https://charts.example.com}
"""


def waiting(*names: str) -> dict[str, Any]:
    """Return the part of a spec that waits for others."""
    return {"dependsOn": [{"name": name} for name in names]}


CERTIFICATES = """\
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: letsencrypt}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: serving, namespace: platform}
spec: {secretName: tls, issuerRef: {kind: ClusterIssuer, name: letsencrypt}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: platform}
---
apiVersion: secrets-store.csi.x-k8s.io/v1
kind: SecretProviderClass
metadata: {name: vault, namespace: platform}
---
apiVersion: external-secrets.io/v1
kind: ClusterSecretStore
metadata: {name: vault}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-latest}
"""
"""Objects of other controllers, which some need by name."""
