"""The inventory of a cluster at a commit: its Kustomizations, those that these apply, and what each owns.

Ten thousand clusters share a few dozen inventories: one is built for each set of Kustomizations and of those
facts that their variables use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from shared.frozen import dataclass, replace
from shared.json_tree import Json, digest_of, path_text
from shared.kubernetes.bootstrap_secrets import secret_ref
from shared.kubernetes.flux_objects import FACTS
from shared.kubernetes.inside import PREFIX, facts_of, is_of_azure
from shared.language.desired import Desired
from shared.language.model.cluster.grants import BootstrapSecret
from shared.language.resolve.problems import Problem, nearest, problem_at
from shared.language.yaml.nodes import Mark
from shared.platform.builds.build import Builds, Document, FolderBuild, unlimited
from shared.platform.builds.declared import declared
from shared.platform.builds.substitution import (
    BadSubstitution,
    Place,
    Values,
    configs_in,
    invalid_names,
    names_in,
    parsed,
    substituted,
)
from shared.platform.inventory import BuiltObject, Inventory, ObjectId, Owner
from shared.platform.pins import Roots, roots_of
from shared.platform.source.documents import UnreadableFile, documents, field_of, manifests
from shared.platform.source.reach import LINK, reaches
from shared.platform.source.references import FLEET_SOURCE, KUSTOMIZE_GROUP, SourceName
from shared.platform.source.tree import Tree, folder_of

SUBSTITUTE = f"{KUSTOMIZE_GROUP.rstrip('/')}/substitute"
"""The label or annotation that keeps an object's text as it is, with the value ``disabled``."""
MOST_OWNERS = 500
_PASSES = 3
"""How often an inventory is built: a ConfigMap with variables may come from a Kustomization that has some."""
_MANIFEST = Mark("", 1, 1)
"""The manifest of a cluster, as the place of a problem: which one it is, is known of each cluster alone."""

Fact = Callable[[str], str | None]
"""Gives a fact of a cluster by its name: "" for none, and None for a value that only Azure will give."""


class Inventories:
    """Makes the inventories of the clusters at one commit; ``tree`` has the contents that they reach."""

    def __init__(
        self,
        tree: Tree,
        builds: Builds,
        source: SourceName = FLEET_SOURCE,
        check: Callable[[], None] = unlimited,
    ) -> None:
        self._tree, self._builds, self._source, self._check = tree, builds, source, check
        self._known: dict[str, list[tuple[Values, Inventory]]] = {}

    def of(self, desired: Desired, facts: Mapping[str, str] | None = None) -> Inventory:
        """Return the inventory of a cluster; ``facts`` are those that are recorded of it, None for none yet.

        What the manifest says replaces what is recorded. A fact that Azure gives is unknown without a record.
        """
        return self.of_owners(
            declared(desired, self._source), desired, facts, roots_of(desired.flux_as_stored)
        )

    def of_owners(
        self, owners: Sequence[Owner], desired: Desired, facts: Mapping[str, str] | None, roots: Roots
    ) -> Inventory:
        """Return the inventory of some Kustomizations of a cluster, which apply ``roots``."""
        fact = _facts(desired, facts)
        secrets = {
            ("Secret", *_place(secret)): tuple(secret.keys) for secret in desired.spec.bootstrap_secrets
        }
        key = digest_of([[owner.id, owner.spec] for owner in owners] + [sorted(secrets.items())])
        for used, inventory in self._known.setdefault(key, []):
            if all(fact(name) == value for name, value in used.items()):
                return inventory
        has_facts = not desired.has_extension
        maker = _Maker(self._tree, self._builds, self._source, fact, self._check, has_facts=has_facts)
        values: dict[Place, Values] = {place: dict.fromkeys(keys) for place, keys in secrets.items()}
        inventory = maker.inventory(owners, values, roots)
        self._known[key].append(({name: fact(name) for name in sorted(maker.used)}, inventory))
        return inventory


def _facts(desired: Desired, recorded: Mapping[str, str] | None) -> Fact:
    known = facts_of(desired, {})
    known |= {name: value for name, value in (recorded or {}).items() if is_of_azure(name)}
    is_new = recorded is None and not desired.is_attached

    def fact(name: str) -> str | None:
        return known.get(name, None if is_new and is_of_azure(name) else "")

    return fact


