"""Where the fault is that kustomize reports: it names objects and paths, and neither files nor lines.

The texts are those of kustomize: ``api/resmap/reswrangler.go`` (ids), ``api/internal/target/kusttarget.go``
(kinds of folders), and of evanphx/json-patch (paths). A text of none of these forms has no place here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping

from shared.json_tree import Json
from shared.language.resolve.problems import Problem, problem_at
from shared.language.yaml.nodes import Items, Mark, Node
from shared.platform.source.documents import UnreadableFile, documents, field_of, manifests

Texts = Mapping[str, bytes]
_ID = r"([A-Za-z0-9]+)\.[^/\s]*/([^\s;]+)\.(\[noNs\]|[^.\s;]+)"
_YAML = (".yaml", ".yml", "Kustomization")


def blamed(message: str, files: Texts, kustomization: str) -> Problem | None:
    """Return the problem of a message of kustomize at its place, None where nobody knows the place.

    ``files`` are all that the folder is built from, and ``kustomization`` is its own kustomization file.
    """
    for pattern, find in _FORMS.items():
        found = pattern.search(message)
        problem = find(found, files, kustomization) if found else None
        if problem is not None:
            return problem
    return None


def blamed_option(message: str, options: Json) -> str:
    """Return the field of a Flux Kustomization that a message of kustomize is about, "" for none."""
    found = _POINTERS.findall(message)
    wanted = {text for texts in found for text in texts if text}
    return next(
        (
            name
            for name, value in options.items()
            if name in wanted or any(text in json.dumps(value) for text in wanted)
        ),
        "",
    )


_POINTERS = re.compile(r"""'(/[^']+)'|: "?(/[^\s:"]+)|testing value (/\S+)|Image\.(images)\.""")


def _twice(found: re.Match[str], files: Texts, _: str) -> Problem | None:
    kind, name, namespace = found.groups()
    places = [*_objects(kind, name, namespace, files)]
    if not places:
        return None
    what = f"{kind} {name}" if namespace == "[noNs]" else f"{kind} {namespace}/{name}"
    (file, node), first = places[-1], places[0]
    if len(places) > 1:
        message = f"{what} is here twice, first in {first[0]}:{first[1].mark.line}; remove one of them"
    else:
        message = f"{what} is taken twice, because two entries lead to this file; remove one of these"
    return problem_at(Mark(file, *_at(node, "metadata", "name")), "metadata.name", message)


def _no_target(found: re.Match[str], files: Texts, _: str) -> Problem | None:
    kind, name, namespace = found.groups()
    objects = [*_objects(kind, name, None, files)]
    patches = [(file, node) for file, node in objects if _namespace(node) == namespace]
    others = {_namespace(node) for _, node in objects} - {namespace}
    file, node = patches[0] if patches else ("", None)
    if node is None:
        return None
    near = f"; it is in the namespace {min(others)}, so write that" if len(others) == 1 else ""
    near = near.replace("the namespace [noNs], so write that", "no namespace, so write none")
    message = f"this patch is for {kind} {name}, and nothing built here has its kind, name and namespace"
    hint = near or "; correct them, or take the patch out"
    return problem_at(Mark(file, *_at(node, "metadata", "name")), "", f"{message}{hint}")


def _no_path(found: re.Match[str], files: Texts, _: str) -> Problem | None:
    for file, content in files.items():
        for number, line in enumerate(content.decode(errors="replace").splitlines(), start=1):
            column = line.find(found[1])
            if column >= 0 and file.endswith(_YAML) and not line[column + len(found[1]) :][:1].isalnum():
                message = f"{found[1]} of what this patch is for is not there, or another; correct the patch"
                return problem_at(Mark(file, number, column + 1), "", message)
    return None


def _component(found: re.Match[str], files: Texts, kustomization: str) -> Problem | None:
    return _entry(found[1], "resources", "components", files, kustomization)


def _no_component(found: re.Match[str], files: Texts, kustomization: str) -> Problem | None:
    return _entry(found[1], "components", "resources", files, kustomization)


