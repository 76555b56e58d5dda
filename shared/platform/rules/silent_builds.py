"""What a build does without a word: patches for nothing, variables without value, scripts that lose theirs.

kustomize applies a patch to what its target selects, also where that is nothing, and stays silent (its issues
4379 and 5093, devantler-tech/platform#2996; ``api/resmap/reswrangler.go`` Select, whose texts are regular
expressions for a whole value). So it does with images (its issue 2798). Flux hands ``spec.patches`` and
``spec.images`` to it. These are notes: what a patch is for may be there on other clusters.

Flux replaces ``${name}`` in everything that it builds where a Kustomization has variables (fluxcd/pkg
``kustomize/kustomize_varsub.go``). A name without a value becomes empty, or, with a kustomize-controller that
is strict, stops the whole Kustomization: fluxcd/kustomize-controller#253, #290; rwlove/home-ops#11150.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shared.frozen import replace
from shared.kubernetes.inside import PREFIX
from shared.language.resolve.problems import Path, nearest
from shared.language.yaml.nodes import Node
from shared.platform.changes.objects import is_definition, is_marked, is_open, items, mapping, objects_in
from shared.platform.inventory import ObjectId, Owner
from shared.platform.rules.finding import (
    ClusterPlatform,
    Files,
    Finding,
    full_name,
    is_kind,
    named,
    texts_in,
)
from shared.platform.source.documents import UnreadableFile, documents
from shared.platform.source.places import best_document, places_in_text
from shared.platform.source.references import Reference, ReferenceTarget, of_kustomization
from shared.platform.source.tree import KUSTOMIZATION_FILES, joined

_MOST_FILES = 500
_RENAMES = ("namePrefix", "nameSuffix")
_HASH = re.compile(r"-[a-z0-9]{10}$")
_SIMPLE = re.compile(r"(?:[\w/|^$-]|\\\.|\.[*+]?){1,500}")
_MOST_REPEATS = 2
"""Only such patterns are looked at: others can take Python forever, where Go's do not."""
_Place = tuple[str, ObjectId | None, Path, Mapping[str, Any]]


def silent_targets(platform: ClusterPlatform, files: Files) -> Iterator[Finding]:
    """Yield the patches and images of kustomizations that are for nothing which these build."""
    for owner in platform.inventory.owners.values():
        if owner.unbuilt or not owner.objects:
            continue
        places = [*kustomization_files(owner, files), (owner.file, owner.id, ("spec",), owner.spec)]
        renames = any(given.get(field) for *_, given in places for field in _RENAMES)
        if any("$patch" in text for *_, given in places for text in texts_in(given.get("patches"))):
            continue  # one of them may have removed what another one is for
        for file, of, path, given in places:
            for field in ("patches", "patchesJson6902"):
                for number, patch in objects_in(given.get(field)):
                    target = mapping(patch.get("target"))
                    if target and not _selects(target, owner, renames=renames):
                        parts = ("group", "version", "kind", "name")
                        what = " ".join(str(target[part]) for part in parts if target.get(part))
                        where = (*path, field, number, "target")
                        yield _note(file, of, where, f"this patch is for {what}, which is not built here")
            for number, image in objects_in(given.get("images")):
                names = [str(image[part]) for part in ("newName", "name") if image.get(part)]
                if names and not any(map(is_open, names)) and not _is_used(names, owner):
                    where = (*path, "images", number, "name")
                    yield _note(file, of, where, f"no container built here has the image {named(names[-1:])}")


def _note(file: str, of: ObjectId | None, path: Path, message: str) -> Finding:
    hint = "so kustomize changes nothing, silently; correct the name, or remove the entry"
    return Finding(file, of, path, f"{message}, {hint}", is_note=True)


def kustomization_files(owner: Owner, files: Files) -> Iterator[_Place]:
    """Yield the kustomization files that a Kustomization is built from, as far as they are in the tree."""
    for path, document, _ in _read(owner, files):
        yield path, None, (), mapping(document.plain())


def named_files(owner: Owner, files: Files) -> Iterator[str]:
    """Yield the kustomization files that a Kustomization is built from, and the files that they name."""
    for path, _, references in _read(owner, files):
        yield path
        named_there = (joined(path.rpartition("/")[0], reference.text) for reference in references)
        yield from filter(None, named_there)