def _place(secret: BootstrapSecret) -> tuple[str, str]:
    ref = secret_ref(secret)
    return ref.namespace, ref.name


class _Maker:
    """Makes one inventory; ``used`` are the names of facts that it depends on."""

    def __init__(
        self,
        tree: Tree,
        builds: Builds,
        source: SourceName,
        fact: Fact,
        check: Callable[[], None],
        *,
        has_facts: bool,
    ) -> None:
        self._tree, self._builds, self._source, self._fact, self._check = tree, builds, source, fact, check
        self._has_facts = has_facts
        self._configs: Mapping[Place, Values] = {}
        self._roots: Sequence[str] = ()
        self._asked: set[Place] = set()
        self._unfollowed: set[str] = set()
        self.used: set[str] = set()

    def inventory(self, owners: Sequence[Owner], secrets: Mapping[Place, Values], roots: Roots) -> Inventory:
        """Return the inventory; ``secrets`` are on the cluster before Flux is, which applies ``roots``."""
        self._configs, self._roots = secrets, roots
        for _ in range(_PASSES):
            found = self._expanded(owners)
            configs = {**secrets, **dict(configs_in(found.values()))}
            if all(configs.get(place) == self._configs.get(place) for place in self._asked):
                break
            self._configs = configs
        return Inventory(found, tuple(sorted(self._unfollowed)), self._tree.files.blobs)

    def _expanded(self, owners: Sequence[Owner]) -> dict[ObjectId, Owner]:
        """Return the Kustomizations, and those that they apply in turn."""
        found: dict[ObjectId, Owner] = {}
        waiting = [*owners]
        while waiting and len(found) < MOST_OWNERS:
            owner = waiting.pop(0)
            if owner.id not in found:
                found[owner.id] = filled = self._filled(owner)
                waiting += self._nested(filled)
        if waiting:
            self._unfollowed.add(f"more than {MOST_OWNERS} Kustomizations")
        return found

    def _nested(self, owner: Owner) -> Iterator[Owner]:
        for name, built in owner.objects.items():
            if name.kind == "Kustomization" and name.group.endswith(KUSTOMIZE_GROUP.rstrip("/")):
                spec = built.manifest.get("spec") or {}
                ref = spec.get("sourceRef") or {}
                source = SourceName(
                    str(ref.get("kind")),
                    str(ref.get("name")),
                    str(ref.get("namespace") or name.namespace or self._source.namespace),
                )
                if source == self._source:
                    path = str(spec.get("path") or "")
                    is_open = any(f"${{{variable}" in path for variable in owner.unknown)
                    reason = f"its path is known on the cluster alone: {path}" if is_open else ""
                    yield Owner(name, spec, built.file, unbuilt=reason)

    def _filled(self, owner: Owner) -> Owner:
        """Return a Kustomization with what it owns, or with the reason why that is not known."""
        folder = folder_of(str(owner.spec.get("path") or ""))
        if owner.unbuilt:
            self._unfollowed.add(f"{owner.file} {owner.unbuilt}")
            return owner
        if owner.spec.get("kubeConfig"):
            return replace(owner, unbuilt="it applies to another cluster (spec.kubeConfig)")
        missing = self._missing(folder)
        if missing:
            return self._wrong(owner, missing)
        built = self._builds.of(self._tree, folder, owner.spec, self._source, self._check)
        owner = replace(owner, digest=built.key)
        self._unfollowed.update(built.unfollowed)
        if built.unbuilt:
            of_spec = next((problem.field for problem in built.problems if not problem.file), "")
            if of_spec:
                return self._wrong(owner, built.unbuilt, *of_spec.split("."))
            return replace(owner, unbuilt=built.unbuilt, problems=built.problems)
        try:
            filled = self._substituted(owner, built)
        except _FluxRefusal as refusal:
            if not refusal.file:
                return self._wrong(owner, refusal.message, "spec", "postBuild")
            mark = Mark(refusal.file, _line(self._tree, refusal), 1)
            return replace(owner, unbuilt=refusal.message, problems=(problem_at(mark, "", refusal.message),))
        if filled.objects or not owner.prunes:
            return filled
        return self._wrong(
            filled, f"./{folder} has no object: Flux would delete all that it applied from there"
        )

    def _missing(self, folder: str) -> str:
        """Return why Flux gets nothing of a folder, "" where it gets something."""
        tree = self._tree
        if tree.below(folder):
            return ""
        linked = [path for path in tree.files.other if f"{folder}/".startswith(f"{path}/")]
        if linked:
            return f"{linked[0]} {LINK}"
        if tree.is_folder(folder):
            return f"all that is in ./{folder} is left out by an ignore rule (.sourceignore)"
        if tree.has(folder):
            return f"./{folder} is a file, and Flux builds folders; write ./{folder.rpartition('/')[0]}"
        return f"there is no folder ./{folder}; {self._meant(folder)}"

    def _meant(self, folder: str) -> str:
        """Return a hint with the folder that a path may mean: a similar one, or one that nothing applies."""
        tree = self._tree
        near = tree.in_other_case(folder)
        beside = [] if near else tree.folders_in(folder.rpartition("/")[0])
        near = near or nearest(folder, beside)
        if not near:
            applied = {reach.folder for reach in reaches(tree, self._roots, self._source)}
            free = [path for path in beside if path not in applied]
            near = free[0] if len(free) == 1 else ""
        return f"did you mean ./{near}?" if near else "correct the path, or put the folder back"

    def _wrong(self, owner: Owner, message: str, *path: str) -> Owner:
        """Return a Kustomization with a problem of its own spec, at the path or at another field."""
        path = path or ("spec", "path")
        mark = Mark(owner.file, *self._place(owner, path)) if owner.file else _MANIFEST
        problem = problem_at(mark, path_text(path), message)
        return replace(owner, unbuilt=message, problems=(*owner.problems, problem))

    def _place(self, owner: Owner, path: Sequence[str]) -> tuple[int, int]:
        """Return the line and the column of a field of a Kustomization in its file."""
        try:
            found = [
                m for document in documents(self._tree.contents[owner.file]) for m in manifests(document)
            ]
        except (KeyError, UnreadableFile):
            return 1, 1
        same = [m for m in found if field_of(m, "kind") == owner.id.kind]
        named = [m for m in same if field_of(m, "metadata", "name") == owner.id.name]
        node = next((m.find(path) for m in (*named, *same)), None)
        return (node.mark.line, node.mark.column) if node is not None else (1, 1)

    def _substituted(self, owner: Owner, built: FolderBuild) -> Owner:
        variables = self._variables(owner, built)
        objects: dict[ObjectId, BuiltObject] = {}
        used: set[str] = set()
        missing: dict[str, set[str]] = {}
        problems: list[Problem] = []
        for document in built.documents:
            manifest = _parsed(document)
            if variables is not None and not _keeps_text(manifest):
                try:
                    result = substituted(document.text, variables.known, variables.is_unknown)
                except BadSubstitution as error:
                    raise _FluxRefusal(document.file, str(error), str(error).partition(": ")[0]) from error
                used |= result.used
                for name in result.missing:
                    missing.setdefault(name, set()).add(document.file)
                if result.text != document.text:
                    manifest = _parsed(document, result.text)
            whole = _with_metadata(manifest, owner.spec.get("commonMetadata") or {})
            object_id, new = ObjectId.of(whole), BuiltObject(whole, document.file)
            if object_id in objects:
                problems.append(self._twice(object_id, objects[object_id], new))
            objects[object_id] = new
        known = variables.known if variables is not None else {}
        return replace(
            owner,
            objects=objects,
            problems=(*owner.problems, *problems),
            variables={name: known[name] for name in sorted(used & known.keys())},
            missing={name: tuple(sorted(files)) for name, files in sorted(missing.items())},
            unknown=tuple(
                sorted(name for name in used - known.keys() if variables and variables.is_unknown(name))
            ),
        )

    def _twice(self, name: ObjectId, first: BuiltObject, second: BuiltObject) -> Problem:
        """Return the problem of an object in two versions of its API, for kustomize two objects."""
        versions = (
            f"{first.manifest.get('apiVersion')} ({first.file}) and {second.manifest.get('apiVersion')}"
        )
        message = f"{name} is here twice, as {versions}; keep one, because a cluster has one of them"
        mark = Mark(second.file, *self._place(Owner(name, {}, second.file), ("apiVersion",)))
        return problem_at(mark, "apiVersion", message)

    def _variables(self, owner: Owner, built: FolderBuild) -> _Variables | None:
        """Return the variables of a Kustomization, None where nothing is replaced."""
        post_build = owner.spec.get("postBuild")
        if not isinstance(post_build, Mapping):
            return None
        layers: list[Values] = []
        is_open = False
        for ref in post_build.get("substituteFrom") or ():
            place = str(ref.get("kind")), owner.id.namespace, str(ref.get("name"))
            self._asked.add(place)
            has_facts = self._has_facts or not owner.file  # what the manifest declares gets them inline
            if place == (FACTS.kind, FACTS.namespace, FACTS.name) and has_facts:
                layers.append(self._facts_in(built))
            elif place in self._configs:
                layers.append(self._configs[place])
            elif place == (FACTS.kind, FACTS.namespace, FACTS.name) and not ref.get("optional"):
                message = (
                    f"substitute from ConfigMap {FACTS.name}: with install: extension it is on no cluster"
                )
                raise _FluxRefusal("", message)
            else:
                is_open = True
        inline = post_build.get("substitute")
        layers.append({name: str(value) for name, value in inline.items()} if inline else {})
        values = {name: value for layer in layers for name, value in layer.items()}
        wrong = invalid_names(values.keys())
        if wrong:
            raise _FluxRefusal("", f"{wrong[0]} is no name of a variable, so Flux replaces none; rename it")
        if not values and not is_open:
            return None
        known = {name: value.replace("\n", "") for name, value in values.items() if value is not None}
        return _Variables(known, frozenset(values.keys() - known.keys()), is_open)

    def _facts_in(self, built: FolderBuild) -> Values:
        """Return the facts that the objects of a build use."""
        names = {name for document in built.documents for name in _names(document)}
        self.used |= names
        found = {name: self._fact(name) for name in names | {_ANY_FACT}}
        return {name: value for name, value in found.items() if value != ""}


