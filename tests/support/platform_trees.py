"""Trees of a platform as tests write them: paths with their texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from shared.language.resolve.repository_layout import Files, blob_id
from shared.platform.source.reach import PulledFiles, pulled
from shared.platform.source.tree import Tree


def files_of(texts: Mapping[str, str], links: Iterable[str] = ()) -> Files:
    """Return the files of a commit; ``links`` are its links and submodules."""
    return Files({path: blob_id(text.encode()) for path, text in texts.items()}, frozenset(links))


def tree_of(texts: Mapping[str, str], links: Iterable[str] = (), ignore: str = "") -> Tree:
    """Return the tree of a commit with all of its contents."""
    contents = {path: text.encode() for path, text in texts.items()}
    return Tree(files_of(texts, links), contents, ignore)


def pulled_of(
    texts: Mapping[str, str], *roots: str, links: Iterable[str] = (), ignore: str = ""
) -> tuple[PulledFiles, int]:
    """Return what folders reach, read in stages as an app reads it, and the number of stages."""
    files = files_of(texts, links)
    contents: dict[str, bytes] = {}
    stages = 0
    while (found := pulled(files, contents, roots, ignore=ignore)).needed:
        new = {path: texts[path].encode() for path in found.needed}
        assert not new.keys() & contents.keys()
        contents |= new
        stages += 1
    return found, stages


def kustomization(**fields: object) -> str:
    """Return a kustomization file; JSON is YAML."""
    version = "v1alpha1" if fields.get("kind") == "Component" else "v1beta1"
    head = {"apiVersion": f"kustomize.config.k8s.io/{version}", "kind": "Kustomization"}
    return json.dumps({**head, **fields})


def namespace(name: str) -> str:
    """Return a manifest of a Namespace."""
    return f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n"


def config_map(name: str, **data: str) -> str:
    """Return a manifest of a ConfigMap in the namespace platform."""
    lines = "".join(f'  {key}: "{value}"\n' for key, value in data.items())
    head = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: platform\n"
    return f"{head}data:\n{lines}" if data else head


def applied(name: str, path: str, *, source: str = "flux-system", more: str = "") -> str:
    """Return a Flux Kustomization in flux-system; ``more`` are further lines of its spec."""
    return f"""\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: {name}
  namespace: flux-system
spec:
  interval: 10m
  sourceRef:
    kind: GitRepository
    name: {source}
  path: {path}
  prune: true
  wait: true
  serviceAccountName: kustomize-controller
{more}"""


def release(name: str, chart: str, more: str = "") -> str:
    """Return a HelmRelease whose chart is in the fleet repository."""
    return f"""\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  name: {name}
  namespace: flux-system
spec:
  interval: 10m
  chart:
    spec:
      chart: {chart}
      sourceRef:
        kind: GitRepository
        name: flux-system
{more}"""
