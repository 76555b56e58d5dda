"""What a file of the platform refers to: a kustomization file, a manifest of Flux, a patch.

The fields of a kustomization file are those of kustomize ``api/types/kustomization.go``, also the deprecated
ones. Their names count without case, as ``encoding/json`` reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from functools import lru_cache

from shared.frozen import dataclass
from shared.language.yaml.nodes import Items, Mark, Node
from shared.platform.source.documents import UnreadableFile, documents, field_of, manifests

FLUX_GROUP = "toolkit.fluxcd.io/"
KUSTOMIZE_GROUP, HELM_GROUP = f"kustomize.{FLUX_GROUP}", f"helm.{FLUX_GROUP}"
_REPLICATING = ("ResourceSet", "ArtifactGenerator")
"""Kinds that make further objects of Flux from what only the cluster knows."""


class ReferenceTarget(Enum):
    """What a reference leads to."""

    RESOURCE = auto()
    """A manifest, or a folder with a kustomization file."""
    COMPONENT = auto()
    """A folder with a kustomization file."""
    DATA = auto()
    """A file that kustomize reads, and that refers to nothing."""
    PATCH = auto()
    """A file with a patch."""
    PLUGIN = auto()
    """The configuration of a generator, a transformer or a validator: a manifest, or a folder."""
    TREE = auto()
    """A folder with all that is in it, such as a chart."""
    FLUX = auto()
    """A folder that Flux applies."""
    UNKNOWN = auto()
    """What only the cluster knows; the text says what it is."""


@dataclass(frozen=True)
class Reference:
    """An entry that leads to another file; ``place`` has its line and column, and no file."""

    to: ReferenceTarget
    text: str
    field: str
    place: Mark
    from_root: bool = False
    """Whether the path begins at the root of the tree, and not at the folder of the file."""
    may_lack: bool = False
    """Whether nothing is wrong where there is no such file."""


@dataclass(frozen=True)
class SourceName:
    """The source whose tree is read, as an object of Flux names it; without a name it is any one."""

    kind: str = "GitRepository"
    name: str = "flux-system"
    namespace: str = "flux-system"

    def is_named(self, ref: Node | None, namespace: str) -> bool:
        """Return whether a ``sourceRef`` of an object in a namespace, "" for an unknown one, may name it."""
        if not self.name:
            return True
        where = field_of(ref, "namespace") or namespace
        named = (field_of(ref, "kind"), field_of(ref, "name"))
        return named == (self.kind, self.name) and where in ("", self.namespace)


FLEET_SOURCE = SourceName()
ANY_SOURCE = SourceName(name="")
"""Where a tree has several names, as that of a team has: a file too many only moves a pin needlessly."""

FIELDS = (
    *("apiVersion", "kind", "metadata", "openapi", "namePrefix", "nameSuffix", "namespace", "commonLabels"),
    *("labels", "commonAnnotations", "patchesStrategicMerge", "patchesJson6902", "patches", "images"),
    *("imageTags", "replacements", "replicas", "vars", "sortOptions", "resources", "components", "crds"),
    *("bases", "configMapGenerator", "secretGenerator", "helmGlobals", "helmCharts"),
    *("helmChartInflationGenerator", "generatorOptions", "configurations", "generators", "transformers"),
    *("validators", "buildMetadata"),
)
"""The fields of a kustomization file (kustomize ``api/types/kustomization.go``)."""
_LISTS = {
    "resources": ReferenceTarget.RESOURCE,
    "bases": ReferenceTarget.RESOURCE,
    "components": ReferenceTarget.COMPONENT,
    "crds": ReferenceTarget.DATA,
    "configurations": ReferenceTarget.DATA,
    "generators": ReferenceTarget.PLUGIN,
    "transformers": ReferenceTarget.PLUGIN,
    "validators": ReferenceTarget.PLUGIN,
    "patchesstrategicmerge": ReferenceTarget.PATCH,
}
_WITH_INLINE = ("generators", "transformers", "validators", "patchesstrategicmerge")
_PATCHES = ("patches", "patchesjson6902")
_GENERATORS = ("configmapgenerator", "secretgenerator")
_CHARTS = "charts"


@lru_cache(maxsize=4096)
def of_kustomization(content: bytes) -> tuple[Reference, ...]:
    """Return the references of a kustomization file; raise UnreadableFile where it cannot be read."""
    found = documents(content)
    if not found:
        return ()
    root = found[0]
    if len(found) > 1:
        raise UnreadableFile("has a second document; a kustomization file has one", found[1].mark.line)
    if not isinstance(root.value, dict):
        raise UnreadableFile("is no kustomization file: it must be an object", root.mark.line)
    return tuple(_of_fields(root))


def _of_fields(root: Node) -> Iterator[Reference]:
    for name, node in root.value.items():
        key = name.lower()
        if key in _LISTS:
            yield from _of_list(_LISTS[key], name, node, inline=key in _WITH_INLINE)
        elif key in _PATCHES:
            yield from _of_patches(name, node)
        elif key in _GENERATORS:
            yield from _of_generators(name, node)
        elif key == "replacements":
            yield from _of_replacements(name, node)
        elif key == "openapi":
            yield from _file(ReferenceTarget.DATA, node.child("path"), f"{name}.path")
        elif key == "helmcharts":
            yield from _of_charts(name, node, field_of(root.child("helmGlobals"), "chartHome") or _CHARTS)
        elif key == "helmchartinflationgenerator":
            yield from _of_old_charts(name, node)


def _of_list(to: ReferenceTarget, name: str, node: Node, *, inline: bool) -> Iterator[Reference]:
    for number, item in enumerate(_items(node)):
        if inline and isinstance(item.value, str) and _is_inline(item.value):
            yield from _inline(to, item, f"{name}[{number}]")
        else:
            yield from _file(to, item, f"{name}[{number}]")


def _of_patches(name: str, node: Node) -> Iterator[Reference]:
    for number, item in enumerate(_items(node)):
        yield from _file(ReferenceTarget.PATCH, item.child("path"), f"{name}[{number}].path")
        patch = item.child("patch")
        if patch is not None and isinstance(patch.value, str):
            yield from _inline(ReferenceTarget.PATCH, patch, f"{name}[{number}].patch")


def _of_generators(name: str, node: Node) -> Iterator[Reference]:
    for number, item in enumerate(_items(node)):
        where = f"{name}[{number}]"
        for place, entry in enumerate(_items(item.child("files"))):
            if isinstance(entry.value, str):
                path = entry.value.partition("=")[2] if "=" in entry.value else entry.value
                yield Reference(ReferenceTarget.DATA, path, f"{where}.files[{place}]", entry.mark)
        for place, entry in enumerate(_items(item.child("envs"))):
            yield from _file(ReferenceTarget.DATA, entry, f"{where}.envs[{place}]")
        yield from _file(ReferenceTarget.DATA, item.child("env"), f"{where}.env")


def _of_replacements(name: str, node: Node) -> Iterator[Reference]:
    for number, item in enumerate(_items(node)):
        yield from _file(ReferenceTarget.DATA, item.child("path"), f"{name}[{number}].path")
        yield from _changed_paths(item, f"{name}[{number}]")


def _changed_paths(replacement: Node, field: str) -> Iterator[Reference]:
    """Yield what a replacement may change: the path of a Flux Kustomization is then known after the build."""
    for target in _items(replacement.child("targets")):
        for path in _items(target.child("fieldPaths")):
            if str(path.value).startswith("spec.path"):
                text = "a replacement of spec.path, which is known after the build alone"
                yield Reference(ReferenceTarget.UNKNOWN, text, field, path.mark)


def _of_charts(name: str, node: Node, home: str) -> Iterator[Reference]:
    for number, item in enumerate(_items(node)):
        where = f"{name}[{number}]"
        yield from _file(ReferenceTarget.DATA, item.child("valuesFile"), f"{where}.valuesFile")
        for place, entry in enumerate(_items(item.child("additionalValuesFiles"))):
            yield from _file(ReferenceTarget.DATA, entry, f"{where}.additionalValuesFiles[{place}]")
        chart = field_of(item, "name")
        if chart:
            yield Reference(
                ReferenceTarget.TREE, f"{home}/{chart}", f"{where}.name", item.mark, may_lack=True
            )


def _of_old_charts(name: str, node: Node) -> Iterator[Reference]:
    for number, item in enumerate(_items(node)):
        yield from _file(ReferenceTarget.DATA, item.child("values"), f"{name}[{number}].values")
        home, chart = field_of(item, "chartHome") or _CHARTS, field_of(item, "chartName")
        if chart:
            yield Reference(
                ReferenceTarget.TREE,
                f"{home}/{chart}",
                f"{name}[{number}].chartName",
                item.mark,
                may_lack=True,
            )


def _file(to: ReferenceTarget, node: Node | None, field: str) -> Iterator[Reference]:
    if node is not None and isinstance(node.value, str):
        yield Reference(to, node.value, field, node.mark)


def _is_inline(text: str) -> bool:
    return "\n" in text.strip() or text.lstrip().startswith("{")


def _inline(to: ReferenceTarget, node: Node, field: str) -> Iterator[Reference]:
    """Yield the references of what is written into a kustomization file."""
    content = str(node.value).encode()
    try:
        found = of_patch(content) if to is ReferenceTarget.PATCH else of_plugin(content)
    except UnreadableFile:
        return  # kustomize says what is wrong with it
    for reference in found:
        yield Reference(
            reference.to,
            reference.text,
            field,
            node.mark,
            from_root=reference.from_root,
            may_lack=reference.may_lack,
        )


@lru_cache(maxsize=4096)
def of_patch(content: bytes) -> tuple[Reference, ...]:
    """Return the folders that a patch may give a Flux Kustomization or a HelmRelease."""
    if b"path" not in content and b"chart" not in content:
        return ()
    found: list[Reference] = []
    for document in documents(content):
        if isinstance(document.value, Items):
            found += _of_operations(document)
        elif KUSTOMIZE_GROUP in field_of(document, "apiVersion"):
            found += _flux_path(_child(document, "spec", "path"), may_lack=True)
        elif HELM_GROUP in field_of(document, "apiVersion"):
            found += _chart(document)
    return tuple(found)


def _of_operations(patch: Node) -> Iterator[Reference]:
    for operation in _items(patch):
        if field_of(operation, "path") == "/spec/path":
            yield from _flux_path(operation.child("value"), may_lack=True)
        elif field_of(operation, "path") == "/spec/chart/spec/chart":
            yield from _local_chart(operation.child("value"))


_FILES_OF_PLUGINS = {
    **dict.fromkeys(("path", "paths"), ReferenceTarget.PATCH),
    **dict.fromkeys(("files", "envs", "env", "valuesfile", "additionalvaluesfiles"), ReferenceTarget.DATA),
    **dict.fromkeys(("charthome", "confighome"), ReferenceTarget.TREE),
}
"""The fields in which plugins of kustomize name files (``api/internal/builtins``), in lower case."""


@lru_cache(maxsize=4096)
def of_plugin(content: bytes) -> tuple[Reference, ...]:
    """Return what may be a file in the configuration of a generator, a transformer or a validator."""
    found: list[Reference] = []
    for document in documents(content):
        found += _of_plugin(document)
    return tuple(found)


def _of_plugin(node: Node) -> Iterator[Reference]:
    if isinstance(node.value, Items):
        for item in node.value:
            yield from _of_plugin(item)
    elif isinstance(node.value, dict):
        for name, inner in node.value.items():
            to = _FILES_OF_PLUGINS.get(name.lower())
            for entry in (inner, *_items(inner)) if to else ():
                if isinstance(entry.value, str):
                    text = entry.value.partition("=")[2] or entry.value
                    yield Reference(to or ReferenceTarget.DATA, text, name, entry.mark, may_lack=True)
            if name == "patch" and isinstance(inner.value, str):
                yield from _inline(ReferenceTarget.PATCH, inner, name)
            yield from _of_plugin(inner)


@lru_cache(maxsize=4096)
def of_manifest(content: bytes, source: SourceName = FLEET_SOURCE) -> tuple[Reference, ...]:
    """Return what the objects of Flux in a file have Flux apply from the same source."""
    if FLUX_GROUP.encode() not in content and b"ResourceSet" not in content:
        return ()
    found: list[Reference] = []
    for document in documents(content):
        for manifest in manifests(document):
            found += _of_object(manifest, source)
    return tuple(found)


def _of_object(manifest: Node, source: SourceName) -> Iterable[Reference]:
    api, kind = field_of(manifest, "apiVersion"), field_of(manifest, "kind")
    namespace, spec = field_of(manifest, "metadata", "namespace"), manifest.child("spec")
    if kind in _REPLICATING:
        yield Reference(
            ReferenceTarget.UNKNOWN, f"{kind} {field_of(manifest, 'metadata', 'name')}", "", manifest.mark
        )
    if spec is None:
        return
    if api.startswith(KUSTOMIZE_GROUP) and kind == "Kustomization":
        if source.is_named(spec.child("sourceRef"), namespace):
            yield from _of_flux_kustomization(spec)
    elif api.startswith(HELM_GROUP) and kind == "HelmRelease":
        if source.is_named(_child(spec, "chart", "spec", "sourceRef"), namespace):
            yield from _chart(manifest)
    elif kind == "HelmChart" and source.is_named(spec.child("sourceRef"), namespace):
        yield from _local_chart(spec.child("chart"))
        yield from _values_files(spec)


def _of_flux_kustomization(spec: Node) -> Iterator[Reference]:
    path = spec.child("path")
    yield from _flux_path(path if path is not None else Node("./", spec.mark))
    folder = str(path.value) if path is not None else ""
    for number, component in enumerate(_items(spec.child("components"))):
        if isinstance(component.value, str):
            whole = f"{folder}/{component.value}"
            lacks = _child(spec, "ignoreMissingComponents")
            yield Reference(
                ReferenceTarget.COMPONENT,
                whole,
                f"spec.components[{number}]",
                component.mark,
                from_root=True,
                may_lack=lacks is not None and lacks.value is True,
            )
    for number, item in enumerate(_items(spec.child("patches"))):
        patch = item.child("patch")
        if patch is not None and isinstance(patch.value, str):
            yield from _inline(ReferenceTarget.PATCH, patch, f"spec.patches[{number}].patch")


def _flux_path(node: Node | None, *, may_lack: bool = False) -> Iterator[Reference]:
    if node is not None and isinstance(node.value, str):
        yield Reference(
            ReferenceTarget.FLUX, node.value, "spec.path", node.mark, from_root=True, may_lack=may_lack
        )


def _chart(manifest: Node) -> Iterator[Reference]:
    spec = _child(manifest, "spec", "chart", "spec")
    if spec is not None:
        yield from _local_chart(spec.child("chart"))
        yield from _values_files(spec)


def _local_chart(node: Node | None) -> Iterator[Reference]:
    if node is not None and isinstance(node.value, str):
        yield Reference(
            ReferenceTarget.TREE,
            node.value,
            "spec.chart.spec.chart",
            node.mark,
            from_root=True,
            may_lack=True,
        )


def _values_files(spec: Node) -> Iterator[Reference]:
    for number, item in enumerate(_items(spec.child("valuesFiles"))):
        if isinstance(item.value, str):
            field = f"spec.chart.spec.valuesFiles[{number}]"
            yield Reference(ReferenceTarget.DATA, item.value, field, item.mark, from_root=True, may_lack=True)


def _child(node: Node, *path: str) -> Node | None:
    found: Node | None = node
    for step in path:
        found = found.child(step) if found is not None and isinstance(found.value, dict) else None
    return found


def _items(node: Node | None) -> Sequence[Node]:
    return node.value if node is not None and isinstance(node.value, Items) else ()
