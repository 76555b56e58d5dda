"""From the files of a repository to the objects of a Kustomization.

A ``kustomization.yaml`` that only lists ``resources`` (files and folders) is read here. One with anything
else is built by the real kustomize, which kubectl brings along. Without one, all
YAML files in a folder and below count, as Flux does it. Messages are those of Flux, whose builds have a
folder of their own.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from localcloud.flux.flux_conditions import ObjectNotReady
from localcloud.flux.kustomize.real_kustomize import BUILD_FOLDER, built, kustomize_command

_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_ALLOWED = {"apiVersion", "kind", "metadata", "resources"}
_VARIABLE = re.compile(r"\$\{([_a-zA-Z]\w*)(?::?[=-]([^}]*))?\}")
_SUBSTITUTE = "kustomize.toolkit.fluxcd.io/substitute"
_DECODE = "failed to decode Kubernetes YAML from"


def check_path(files: Mapping[str, bytes], path: str) -> None:
    """Raise NotReady (ArtifactFailed) when there is no such folder."""
    folder = _folder_of(path)
    if folder and not any(name.startswith(f"{folder}/") for name in files):
        problem = f"stat {BUILD_FOLDER}/{folder}: no such file or directory"
        raise ObjectNotReady("ArtifactFailed", f"kustomization path not found: {problem}")


def objects(files: Mapping[str, bytes], path: str) -> list[dict[str, Any]]:
    """Return the objects below a path; raise NotReady (BuildFailed) when it cannot."""
    found = list(_folder(files, _folder_of(path)))
    seen: set[str] = set()
    for value in found:
        name = f"{identified(value)}.{value['metadata'].get('namespace', '[noNs]')}"
        if name in seen:
            text = f"accumulating resources: may not add resource with an already registered id: {name}"
            raise ObjectNotReady("BuildFailed", f"kustomize build failed: {text}")
        seen.add(name)
    return found


class KustomizeBuilds:
    """The last build of each Kustomization, by its uid: the same files and path give the same objects.

    Nobody changes the files of an artifact, or the objects of a build.
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[Mapping[str, bytes], str, list[dict[str, Any]]]] = {}

    def objects(self, uid: str, files: Mapping[str, bytes], path: str) -> list[dict[str, Any]]:
        """Return the objects below a path; raise NotReady (BuildFailed) when it cannot."""
        last = self._last.get(uid)
        if last is None or last[0] is not files or last[1] != path:
            last = self._last[uid] = files, path, objects(files, path)
        return last[2]

    def forget(self, uid: str) -> None:
        """Drop a Kustomization that no longer exists."""
        self._last.pop(uid, None)


def identified(value: Mapping[str, Any]) -> str:
    """Return an object as kustomize names it: "Deployment.v1.apps/web"."""
    group, _, version = str(value["apiVersion"]).rpartition("/")
    return f"{value['kind']}.{version}.{group or '[noGrp]'}/{value['metadata']['name']}"


def _folder_of(path: str) -> str:
    folder = posixpath.normpath(path or ".").lstrip("/")
    return "" if folder == "." else folder


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
    if set(content) - _ALLOWED:
        yield from _objects(listed, built(files, folder, kustomize_command()))
        return
    for entry in content.get("resources") or ():
        name = posixpath.normpath(posixpath.join(folder, str(entry)))
        if name in files:
            yield from _objects(name, files[name])
        elif any(other.startswith(f"{name}/") for other in files):
            yield from _folder(files, name)
        else:
            text = f"open {BUILD_FOLDER}/{name}: no such file or directory"
            accumulated = f"accumulation err='accumulating resources from '{entry}': {text}'"
            raise ObjectNotReady(
                "BuildFailed", f"kustomize build failed: accumulating resources: {accumulated}"
            )


def _objects(name: str, content: bytes) -> Iterator[dict[str, Any]]:
    for document in _documents(name, content):
        if document is None:
            continue
        if not isinstance(document, dict) or not document.get("apiVersion") or not document.get("kind"):
            raise ObjectNotReady(
                "BuildFailed", f"{_DECODE} {BUILD_FOLDER}/{name}: missing Resource metadata <nil>"
            )
        if document["kind"] == "List":
            yield from document.get("items") or ()
        elif not (document.get("metadata") or {}).get("name"):
            kind = f"{{{{{document['apiVersion']} {document['kind']}}}}}"
            text = f"missing metadata.name in object {kind} <nil>"
            raise ObjectNotReady("BuildFailed", f"{_DECODE} {BUILD_FOLDER}/{name}: {text}")
        else:
            yield document


def _documents(name: str, content: bytes) -> list[Any]:
    try:
        return list(yaml.load_all(content, Loader=yaml.CSafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark is not None else ""
        problem = getattr(error, "problem", None) or "not readable"
        text = f"MalformedYAMLError: yaml: {line}{problem} <nil>"
        raise ObjectNotReady("BuildFailed", f"{_DECODE} {BUILD_FOLDER}/{name}: {text}") from error
