"""Whether the files of a folder are what Flux takes them for: objects of Kubernetes.

One file that is none stops all of a folder (fluxcd/flux2#5313, #5232), because kustomize reads each as an
object with a kind and a name (kyaml ``GetValidatedMetadata``), and kustomize-controller wants its API too.
"""

from __future__ import annotations

from collections.abc import Iterator

from shared.language.resolve.problems import Problem, nearest, problem_at
from shared.language.yaml.nodes import Mark, Node
from shared.platform.source.documents import (
    IS_POINTER,
    LFS_POINTER,
    UnreadableFile,
    documents,
    field_of,
    manifests,
)
from shared.platform.source.reach import Reach
from shared.platform.source.references import FIELDS, KUSTOMIZE_GROUP
from shared.platform.source.tree import KUSTOMIZATION_FILES, Tree, misspelt

_KUSTOMIZE = "kustomize.config.k8s.io/"
_FIELDS = {name.lower() for name in FIELDS}
_NAMES = {name.lower() for name in KUSTOMIZATION_FILES}
_RENDERS_CHARTS = ("helmCharts", "helmChartInflationGenerator")
"""What needs plugins, which Flux disables (fluxcd/pkg ``kustomize_generator.go``, ``Build``)."""


def problems_of(tree: Tree, reach: Reach) -> Iterator[Problem]:
    """Yield the problems of the manifests that a folder reaches, each at its place."""
    for path in _ignored_names(tree, reach):
        yield problem_at(Mark(path, 1, 1), "", misspelt(path))
    for path in sorted(reach.files - reach.manifests):
        if tree.contents[path].startswith(LFS_POINTER):
            yield problem_at(Mark(path, 1, 1), "", IS_POINTER)
        elif path.rpartition("/")[2] in KUSTOMIZATION_FILES:
            yield from _unknown_fields(path, tree.contents[path])
    for path in sorted(reach.manifests):
        try:
            found = documents(tree.contents[path])
        except UnreadableFile as error:
            yield problem_at(Mark(path, error.line, error.column), "", error.message)
            continue
        for document in found:
            for manifest in manifests(document):
                if manifest.value is None:
                    continue  # kustomize leaves it out
                message = _wrong(tree, path, manifest)
                if message:
                    mark = manifest.mark
                    yield problem_at(Mark(path, mark.line, mark.column), "", message)


def _ignored_names(tree: Tree, reach: Reach) -> Iterator[str]:
    """Yield the kustomization files that kustomize does not see, so that all manifests next to them count."""
    if tree.kustomization_in(reach.folder):
        return
    prefix = f"{reach.folder}/" if reach.folder else ""
    for path in tree.below(reach.folder):
        if path.removeprefix(prefix).lower() in _NAMES and path not in reach.manifests:
            yield path


def _unknown_fields(path: str, content: bytes) -> Iterator[Problem]:
    """Yield the fields that kustomize does not know; Flux drops those of the folder that it applies."""
    try:
        found = documents(content)
    except UnreadableFile:
        return  # the reach has this problem
    fields = found[0].value if found and isinstance(found[0].value, dict) else {}
    if found and field_of(found[0], "apiVersion").startswith(KUSTOMIZE_GROUP):
        message = "is an object of Flux, and no kustomization file; give it another name, and list it in one"
        yield problem_at(Mark(path, 1, 1), "", message)
        return
    for name, node in fields.items():
        if name.lower() not in _FIELDS:
            near = nearest(name, FIELDS)
            hint = f"did you mean {near}?" if near else "remove it"
            message = f"there is no such field of a kustomization file; {hint}"
        elif name in _RENDERS_CHARTS:
            message = "Flux renders no charts of a kustomization file; write a HelmRelease"
        else:
            continue
        yield problem_at(Mark(path, node.mark.line, node.mark.column), name, message)


def _wrong(tree: Tree, path: str, manifest: Node) -> str:
    """Return what is wrong with a document that is to be an object, "" where it is one."""
    api, kind = field_of(manifest, "apiVersion"), field_of(manifest, "kind")
    name = field_of(manifest, "metadata", "name")
    if kind in ("Kustomization", "Component") and (api.startswith(_KUSTOMIZE) or not api):
        folder, _, name = path.rpartition("/")
        if name in KUSTOMIZATION_FILES:
            return f"is a file of kustomize and no object; list its folder {folder} instead"
        if name.lower() in _NAMES:
            return misspelt(path)
        return f"is a file of kustomize and no object; list its folder, and call it {KUSTOMIZATION_FILES[0]}"
    written = manifest.find(("metadata", "name")).value
    if isinstance(written, int | float):
        return f"metadata.name {written} is a number, and no name; write it in quotes"
    if kind and api and (name or kind.endswith("List")):
        return ""
    lacking = [
        field for field, value in (("apiVersion", api), ("kind", kind), ("metadata.name", name)) if not value
    ]
    return f"no Kubernetes object: it lacks {_and(lacking)}; {_way_out(tree, path, is_object=bool(kind))}"


def _way_out(tree: Tree, path: str, *, is_object: bool) -> str:
    if is_object:
        return "add it"
    if tree.kustomization_in(path.rpartition("/")[0]):
        return "take it out of resources"
    return "move it to another folder, or add a kustomization.yaml that lists the manifests without it"


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
