"""Which files of a commit a path of Flux reaches, and their digest: a cluster's pin moves when that changes.

Paths are followed as kustomize and Flux follow them: a folder with a kustomization file through what that
lists, a folder without one through all manifests in it (fluxcd/pkg ``kustomize_generator.go``), and then the
Flux Kustomizations and charts that the manifests name in the same source. What only the cluster knows, or a
remote base, cannot be followed; the whole tree counts then. A file too many only moves a pin needlessly, a
file too few would leave a cluster behind; so what may be reached counts.

Contents are read in stages: what has to be read to go on is ``needed``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from shared.frozen import dataclass, field
from shared.language.resolve.problems import Problem, printable, problem_at
from shared.language.resolve.repository_layout import (
    CLASSES,
    CLUSTERS,
    ENVIRONMENTS,
    FLEET_FILE,
    SYSTEMS,
    Files,
)
from shared.language.yaml.nodes import Mark
from shared.platform.source.documents import LFS_POINTER, UnreadableFile
from shared.platform.source.references import (
    ANY_SOURCE,
    FLEET_SOURCE,
    Reference,
    ReferenceTarget,
    SourceName,
    of_kustomization,
    of_manifest,
    of_patch,
    of_plugin,
)
from shared.platform.source.tree import (
    KUSTOMIZATION_FILES,
    MOST_IGNORE_FILES,
    Tree,
    folder_of,
    joined,
    meant,
    misspelt,
)

MOST_WORK = 100_000
"""How many files may be looked at to follow the paths of a cluster; beyond, the whole tree counts."""
MOST_STAGES = 40
"""How many files deep references are followed; each may cost a read of its own."""
LINK = "is a link or a submodule, which Flux does not get; put the files themselves there"
_OF_THE_FLEET = (f"{CLUSTERS}/", f"{ENVIRONMENTS}/", f"{CLASSES}/", f"{SYSTEMS}/")
_REMOTE = re.compile(r"(git::)?([a-z][a-z0-9+.-]*://|gh:|github\.com[:/]|[^/\s]+@[^/\s]+:)", re.IGNORECASE)


@dataclass(frozen=True)
class Reach:
    """What a folder that Flux applies reaches.

    ``files`` are what kustomize reads to build it, without what other Kustomizations apply, which are
    ``nested``; ``manifests`` are those of them that have objects, and ``charts`` the files of charts in the
    same source. ``problems`` are references that lead
    nowhere, so that Flux cannot build it. ``unfollowed`` says what cannot be followed, each with its place,
    and ``outside`` what kustomize would read outside the tree. ``needed`` are files to read first: until
    then, nothing else is final. ``work`` is how many files were looked at.
    """

    folder: str
    files: frozenset[str] = frozenset()
    manifests: frozenset[str] = frozenset()
    charts: frozenset[str] = frozenset()
    nested: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    unfollowed: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    work: int = 0


@dataclass(frozen=True)
class PulledFiles:
    """The files that paths reach, each with its blob id; ``digest`` is "" while files are ``needed``.

    Where something is ``unfollowed``, the files are all of the tree but the manifests of the fleet.
    """

    digest: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    unfollowed: tuple[str, ...] = ()


def pulled(
    files: Files,
    contents: Mapping[str, bytes],
    roots: tuple[str, ...],
    *,
    source: SourceName = FLEET_SOURCE,
    ignore: str = "",
    whole: bool = False,
) -> PulledFiles:
    """Return what folders of a commit reach; ``contents`` are the files that are read already.

    ``ignore`` is ``spec.ignore`` of the source. ``whole``: the tree has no manifests of the fleet, so that
    all of it counts where something cannot be followed. The result is the same for the same files and roots
    in any order.
    """
    tree = Tree(files, contents, ignore)
    unread = tuple(path for path in tree.ignore_files if path not in contents)
    if len(tree.ignore_files) > MOST_IGNORE_FILES:
        reasons = [f"more than {MOST_IGNORE_FILES} files {tree.ignore_files[0].rpartition('/')[2]}"]
        return _digested(tree, _rest(tree, whole=whole), reasons)
    if unread:
        return PulledFiles(needed=unread)
    reached: set[str] = set()
    needed: set[str] = set()
    unfollowed: set[str] = set()
    work = 0
    for reach in reaches(tree, roots, source):
        work += 1 + reach.work
        if work > MOST_WORK:
            unfollowed.add(f"more than {MOST_WORK} files are reached")
            break
        reached |= reach.files | reach.charts
        needed.update(reach.needed)
        unfollowed.update(reach.unfollowed)
    if needed:
        return PulledFiles(needed=tuple(sorted(needed)))
    return _digested(tree, reached | _rest(tree, whole=whole) if unfollowed else reached, unfollowed)


def pulled_with(
    files: Files,
    contents: dict[str, bytes],
    read: Callable[[Iterable[str]], Mapping[str, bytes]],
    roots: tuple[str, ...],
    *,
    whole: bool = False,
) -> PulledFiles:
    """Return what folders of a commit reach, after ``read`` has added what is needed to ``contents``.

    Where files refer to each other too deeply, the whole tree counts; ``whole`` as for ``pulled``.
    """
    source = ANY_SOURCE if whole else FLEET_SOURCE
    for _ in range(MOST_STAGES):
        found = pulled(files, contents, roots, source=source, whole=whole)
        if not found.needed:
            return found
        contents |= read(found.needed)
    tree = Tree(files, contents)
    return _digested(tree, _rest(tree, whole=whole), [f"references of more than {MOST_STAGES} files"])


def reaches(tree: Tree, roots: Iterable[str], source: SourceName = FLEET_SOURCE) -> Iterator[Reach]:
    """Yield the reach of each folder that Flux applies, from these roots on, each folder once."""
    waiting = sorted({folder_of(root) for root in roots})
    seen = set(waiting)
    while waiting:
        reach = reach_of(tree, waiting.pop(), source)
        yield reach
        new = [folder for folder in reach.nested if folder not in seen]
        seen.update(new)
        waiting += new


def reach_of(
    tree: Tree, folder: str, source: SourceName = FLEET_SOURCE, components: Iterable[str] = ()
) -> Reach:
    """Return what kustomize reads to build a folder that Flux applies.

    ``components`` are those that the spec of the Kustomization adds, relative to the folder.
    """
    walk = _Walk(tree, source)
    walk.follow(folder, components)
    return Reach(
        folder,
        frozenset(walk.files),
        frozenset(walk.manifests),
        frozenset(walk.charts),
        tuple(sorted(walk.nested)),
        tuple(sorted({*walk.problems})),
        tuple(sorted(walk.unfollowed)),
        tuple(sorted(walk.outside)),
        tuple(sorted(walk.needed)),
        walk.work,
    )


def _rest(tree: Tree, *, whole: bool) -> set[str]:
    """Return all files of the tree, but those that no Flux applies of a fleet repository."""
    return {
        path
        for path in tree.files.blobs
        if (whole or (path != FLEET_FILE and not path.startswith(_OF_THE_FLEET))) and not tree.ignores(path)
    }


def _digested(tree: Tree, reached: set[str], unfollowed: Iterable[str]) -> PulledFiles:
    files = {path: tree.files.blobs[path] for path in sorted(reached)}
    digest = hashlib.sha256()
    for path, blob in files.items():
        digest.update(b"%b\0%b\0" % (path.encode(), blob.encode()))
    return PulledFiles(digest.hexdigest()[:32], files, (), tuple(sorted(unfollowed)))


class _Walk:
    """Follows references from a folder, each file once, in stages of a bounded number."""

    def __init__(self, tree: Tree, source: SourceName) -> None:
        self._tree, self._source = tree, source
        self.files: set[str] = set()
        self.manifests: set[str] = set()
        self.charts: set[str] = set()
        self.nested: set[str] = set()
        self.needed: set[str] = set()
        self.unfollowed: set[str] = set()
        self.problems: list[Problem] = []
        self.outside: set[str] = set()
        self.work = 0
        self._waiting: list[tuple[ReferenceTarget, str, int]] = []
        self._seen: set[tuple[ReferenceTarget, str]] = set()

    def follow(self, folder: str, components: Iterable[str] = ()) -> None:
        """Follow everything from the folder that Flux applies."""
        self._apply(folder)
        for component in components:
            target = joined(folder, component)
            if target is not None and self._tree.kustomization_in(target):
                self._add(ReferenceTarget.COMPONENT, target, 0)
        while self._waiting:
            to, path, depth = self._waiting.pop()
            if depth > MOST_STAGES or self.work > MOST_WORK:
                self.unfollowed.add(f"{printable(path, 200)}: too much is reached to be followed")
                return
            self._read(to, path, depth)

    def _apply(self, folder: str) -> None:
        """Follow a folder as Flux builds it: all manifests in it, where it has no kustomization file."""
        tree = self._tree
        if tree.kustomization_in(folder):
            self._add(ReferenceTarget.COMPONENT, folder, 0)
            return
        self.work += tree.size_of(folder)
        for link in tree.links_below(folder):
            if not tree.ignores(link):
                self.problems.append(problem_at(Mark(link, 1, 1), "", LINK))
        for entry in tree.entries(folder):
            self._add(ReferenceTarget.RESOURCE if tree.has(entry) else ReferenceTarget.COMPONENT, entry, 0)

    def _add(self, to: ReferenceTarget, path: str, depth: int) -> None:
        if (to, path) not in self._seen:
            self._seen.add((to, path))
            self._waiting.append((to, path, depth))

    def _read(self, to: ReferenceTarget, path: str, depth: int) -> None:
        """Read what a file or a folder refers to."""
        tree = self._tree
        self.work += 1
        if to is ReferenceTarget.COMPONENT:
            path, *others = tree.kustomizations_in(path)
            self.files.update(others)  # kustomize refuses two in one folder
        self.files.add(path)
        if to is ReferenceTarget.RESOURCE:
            self.manifests.add(path)
        if to is ReferenceTarget.DATA:
            return
        if path not in tree.contents:
            self.needed.add(path)
            return
        content = tree.contents[path]
        try:
            found = _references(to, content, self._source)
        except UnreadableFile as error:
            mark = Mark(path, error.line, error.column)
            self.problems.append(problem_at(mark, "", error.message))
            if to is ReferenceTarget.COMPONENT or not content.startswith(LFS_POINTER):
                self.unfollowed.add(f"{path}:{error.line} cannot be read")
            return
        for reference in found:
            self._go(path, reference, depth + 1)

    def _go(self, path: str, reference: Reference, depth: int) -> None:
        """Follow one reference of a file."""
        to, text, place = reference.to, reference.text, reference.place
        where = f"{printable(path, 200)}:{place.line}"
        if to is ReferenceTarget.UNKNOWN:
            self.unfollowed.add(f"{where} {printable(text, 200)}")
        elif _REMOTE.match(text):
            reason = f"{where} {printable(text, 200)} is remote"
            if to is not ReferenceTarget.TREE:
                self.outside.add(reason)
            if not reference.may_lack:
                self.unfollowed.add(reason)
        elif "${" in text:
            self._go_below(path, text, reference)
        elif to is ReferenceTarget.FLUX:
            folder = folder_of(text)
            if not reference.may_lack or self._tree.is_folder(folder):
                self.nested.add(folder)
        else:
            self._go_to(path, reference, depth)

    def _go_to(self, path: str, reference: Reference, depth: int) -> None:
        tree, to = self._tree, reference.to
        base = "" if reference.from_root else path.rpartition("/")[0]
        target = joined(base, reference.text.removeprefix("./")) if reference.text else base
        if target is None and reference.from_root:
            target = folder_of(reference.text)
        if target is None:
            if not reference.may_lack:
                self._problem(path, reference, "leads out of the repository, where Flux reads nothing")
            else:
                self.outside.add(f"{path}:{reference.place.line} {printable(reference.text, 200)}")
            return
        if to is ReferenceTarget.TREE:
            below = tree.below(target) or ([target] if tree.has(target) else [])
            self.work += len(below)
            self.charts.update(below)
        elif tree.has(target) and to is not ReferenceTarget.COMPONENT:
            if reference.from_root and to is ReferenceTarget.DATA:
                self.charts.add(target)
            else:
                self._add(to, target, depth)
        elif to in (
            ReferenceTarget.RESOURCE,
            ReferenceTarget.COMPONENT,
            ReferenceTarget.PLUGIN,
        ) and tree.kustomization_in(target):
            self._add(ReferenceTarget.COMPONENT, target, depth)
        elif not reference.may_lack:
            self._problem(path, reference, self._why(target, to))

    def _go_below(self, path: str, text: str, reference: Reference) -> None:
        """Follow all that a path with variables may be: what is below its beginning."""
        if reference.to not in (ReferenceTarget.FLUX, ReferenceTarget.TREE):
            return
        folder = folder_of(text.partition("${")[0].rpartition("/")[0])
        if not folder:
            self.unfollowed.add(f"{path}:{reference.place.line} {printable(text, 200)}")
            return
        below = self._tree.below(folder)
        self.work += len(below)
        for found in below:
            parent, _, name = found.rpartition("/")
            if reference.to is ReferenceTarget.TREE:
                self.charts.add(found)
            elif name in KUSTOMIZATION_FILES:
                self.nested.add(parent)
            else:
                self.charts.add(found)
        if reference.to is ReferenceTarget.FLUX:
            self.nested.add(folder)

    def _why(self, target: str, to: ReferenceTarget) -> str:
        """Return what is wrong with a reference to something that Flux does not get."""
        tree = self._tree
        linked = [path for path in tree.files.other if target == path or target.startswith(f"{path}/")]
        if linked:
            return f"{linked[0]} {LINK}"
        if target in tree.files.blobs:
            return f"{target} is left out by an ignore rule (.sourceignore, or those of source-controller)"
        if to is not ReferenceTarget.DATA and to is not ReferenceTarget.PATCH and tree.is_folder(target):
            return self._unlisted(target)
        if tree.is_folder(target):
            return f"{target} is a folder; name a file"
        return f"there is no {target}{meant(tree, target)}"

    def _unlisted(self, folder: str) -> str:
        prefix = f"{folder}/" if folder else ""
        alike = [
            path
            for path in self._tree.below(folder)
            if path.removeprefix(prefix).lower() in map(str.lower, KUSTOMIZATION_FILES)
        ]
        if alike:
            return misspelt(alike[0])
        return f"{folder or 'the root'} has no kustomization.yaml; add one that lists its manifests"

    def _problem(self, path: str, reference: Reference, message: str) -> None:
        mark = Mark(path, reference.place.line, reference.place.column)
        self.problems.append(problem_at(mark, reference.field, message))


def _references(to: ReferenceTarget, content: bytes, source: SourceName) -> tuple[Reference, ...]:
    if to is ReferenceTarget.COMPONENT:
        return of_kustomization(content)
    if to is ReferenceTarget.PATCH:
        return of_patch(content)
    if to is ReferenceTarget.PLUGIN:
        return of_plugin(content)
    return of_manifest(content, source)
