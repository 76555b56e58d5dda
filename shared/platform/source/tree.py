"""The tree that Flux gets of a commit: what source-controller packs, which is not the checkout.

Links, submodules and what ignore rules name are not in it (source-controller ``gitrepository_controller.go``,
fluxcd/pkg ``artifact/storage/archive.go`` and ``sourceignore``). A pointer of Git LFS is in it as it is.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

from shared.frozen import dataclass, field
from shared.language.resolve.problems import nearest
from shared.language.resolve.repository_layout import Files

IGNORE_FILE = ".sourceignore"
MOST_IGNORE_FILES = 200
_VERSION_CONTROL = (".git/", ".gitignore", ".gitmodules", ".gitattributes")
_DEFAULT = (
    *("*.jpg", "*.jpeg", "*.gif", "*.png", "*.wmv", "*.flv", "*.tar.gz", "*.zip"),
    *(".github/", ".circleci/", ".travis.yml", ".gitlab-ci.yml", "appveyor.yml", ".drone.yml"),
    *("cloudbuild.yaml", "codeship-services.yml", "codeship-steps.yml"),
    *("**/.goreleaser.yml", "**/.sops.yaml", "**/.flux.yaml"),
)
"""What is ignored where neither the repository nor the source has a rule of its own (``sourceignore``)."""
KUSTOMIZATION_FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""The names that kustomize knows (``konfig.RecognizedKustomizationFileNames``), with this spelling."""
MANIFEST = (".yaml", ".yml")
"""How the names of manifests end that Flux takes from a folder without a kustomization file."""
_CUT_OFF = "\U0010ffff"


@dataclass(frozen=True, eq=False)
class Tree:
    """The files of a commit, with those contents that are read; ``ignore`` is ``spec.ignore`` of the source.

    ``contents`` may lack files: what has to be read to go on is named by those that need it.
    """

    files: Files
    contents: Mapping[str, bytes] = field(default_factory=dict)
    ignore: str = ""

    @cached_property
    def ignore_files(self) -> tuple[str, ...]:
        """The paths of the files with ignore rules, those of folders before those of folders in them."""
        found = [path for path in self.files.others if path.endswith(IGNORE_FILE)]
        named = [path for path in found if path.rpartition("/")[2] == IGNORE_FILE]
        return tuple(sorted(named, key=lambda path: path.split("/")))

    @cached_property
    def _rules(self) -> Sequence[_Rule]:
        """The ignore rules, the one that counts most last; the defaults hold where there is no other."""
        if len(self.ignore_files) > MOST_IGNORE_FILES:
            return ()
        own = [
            rule
            for path in self.ignore_files
            for rule in _rules(self.contents.get(path, b"").decode(errors="replace"), path.rpartition("/")[0])
        ]
        own += _rules(self.ignore, "")
        return [*_parsed(_VERSION_CONTROL), *(own or _parsed(_DEFAULT))]

    def has(self, path: str) -> bool:
        """Return whether Flux gets this file."""
        return path in self.files.blobs and not self.ignores(path)

    def ignores(self, path: str) -> bool:
        """Return whether a rule leaves a file out."""
        parts = path.split("/")
        return next((not rule.keeps for rule in reversed(self._rules) if rule.matches(parts)), False)

    def below(self, folder: str) -> list[str]:
        """Return the paths that Flux gets in a folder and in all below it, sorted as it walks them."""
        found = [path for path in self._all_below(folder) if not self.ignores(path)]
        return sorted(found, key=lambda path: path.split("/"))

    def size_of(self, folder: str) -> int:
        """Return how many files of the commit are in a folder and below."""
        return len(self._all_below(folder))

    def entries(self, folder: str) -> list[str]:
        """Return what Flux lists for a folder without a kustomization file (``scanManifests``), in its order.

        These are the manifests in it and below, and the folders that have a kustomization file.
        """
        found: list[str] = []
        inner = ""
        for path in self.below(folder):
            if inner and path.startswith(inner):
                continue
            listed = self._listed_above(path, folder)
            if listed:
                inner = f"{listed}/"
                found.append(listed)
            elif path.endswith(MANIFEST):
                found.append(path)
        return found

    def _listed_above(self, path: str, folder: str) -> str:
        """Return the highest folder of a path, below a folder, that has a kustomization file; "" for none."""
        start = len(folder) + 1 if folder else 0
        ends = (end for end in range(start, len(path)) if path[end] == "/")
        return next((path[:end] for end in ends if self.kustomization_in(path[:end])), "")

    def links_below(self, folder: str) -> list[str]:
        """Return the links and submodules in a folder and below."""
        prefix = f"{folder}/" if folder else ""
        return sorted(path for path in self.files.other if path.startswith(prefix))

    def is_folder(self, path: str) -> bool:
        """Return whether there is such a folder with a file in it; "" is the root."""
        return not path or bool(self._all_below(path))

    def in_other_case(self, folder: str) -> str:
        """Return the folder that differs from one in the case of its letters alone, "" for none."""
        begin = f"{folder}/".lower()
        found = next((path for path in self.files.ordered if path.lower().startswith(begin)), "")
        return found[: len(folder)]

    def kustomization_in(self, folder: str) -> str:
        """Return the path of the kustomization file that counts for a folder, "" without one."""
        return next(iter(self.kustomizations_in(folder)), "")

    def kustomizations_in(self, folder: str) -> list[str]:
        """Return the paths of the kustomization files of a folder; kustomize refuses more than one."""
        prefix = f"{folder}/" if folder else ""
        return [path for name in KUSTOMIZATION_FILES if self.has(path := prefix + name)]

    def folders_in(self, folder: str) -> list[str]:
        """Return the folders directly in a folder, or in the nearest one above it that is there."""
        while not self.is_folder(folder):
            folder = folder.rpartition("/")[0]
        prefix = f"{folder}/" if folder else ""
        rests = (path[len(prefix) :] for path in self.below(folder))
        return [*dict.fromkeys(prefix + rest.partition("/")[0] for rest in rests if "/" in rest)]

    def _all_below(self, folder: str) -> Sequence[str]:
        ordered, prefix = self.files.ordered, f"{folder}/"
        if not folder:
            return ordered
        return ordered[bisect_left(ordered, prefix) : bisect_left(ordered, prefix + _CUT_OFF)]