def _read(owner: Owner, files: Files) -> Iterator[tuple[str, Node, Sequence[Reference]]]:
    """Yield the kustomization files that a Kustomization is built from, each with its references."""
    waiting, seen = [owner.path], set[str]()
    while waiting and len(seen) < _MOST_FILES:
        folder = waiting.pop()
        paths = (f"{folder}/{name}".lstrip("/") for name in KUSTOMIZATION_FILES)
        found = next(((path, content) for path in paths if (content := files(path)) is not None), None)
        if found is None or folder in seen:
            continue
        seen.add(folder)
        try:
            (document,) = documents(found[1])
            references = tuple(of_kustomization(found[1]))
        except (UnreadableFile, ValueError):
            continue
        yield found[0], document, references
        below = (
            joined(folder, ref.text)
            for ref in references
            if ref.to in (ReferenceTarget.RESOURCE, ReferenceTarget.COMPONENT)
        )
        waiting += [path for path in below if path is not None]


def _selects(target: Mapping[str, Any], owner: Owner, *, renames: bool) -> bool:
    """Return whether an object may be what a target selects; its labels are not looked at."""
    if any(map(is_open, target.values())):
        return True
    return any(
        _fits(target.get("group"), name.group)
        and _fits(target.get("version"), str(built.manifest.get("apiVersion")).rpartition("/")[2])
        and _fits(target.get("kind"), name.kind)
        and (
            renames or any(_fits(target.get("name"), text) for text in {name.name, _HASH.sub("", name.name)})
        )
        for name, built in owner.objects.items()
    )


def _fits(pattern: Any, text: str) -> bool:
    """Return whether a text fits a pattern, or may do so."""
    given = str(pattern or "")
    if not _SIMPLE.fullmatch(given) or sum(map(given.count, "*+")) > _MOST_REPEATS:
        return True
    return re.fullmatch(given, text) is not None


def _is_used(names: list[str], owner: Owner) -> bool:
    """Return whether an object has an image of one of these names, wherever it has a field of that name."""
    begin = tuple(f"{name}{end}" for name in names for end in (":", "@"))
    images = (image for built in owner.objects.values() for image in _images(built.manifest))
    return any(image in names or image.startswith(begin) for image in images)


