"""What kustomize builds for a Flux Kustomization, before its variables are replaced.

Flux writes a kustomization file of its own first, from the one in the folder or from what is in it, and from
the spec (fluxcd/pkg ``kustomize_generator.go``): fields that kustomize does not know are lost in it. The
build itself is a function that the caller gives, because kustomize is a program.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import yaml

from shared.frozen import dataclass
from shared.json_tree import Json, digest_of
from shared.language.resolve.problems import Problem, problem_at
from shared.language.yaml.nodes import Mark, Node
from shared.platform.builds.blame import blamed, blamed_option
from shared.platform.builds.kubernetes_objects import problems_of
from shared.platform.source.documents import UnreadableFile, documents
from shared.platform.source.reach import Reach, reach_of
from shared.platform.source.references import FIELDS, FLEET_SOURCE, SourceName
from shared.platform.source.tree import Tree, joined

Build = Callable[[Mapping[str, bytes], str], bytes]
"""Builds a folder of some files with kustomize, and returns the YAML; raises BuildFailed."""
ORIGIN = "config.kubernetes.io/origin"
_HEAD = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
_HIDING = re.compile(rb"patch|transformers|replacements|vars|validators|buildMetadata", re.IGNORECASE)
"""What sees the annotations of objects: with one of these, an annotation more may change the result."""
MOST_BUILDS = 400
"""How many builds are remembered; a fleet has a few dozen at a time."""

_REPLACED = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_BY_LOWER = {name.lower(): name for name in FIELDS}


class BuildFailed(Exception):
    """Kustomize could not build a folder; the message is its own, with paths of the repository."""


class NoKustomize(Exception):
    """There is no program to build with; the message says what is missing."""


class NoTime(Exception):
    """A plan has no time left to build; what it has not built counts as unbuilt, for the reason given."""


def unlimited() -> None:
    """Let every build begin."""


@dataclass(frozen=True)
class Document:
    """An object as kustomize writes it: YAML, and the file that it comes from, "" where that is unknown.

    ``is_noted``: it has the annotation that names the file, which Flux would not apply.
    """

    text: str
    file: str = ""
    is_noted: bool = False

    def manifest(self, text: str | None = None) -> dict[str, Any]:
        """Return the object, of another text after substitution; raise UnreadableFile for what is none."""
        value = _loaded(self.text if text is None else text)
        if self.is_noted:
            annotations = value["metadata"]["annotations"]
            annotations.pop(ORIGIN, None)
            if not annotations:
                del value["metadata"]["annotations"]
        return value


@dataclass(frozen=True)
class FolderBuild:
    """What was built of a folder; ``unbuilt`` says why nothing was, "" where it was.

    ``problems`` are those of the files that stand in the way, each at its place; one without a file is of a
    field of the Kustomization. ``unfollowed`` is what of
    the folder cannot be read. ``key`` names the build: equal keys have equal results.
    """

    key: str
    documents: tuple[Document, ...] = ()
    unbuilt: str = ""
    problems: tuple[Problem, ...] = ()
    unfollowed: tuple[str, ...] = ()


class Builds:
    """Builds each folder once for the same files and options, whichever clusters and commits share them.

    Plans of several threads may share it with a ``lock``: one builds at a time. What a plan has no time for
    is not remembered, so the next plan goes on where it ended. ``version`` says what builds.
    """

    def __init__(
        self,
        build: Build,
        version: Callable[[], str] = str,
        lock: AbstractContextManager[Any] = nullcontext(),  # noqa: B008 - it has no state
    ) -> None:
        self._build, self.version = build, version
        self._reaches: dict[tuple[int, str, SourceName, tuple[str, ...]], tuple[Tree, Reach]] = {}
        self._known: OrderedDict[str, FolderBuild] = OrderedDict()
        self._lock = lock

    def of(
        self,
        tree: Tree,
        folder: str,
        spec: Json,
        source: SourceName = FLEET_SOURCE,
        check: Callable[[], None] = unlimited,
    ) -> FolderBuild:
        """Return what Flux builds of a folder of a tree that has the contents, for a Kustomization's spec."""
        with self._lock:
            return self._of(tree, folder, spec, source, check)

    def _of(
        self, tree: Tree, folder: str, spec: Json, source: SourceName, check: Callable[[], None]
    ) -> FolderBuild:
        components = tuple(map(str, _list(spec, "components")))
        reach = self._reach(tree, folder, source, components)
        options = {name: spec[name] for name in _OPTIONS if spec.get(name)}
        files = sorted((path, tree.files.blobs[path]) for path in reach.files)
        key = digest_of([folder, files, options, list(reach.outside)])
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        try:
            built = self._built(key, tree, reach, options, check)
        except NoTime as error:
            return FolderBuild(key, (), str(error), (), reach.unfollowed)
        self._known[key] = built
        if len(self._known) > MOST_BUILDS:
            self._known.popitem(last=False)
        return built

    def _reach(self, tree: Tree, folder: str, source: SourceName, components: tuple[str, ...]) -> Reach:
        name = id(tree), folder, source, components
        known = self._reaches.get(name)
        if known is None or known[0] is not tree:
            if len(self._reaches) > MOST_BUILDS:
                self._reaches.clear()
            known = self._reaches[name] = tree, reach_of(tree, folder, source, components)
        return known[1]

    def _built(
        self, key: str, tree: Tree, reach: Reach, options: Json, check: Callable[[], None]
    ) -> FolderBuild:
        unread = sorted(path for path in reach.files if path not in tree.contents)
        if unread:
            return FolderBuild(key, (), f"{unread[0]} was not read", (), reach.unfollowed)
        if reach.problems:
            return FolderBuild(key, (), _first(reach.problems), reach.problems)
        problems = tuple(problems_of(tree, reach))
        if problems:
            return FolderBuild(key, (), _first(problems), problems)
        if reach.outside:
            return FolderBuild(
                key, (), f"{reach.outside[0]}, which is not fetched here", (), reach.unfollowed
            )
        files = {path: tree.contents[path] for path in sorted(reach.files)}
        try:
            path, fields = generated(tree, reach.folder, options)
            found = self._documents(files, reach.folder, path, fields, check)
        except UnreadableFile as error:
            return FolderBuild(key, (), str(error), (), reach.unfollowed)
        except BuildFailed as error:
            message = f"kustomize cannot build this: {error}"
            place = tree.kustomization_in(reach.folder) or next(iter(files), reach.folder)
            problem = blamed(str(error), files, place)
            if problem is None:
                option = blamed_option(str(error), options)
                where = Mark("" if option else place, 1, 1)
                problem = problem_at(where, f"spec.{option}" if option else "", message)
            return FolderBuild(
                key, (), message if not problem.file else _first((problem,)), (problem,), reach.unfollowed
            )
        return FolderBuild(key, found, "", (), reach.unfollowed)

    def _documents(
        self,
        files: Mapping[str, bytes],
        folder: str,
        path: str,
        fields: dict[str, Any],
        check: Callable[[], None],
    ) -> tuple[Document, ...]:
        """Return the objects as Flux builds them, each with its file."""

        def run(kustomization: Json) -> list[str]:
            check()
            return _split(self._build({**files, path: _written(kustomization)}, folder))

        noting = {**fields, "buildMetadata": ["originAnnotations"]}
        whole = b"".join(content for name, content in files.items() if "kustomization" in name.lower())
        if not (_HIDING.search(whole) or _HIDING.search(_written(fields))):
            return tuple(Document(text, _file(text, folder), is_noted=True) for text in run(noting))
        texts = run(fields)
        try:
            noted = run(noting)
        except BuildFailed:
            return tuple(Document(text) for text in texts)
        origins = {_name(text): _file(text, folder) for text in noted}
        return tuple(Document(text, origins.get(_name(text), "")) for text in texts)