_ANY_FACT = f"{PREFIX}name"
"""A fact that every cluster has."""


@dataclass(frozen=True)
class _Variables:
    """The values of variables; ``unknown`` have one that only the cluster has, and all others if ``open``."""

    known: Mapping[str, str]
    unknown: frozenset[str]
    open: bool

    def is_unknown(self, name: str) -> bool:
        """Return whether a variable may have a value that is not known."""
        return self.open or name in self.unknown


class _FluxRefusal(Exception):
    """Flux does not apply a Kustomization: the file (or "") and the text in it that is wrong, and why."""

    def __init__(self, file: str, message: str, text: str = "") -> None:
        super().__init__(message)
        self.file, self.message, self.text = file, message, text


def _line(tree: Tree, refusal: _FluxRefusal) -> int:
    content = tree.contents.get(refusal.file, b"")
    at = content.find(refusal.text.encode()) if refusal.text else -1
    return content.count(b"\n", 0, max(at, 0)) + 1


def _names(document: Document) -> frozenset[str]:
    try:
        return frozenset(names_in(parsed(document.text)))
    except BadSubstitution:
        return frozenset()


def _parsed(document: Document, text: str | None = None) -> dict[str, Any]:
    try:
        return document.manifest(text)
    except UnreadableFile as error:
        when = "" if text is None else ", once its variables are replaced: put them in quotes"
        raise _FluxRefusal(document.file, f"{error}{when}") from error


def _keeps_text(manifest: Json) -> bool:
    metadata = manifest.get("metadata") or {}
    marks = [metadata.get(name) or {} for name in ("labels", "annotations")]
    return any(mark.get(SUBSTITUTE) == "disabled" for mark in marks)


def _with_metadata(manifest: dict[str, Any], common: Json) -> dict[str, Any]:
    """Return an object with the labels and annotations that a Kustomization gives all of its objects."""
    added = {
        name: {**(manifest["metadata"].get(name) or {}), **common[name]}
        for name in ("labels", "annotations")
        if common.get(name)
    }
    return {**manifest, "metadata": {**manifest["metadata"], **added}} if added else manifest