def _images(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        image = value.get("image")
        if isinstance(image, str):
            yield image
    if isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _images(inner)


# Variables

_DEFAULTED = re.compile(rb"\$\{([A-Za-z_][A-Za-z0-9_]*)(:?[-=+])")
_SCRIPT = "#!"
_DISABLE = "the annotation kustomize.toolkit.fluxcd.io/substitute: disabled leaves the whole object as it is"


def missing_variables(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield each variable without a value, in each file that uses it."""
    for owner in platform.inventory.owners.values():
        for name, files in owner.missing.items():
            for file in files:
                yield Finding(file, None, (), _missing(name, owner), text=f"${{{name}")


def _missing(name: str, owner: Owner) -> str:
    near = nearest(name, sorted(owner.variables)) if owner.variables else ""
    meant = f"did you mean {near}? Otherwise " if near else ""
    return (
        f"${{{name}}} has no value in Kustomization {full_name(owner.id)}, so Flux makes it empty, or "
        f"applies nothing of it; {meant}give it a value, or a default as ${{{name}:=value}}; in a script, "
        f"write $${{{name}}}, and {_DISABLE}"
    )


def defaults_in_scripts(platform: ClusterPlatform, files: Files) -> Iterator[Finding]:
    """Yield a note for each script whose own ``${name:-default}`` Flux replaces by the default."""
    for owned in platform.of_kind("", "ConfigMap"):
        scripts = [
            value
            for value in mapping(owned.manifest.get("data")).values()
            if isinstance(value, str) and value.lstrip().startswith(_SCRIPT)
        ]
        variables, file = owned.owner.variables, owned.built.file
        for found in places_in_text(files(file) or b"", _DEFAULTED) if scripts and variables and file else ():
            name, text = found[1].decode(), found[0].decode()
            if name not in variables and not any(text in script for script in scripts):
                message = (
                    f"Flux replaces {text}...}} by its default before the script runs; write ${text}...}} "
                    f"where the script's own variable is meant; {_DISABLE}"
                )
                yield Finding(file, owned.id, (), message, is_note=True, text=text)
                break


def unreplaced_variables(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the variables in what a Kustomization without ``postBuild`` applies: they stay as written.

    Nobody's child gets the variables of its parent (fluxcd/flux2#2360, #3632). Where the API server takes no
    ``$`` it is refused; elsewhere it is a note, and only for a name that has a value for somebody.
    """
    owners = platform.inventory.owners.values()
    known = {name for owner in owners for name in _variables_of(owner.spec)}
    for owned in platform.objects:
        if _has_variables(owned.owner.spec) or not any("${" in text for text in texts_in(owned.manifest)):
            continue
        place = f" ({owned.owner.file})" if owned.owner.file else ""
        for path, text in _texts_with_places(owned.manifest, (), "${"):
            names = {
                name for name in _USED.findall(text) if not (_is_own(path) and _has_variables(owned.spec))
            }
            is_refused = _is_strict(owned.id, path)
            said = sorted(name for name in names if is_refused or name in known or name.startswith(PREFIX))
            if said:
                message = (
                    f"${{{said[0]}}} stays as written, because Kustomization {full_name(owned.owner.id)}"
                    f"{place} has no spec.postBuild; the variables of another one do not count"
                )
                yield owned.finding(path, message, is_note=not is_refused)
                break


_USED = re.compile(r"(?<!\$)\$\{([A-Za-z_][A-Za-z0-9_]*)")
_SUBSTITUTE = ("substitute", "substituteFrom")


def _has_variables(spec: Mapping[str, Any]) -> bool:
    return any(mapping(spec.get("postBuild")).get(field) for field in _SUBSTITUTE)


def _variables_of(spec: Mapping[str, Any]) -> Iterator[str]:
    yield from map(str, mapping(mapping(spec.get("postBuild")).get("substitute")))


def _texts_with_places(value: Any, path: Path, part: str) -> Iterator[tuple[Path, str]]:
    """Yield the texts that have a part, at any depth."""
    if isinstance(value, str) and part in value:
        yield path, value
    for key, inner in value.items() if isinstance(value, Mapping) else enumerate(items(value)):
        yield from _texts_with_places(inner, (*path, key if isinstance(key, int) else str(key)), part)


def _is_own(path: Path) -> bool:
    """Return whether a field of a Kustomization is one that its own variables reach: its patches."""
    return path[:2] == ("spec", "patches")


def _is_strict(name: ObjectId, path: Path) -> bool:
    """Return whether a field takes no ``$``: a name, a label, a host."""
    if path[0] == "metadata":
        return path[1] in ("name", "namespace", "labels")
    return is_kind(name, "networking.k8s.io", "Ingress") and path[-1] == "host"


_HALVED = re.compile(r"\$\$(?!\{)")


def halved_dollars(platform: ClusterPlatform, files: Files) -> Iterator[Finding]:
    """Yield a note for each object in whose text Flux makes one ``$`` of two.

    Report: fluxcd/kustomize-controller#537. A shell's ``$$`` is its process, and that of the arguments of a
    container keeps a ``$(name)``.
    """
    for owned in platform.objects:
        file, spec = owned.built.file, owned.owner.spec
        is_replaced = _has_variables(spec) and not is_marked(owned.manifest, "substitute", "disabled")
        content = files(file) or b"" if is_replaced and file else b""
        if b"$$" not in content or is_definition(owned.id):
            continue
        node = best_document(content, owned.id)
        for path, text in _texts_with_places(node.plain() if node else {}, (), "$$"):
            message = (
                "Flux makes one $ of two here, because its Kustomization has variables; write four where two "
                f"are meant; {_DISABLE}"
            )
            if _HALVED.search(text):
                yield owned.finding(path, message, is_note=True)
                break


_IN_QUOTES = "; write it in quotes"
_VALUE = re.compile(r"\$\{[^{}$]+\}")
_QUOTED = (
    "; kustomize drops quotes around {written}, so its value decides: write ${{quote}}{written}${{quote}}, "
    "and give the variable quote the value '\"'"
)


def of_variable(finding: Finding, files: Files) -> Finding:
    """Return a fault of a value that is to be in quotes, as it is said where a variable brings the value.

    Reports: kubernetes-sigs/kustomize#4845, fluxcd/flux2#1839, fluxcd/kustomize-controller#1096.
    """
    if _IN_QUOTES not in finding.message:
        return finding
    document = best_document(files(finding.file) or b"", finding.of) if finding.file else None
    value: Any = document.plain() if document is not None else None
    for step in finding.path:
        listed = items(value)[step:] if isinstance(step, int) else [mapping(value).get(step)]
        value = next(iter(listed), None)
    if not isinstance(value, str) or not _VALUE.fullmatch(value):
        return finding
    message = finding.message.partition(_IN_QUOTES)[0] + _QUOTED.format(written=value)
    return replace(finding, message=message)