def _first(problems: Sequence[Problem]) -> str:
    return f"{problems[0].file}:{problems[0].line} {problems[0].message}"


_OPTIONS = (
    *("targetNamespace", "namePrefix", "nameSuffix", "patches", "components", "ignoreMissingComponents"),
    *("patchesStrategicMerge", "patchesJson6902", "images"),
)
"""The fields of a Flux Kustomization that change what kustomize builds."""


def generated(tree: Tree, folder: str, options: Json) -> tuple[str, dict[str, Any]]:
    """Return the kustomization file that Flux writes for a folder: its path and its fields."""
    path = tree.kustomization_in(folder)
    prefix = f"{folder}/" if folder else ""
    if path:
        found = documents(tree.contents[path])
        fields = {name: _typed(name, value) for name, value in known_fields(found).items()}
        if not fields.get("resources"):
            # So that kustomize does not refuse it as empty; its objects get the annotations in Flux too.
            fields["buildMetadata"] = ["originAnnotations"]
    else:
        path, fields = f"{prefix}kustomization.yaml", _of_folder(tree, folder)
    for option, field in (
        ("targetNamespace", "namespace"),
        ("namePrefix", "namePrefix"),
        ("nameSuffix", "nameSuffix"),
    ):
        if option in options:
            fields[field] = options[option]
    for name in ("patches", "patchesStrategicMerge"):
        fields[name] = [*_list(fields, name), *_list(options, name)]
    fields["patchesJson6902"] = [
        *_list(fields, "patchesJson6902"),
        *({**patch, "patch": json.dumps(patch.get("patch"))} for patch in _list(options, "patchesJson6902")),
    ]
    fields["components"] = [*_list(fields, "components"), *_components(tree, folder, options)]
    changed = {image.get("name"): image for image in _list(options, "images")}
    kept = [image for image in _list(fields, "images") if image.get("name") not in changed]
    fields["images"] = [*kept, *changed.values()]
    return path, {**_HEAD, **{name: value for name, value in fields.items() if value not in ([], None)}}


