"""From the files of a repository to the objects of a Kustomization; pure.

A ``kustomization.yaml`` may list ``resources`` (files and folders) and nothing else; without one, all
YAML files in a folder and below count, as Flux does it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from localcloud.flux.flux_conditions import NotReady

_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_ALLOWED = {"apiVersion", "kind", "metadata", "resources"}
_VARIABLE = re.compile(r"\$\{([_a-zA-Z]\w*)(?::?[=-]([^}]*))?\}")
_SUBSTITUTE = "kustomize.toolkit.fluxcd.io/substitute"


def build(files: Mapping[str, bytes], path: str) -> list[dict[str, Any]]:
    """Return the objects below a path; raise NotReady (ArtifactFailed, BuildFailed) when it cannot."""
    folder = posixpath.normpath(path or ".").lstrip("/")
    folder = "" if folder == "." else folder
    if folder and not any(name.startswith(f"{folder}/") for name in files):
        message = f"kustomization path not found: stat {path}: no such file or directory"
        raise NotReady("ArtifactFailed", message)
    return list(_folder(files, folder))


def substituted(value: Any, variables: Mapping[str, str]) -> Any:
    """Return the object with ``${name}`` and ``${name:=default}`` replaced in its strings.

    An object may refuse by label or annotation (``kustomize.toolkit.fluxcd.io/substitute: disabled``).
    """
    metadata = value.get("metadata") or {}
    for marks in (metadata.get("labels") or {}, metadata.get("annotations") or {}):
        if marks.get(_SUBSTITUTE) == "disabled":
            return value
    return _replaced(value, variables)


def _replaced(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: variables.get(found[1], found[2] or ""), value)
    if isinstance(value, Mapping):
        return {key: _replaced(inner, variables) for key, inner in value.items()}
    if isinstance(value, list):
        return [_replaced(inner, variables) for inner in value]
    return value


def _folder(files: Mapping[str, bytes], folder: str) -> Iterator[dict[str, Any]]:
    prefix = f"{folder}/" if folder else ""
    listed = next((prefix + name for name in _NAMES if prefix + name in files), None)
    if listed is not None:
        yield from _listed(files, folder, listed)
        return
    below = sorted(name for name in files if name.startswith(prefix))
    seen: set[str] = set()
    for name in below:
        head, _, rest = name[len(prefix) :].partition("/")
        if not rest:
            if name.endswith((".yaml", ".yml")):
                yield from _objects(name, files[name])
        elif head not in seen:
            seen.add(head)
            yield from _folder(files, prefix + head)


def _listed(files: Mapping[str, bytes], folder: str, listed: str) -> Iterator[dict[str, Any]]:
    documents = _documents(listed, files[listed])
    content = documents[0] if documents and isinstance(documents[0], dict) else {}
    unknown = sorted(set(content) - _ALLOWED)
    if unknown:
        raise NotReady("BuildFailed", f"{listed}: this Flux knows only resources, not {', '.join(unknown)}")
    for entry in content.get("resources") or ():
        name = posixpath.normpath(posixpath.join(folder, str(entry)))
        if name in files:
            yield from _objects(name, files[name])
        elif any(other.startswith(f"{name}/") for other in files):
            yield from _folder(files, name)
        else:
            message = f"{listed}: accumulating resources: {entry}: no such file or directory"
            raise NotReady("BuildFailed", message)


def _objects(name: str, content: bytes) -> Iterator[dict[str, Any]]:
    for document in _documents(name, content):
        if document is None:
            continue
        if not isinstance(document, dict) or not document.get("apiVersion") or not document.get("kind"):
            raise NotReady(
                "BuildFailed", f"failed to decode Kubernetes YAML from {name}: no apiVersion or kind"
            )
        if document["kind"] == "List":
            yield from document.get("items") or ()
        elif not (document.get("metadata") or {}).get("name"):
            raise NotReady("BuildFailed", f"failed to decode Kubernetes YAML from {name}: no metadata.name")
        else:
            yield document


def _documents(name: str, content: bytes) -> list[Any]:
    try:
        return list(yaml.load_all(content, Loader=yaml.CSafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "not readable"
        raise NotReady(
            "BuildFailed", f"failed to decode Kubernetes YAML from {name}:{where} {problem}"
        ) from error
