"""A components file of the built Flux controllers, in the shape of ``flux install --export``.

Definitions, deployments, services and roles are those of the controllers' own modules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.authority.programs import FLUX, KUSTOMIZE, Program

NAMESPACE = "flux-system"
REGISTRY = "ghcr.io/fluxcd"
_ROLE = "crd-controller-flux-system"
_RECONCILER = "cluster-reconciler-flux-system"


def components(
    *, release: str = "current", tags: Mapping[str, str] | None = None, more: Sequence[Mapping[str, Any]] = ()
) -> bytes:
    """Return the file: ``release`` labels every object, ``tags`` replace image tags, ``more`` is appended."""
    documents = [*_documents(tags or {}), *more]
    return yaml.dump_all([_labelled(item, release) for item in documents], Dumper=_Dumper).encode()


class _Dumper(yaml.SafeDumper):
    """Writes a repeated value again: a components file has no aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - of any value
        return True


def retired_controller(name: str) -> list[dict[str, Any]]:
    """Return a controller as an older release has it: its account, its service and its deployment."""
    labels = {"app": name}
    pod = {
        "serviceAccountName": name,
        "containers": [{"name": "manager", "image": f"{REGISTRY}/{name}:v0.1.0"}],
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    deployment = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return [
        _object("v1", "ServiceAccount", name),
        _object("v1", "Service", name, spec={"selector": labels, "ports": [{"name": "http", "port": 80}]}),
        _object("apps/v1", "Deployment", name, spec=deployment),
    ]


def _documents(tags: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    yield from _roles()
    for program in FLUX:
        for file in sorted((program.config / "crd" / "bases").glob("*.yaml")):
            yield from _read(file)
        yield _object("v1", "ServiceAccount", program.name)
        for file in sorted((program.config / "manager").glob("*.yaml")):
            for item in _read(file):
                if item["kind"] != "Kustomization":
                    yield _placed(program, item, tags.get(program.name, program.version))


def _placed(program: Program, item: dict[str, Any], tag: str) -> dict[str, Any]:
    item["metadata"]["namespace"] = NAMESPACE
    if item["kind"] == "Deployment":
        pod = item["spec"]["template"]["spec"]
        pod["serviceAccountName"] = program.name
        pod["containers"][0]["image"] = f"{REGISTRY}/{program.name}:{tag}"
    return item


def _roles() -> Iterator[dict[str, Any]]:
    """Yield the one role of all controllers, and the administrator's for the kustomize-controller."""
    rules: list[Any] = []
    for program in FLUX:
        for name in ("role.yaml", "leader_election_role.yaml"):
            for item in _read(program.config / "rbac" / name):
                rules += item["rules"]
    group = "rbac.authorization.k8s.io"
    yield {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": _ROLE}, "rules": rules}
    for name, role, programs in (
        (_ROLE, _ROLE, FLUX),
        (_RECONCILER, "cluster-admin", (KUSTOMIZE,)),
    ):
        yield {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            "subjects": [
                {"kind": "ServiceAccount", "name": program.name, "namespace": NAMESPACE}
                for program in programs
            ],
        }


def _object(api_version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def _labelled(item: Mapping[str, Any], release: str) -> dict[str, Any]:
    labels = {
        **(item["metadata"].get("labels") or {}),
        "app.kubernetes.io/instance": NAMESPACE,
        "app.kubernetes.io/part-of": "flux",
        "app.kubernetes.io/version": release,
    }
    return {**item, "metadata": {**item["metadata"], "labels": labels}}


def _read(file: Path) -> list[dict[str, Any]]:
    return [item for item in yaml.safe_load_all(file.read_text()) if item]