_TEXTS = (
    *("openapi", "namePrefix", "nameSuffix", "namespace", "commonLabels", "commonAnnotations", "images"),
    *("imageTags", "resources", "components", "bases", "crds", "configurations", "generators"),
    *("transformers", "validators", "patchesStrategicMerge", "pairs", "literals", "files", "envs", "env"),
)
"""The fields that have texts alone: Flux turns a number there into one, which kustomize itself refuses."""


def _typed(name: str, value: Any) -> Any:
    if name in _TEXTS:
        return _as_texts(value)
    if isinstance(value, dict):
        return {key: _typed(key, inner) for key, inner in value.items()} if name != "valuesInline" else value
    return [_typed("", inner) for inner in value] if isinstance(value, list) else value


def _as_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_texts(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_texts(inner) for inner in value]
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).removesuffix(".0") if isinstance(value, int | float) else value


def known_fields(found: Sequence[Node]) -> dict[str, Any]:
    """Return the fields of a kustomization file that kustomize knows, by their right names."""
    value = found[0].plain() if found else {}
    items = value.items() if isinstance(value, dict) else ()
    return {_BY_LOWER[name.lower()]: inner for name, inner in items if name.lower() in _BY_LOWER}


def _list(fields: Json, name: str) -> Sequence[Any]:
    found = fields.get(name)
    return found if isinstance(found, list) else []


def _of_folder(tree: Tree, folder: str) -> dict[str, Any]:
    prefix = f"{folder}/" if folder else ""
    listed = [f"./{entry[len(prefix) :]}" for entry in tree.entries(folder)]
    return {"resources": listed} if listed else {"namespace": "_placeholder"}


def _components(tree: Tree, folder: str, options: Json) -> Iterator[str]:
    for component in _list(options, "components"):
        target = joined(folder, str(component))
        if not options.get("ignoreMissingComponents") or (target is not None and tree.is_folder(target)):
            yield component


def _written(fields: Json) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()  # JSON is YAML


def _split(content: bytes) -> list[str]:
    text = content.decode(errors="replace")
    return [part for part in text.split("\n---\n") if part.strip()]


def _file(text: str, folder: str) -> str:
    """Return the file that an object comes from, as its annotation says; "" without one."""
    lines = iter(text.splitlines())
    if not any(line == f"    {ORIGIN}: |" for line in lines):
        return ""
    for line in lines:
        name, _, path = line.strip().partition(": ")
        if not line.startswith("      "):
            break
        if name in ("path", "configuredIn"):
            return posixpath.normpath(posixpath.join(folder, _unquoted(path)))
    return ""


def _unquoted(text: str) -> str:
    try:
        return str(yaml.load(text, Loader=yaml.CSafeLoader)) if text[:1] in "'\"" else text
    except yaml.YAMLError:
        return text


def _name(text: str) -> tuple[str, ...]:
    """Return what names an object: its API, kind, namespace and name, as lines of its YAML."""
    lines = text.splitlines()
    top = [line for line in lines if line.startswith(("apiVersion: ", "kind: "))]
    start = lines.index("metadata:") + 1 if "metadata:" in lines else len(lines)
    for line in lines[start:]:
        if not line.startswith("  "):
            break
        if line.startswith(("  name: ", "  namespace: ")):
            top.append(line)
    return tuple(top)


class _Loader(yaml.CSafeLoader):
    """Reads YAML 1.1 as Flux does (goyaml.v2): without dates and numbers to the base of sixty."""


_Loader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] not in _REPLACED]
    for first, pairs in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|[1-9][0-9_]*|0)\Z"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z"
    ),
    list("-+0123456789."),
)


def _integer(_: yaml.CSafeLoader, node: yaml.ScalarNode) -> int | float | str:
    """Return an integer; of more than 64 bits, goyaml.v2 makes a float of a decimal, and text of others."""
    text = str(node.value).replace("_", "")
    sign, digits = (-1 if text[0] == "-" else 1), text.lstrip("-+")
    octal = digits.startswith("0") and digits[1:2].isdigit()
    value = sign * int(f"0o{digits}" if octal else digits, 0)
    if value.bit_length() <= _BITS:
        return value
    return float(text) if digits.isdecimal() and not octal else text


_BITS = 64
_Loader.add_constructor("tag:yaml.org,2002:int", _integer)


def _loaded(text: str) -> dict[str, Any]:
    try:
        value = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UnreadableFile(f"is not valid YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(value, dict) or not isinstance(value.get("metadata"), dict):
        raise UnreadableFile("is no object with metadata")
    return value