def folder_of(path: str) -> str:
    """Return the folder that a path of a Flux Kustomization is, "" for the root.

    It never leads out of the tree (``securejoin``): what would is cut off at the root.
    """
    return posixpath.normpath("/" + path.strip()).strip("/")


def joined(folder: str, path: str) -> str | None:
    """Return the path of an entry of a file in a folder; None for one that leads out of the tree."""
    if path.startswith("/"):
        return None
    whole = posixpath.normpath(posixpath.join(folder, path))
    return None if whole == ".." or whole.startswith("../") else "" if whole == "." else whole


@dataclass(frozen=True)
class _Rule:
    """A rule of an ignore file, which go-git matches in its own way (``plumbing/format/gitignore``)."""

    domain: tuple[str, ...]
    steps: tuple[str, ...]
    keeps: bool
    folders_only: bool

    def matches(self, parts: Sequence[str]) -> bool:
        """Return whether it decides about a file with these parts of a path."""
        if len(parts) <= len(self.domain) or tuple(parts[: len(self.domain)]) != self.domain:
            return False
        rest = parts[len(self.domain) :]
        return self._by_path(rest) if len(self.steps) > 1 else self._by_name(rest)

    def _by_name(self, parts: Sequence[str]) -> bool:
        pattern = glob_pattern(self.steps[0])
        for number, name in enumerate(parts, start=1):
            if pattern is not None and pattern.fullmatch(name):
                return not (self.folders_only and number == len(parts))
        return False

    def _by_path(self, parts: Sequence[str]) -> bool:
        rest, matched, skips = list(parts), False, False
        for number, step in enumerate(self.steps, start=1):
            if step == "":
                skips = False
                continue
            if step == "**":
                if number == len(self.steps):
                    break
                skips = True
                continue
            pattern = glob_pattern(step)
            if "**" in step or not rest or pattern is None:
                return False
            if not skips:
                if not pattern.fullmatch(rest.pop(0)):
                    return False
                matched = True
                continue
            skips, matched = False, False
            while rest and not matched:
                matched = bool(pattern.fullmatch(rest.pop(0)))
        return matched and not (self.folders_only and not rest)


def _rules(text: str, folder: str) -> list[_Rule]:
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return _parsed(lines, tuple(folder.split("/")) if folder else ())


def _parsed(lines: Iterator[str] | Sequence[str], domain: tuple[str, ...] = ()) -> list[_Rule]:
    rules = []
    for line in lines:
        keeps, text = line.startswith("!"), line.removeprefix("!")
        if not text.endswith("\\ "):
            text = text.rstrip(" ")
        folders_only = text.endswith("/")
        rules.append(
            _Rule(domain, tuple(text[: -1 if folders_only else None].split("/")), keeps, folders_only)
        )
    return rules


@lru_cache(maxsize=4096)
def glob_pattern(glob: str) -> re.Pattern[str] | None:
    """Return a pattern of Go's ``filepath.Match``; None where that has none.

    What stands before a ``*`` is matched at its first place and never again, so no pattern takes long.
    """
    chunks = [""]
    position = 0
    while position < len(glob):
        letter = glob[position]
        if letter == "*":
            chunks.append("")
        elif letter == "?":
            chunks[-1] += "."
        elif letter == "[":
            end = glob.find("]", position + 2)
            if end < 0:
                return None
            chunks[-1] += "[" + glob[position + 1 : end].replace("[", r"\[") + "]"
            position = end
        else:
            position += letter == "\\"
            if position == len(glob):
                return None
            chunks[-1] += re.escape(glob[position])
        position += 1
    first, *others = chunks
    text = first + "".join(f"(?>.*?{chunk})" for chunk in others[:-1])
    try:
        return re.compile(text + (f".*{others[-1]}" if others else ""), re.DOTALL)
    except re.error:
        return None


# What somebody probably meant by a path that is not there, or whose case is another.


def misspelt(path: str) -> str:
    """Return what is wrong with a kustomization file whose name is written in another case."""
    name = path.rpartition("/")[2]
    right = "kustomization.yml" if name.lower().endswith(".yml") else "kustomization.yaml"
    return f"{path} is no kustomization file to kustomize; rename it to {right}"


def meant(tree: Tree, target: str) -> str:
    """Return a hint with the file or folder that was probably meant."""
    near = near_path(tree, target)
    return f"; did you mean {near}?" if near else ""


def near_path(tree: Tree, target: str) -> str:
    """Return the file or folder that was probably meant by a path, "" when none is similar."""
    parent, _, name = target.rpartition("/")
    while parent and not tree.is_folder(parent):
        parent, _, name = parent.rpartition("/")
    prefix = f"{parent}/" if parent else ""
    names = list(dict.fromkeys(path[len(prefix) :].split("/")[0] for path in tree.below(parent)))
    near = nearest(name, names)
    return prefix + near if near else ""