def _entry(folder: str, wrong: str, right: str, files: Texts, kustomization: str) -> Problem | None:
    """Return the problem of a folder that is an entry of the wrong list of some kustomization file."""
    name = folder.rpartition("/")[2]
    what = "a Component" if right == "components" else "no Component"
    message = f"{folder} is {what}; list it in {right}, and not in {wrong}"
    own = f"{folder}/kustomization.yaml"
    for file, content in {kustomization: files.get(kustomization, b""), **files}.items():
        for node in _documents(content) if "kustomization" in file.lower() else ():
            listed = node.child(wrong)
            entries = listed.value if listed is not None and isinstance(listed.value, Items) else ()
            for number, entry in enumerate(entries):
                if str(entry.value).rstrip("/").rpartition("/")[2] == name:
                    mark = Mark(file, entry.mark.line, entry.mark.column)
                    return problem_at(mark, f"{wrong}[{number}]", message)
    if own not in files:
        return None
    message = f"{folder} is {what}, and a folder without a kustomization file lists each folder in {wrong}"
    return problem_at(Mark(own, 1, 1), "kind", f"{message}; add a kustomization.yaml that has it in {right}")


def _unread(found: re.Match[str], files: Texts, kustomization: str) -> Problem | None:
    """Return the problem of an entry that kustomize cannot read, where it has a variable."""
    entry = found[1]
    for file in (kustomization, *files) if "${" in entry else ():
        for number, line in enumerate(files.get(file, b"").decode(errors="replace").splitlines(), start=1):
            if entry in line:
                message = (
                    f"{entry} is taken letter for letter, because Flux replaces no variables in this file"
                )
                mark = Mark(file, number, line.index(entry) + 1)
                return problem_at(mark, "", f"{message}; write the path itself, or have spec.path differ")
    return None


def _no_base(found: re.Match[str], files: Texts, kustomization: str) -> Problem | None:
    """Return the problem of a generator, or a number of replicas, that is for nothing."""
    kind, name = found[1], found[2]
    field = {"ConfigMap": "configMapGenerator", "Secret": "secretGenerator"}.get(kind, "replicas")
    is_generator = field != "replicas"
    what = (
        f"{kind} {name} that this generator could merge with, or replace"
        if is_generator
        else f"workload {name}"
    )
    for file, content in {kustomization: files.get(kustomization, b""), **files}.items():
        for node in _documents(content) if "kustomization" in file.lower() else ():
            listed = node.child(field)
            entries = listed.value if listed is not None and isinstance(listed.value, Items) else ()
            for number, entry in enumerate(entries):
                if field_of(entry, "name") == name:
                    message = f"nothing built here is a {what}; correct the name"
                    mark = Mark(file, entry.mark.line, entry.mark.column)
                    return problem_at(mark, f"{field}[{number}]", message)
    return None


def _several(_: re.Match[str], _files: Texts, kustomization: str) -> Problem | None:
    message = "is one of several kustomization files of its folder, of which kustomize takes none; keep one"
    return problem_at(Mark(kustomization, 1, 1), "", message)


_Find = Callable[[re.Match[str], Texts, str], Problem | None]
_FORMS: Mapping[re.Pattern[str], _Find] = {
    re.compile(rf"already registered id: {_ID}"): _twice,
    re.compile(rf"no matches for Id {_ID}"): _no_target,
    re.compile(r'doc is missing (?:path|key): "?(/[^\s:"]+)'): _no_path,
    re.compile(r"testing value (/\S+) failed"): _no_path,
    re.compile(r"error in (?:remove|replace|move|copy) for path: '(/[^']+)'"): _no_path,
    re.compile(r"expected kind != 'Component' for path '([^']+)'"): _component,
    re.compile(r"expected kind 'Component' for path '([^']+)'"): _no_component,
    re.compile(r"accumulating (?:resources|components)[^']* from '([^']+)'"): _unread,
    re.compile(r'Kind:"(\w+)".*?Name:"([^"]+)".*? does not exist; cannot merge or replace'): _no_base,
    re.compile(r"resource with (name) ([^\s]+) does not match a config"): _no_base,
    re.compile(r"Found multiple kustomization files"): _several,
}


def _objects(kind: str, name: str, namespace: str | None, files: Texts) -> Iterator[tuple[str, Node]]:
    """Yield the objects in files with these names; one that has no namespace may get any."""
    for file, content in files.items():
        for node in _documents(content) if file.endswith(_YAML) else ():
            for manifest in manifests(node):
                is_named = (
                    field_of(manifest, "kind") == kind and field_of(manifest, "metadata", "name") == name
                )
                if is_named and (namespace is None or _namespace(manifest) in (namespace, "[noNs]")):
                    yield file, manifest


def _namespace(manifest: Node) -> str:
    return field_of(manifest, "metadata", "namespace") or "[noNs]"


def _documents(content: bytes) -> tuple[Node, ...]:
    try:
        return documents(content)
    except UnreadableFile:
        return ()


def _at(node: Node, *path: str) -> tuple[int, int]:
    mark = node.find(path).mark
    return mark.line, mark.column
