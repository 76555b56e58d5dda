"""A repository of any git server: fetched into a folder of this instance, and read from there.

A read of the head asks for the references alone, which is one or two requests. A commit that is not here yet
is fetched with what leads to it; all else is read from the folder. The folder goes with the instance. Threads
read one after the other: dulwich does not say that they may do so at once, and the folder may be emptied.

Git has no ids of repositories. What stands for one is the first commit of the branch: it stays when the
repository moves, and a repository that somebody puts in its place has another one.
"""

from __future__ import annotations

import re
import shutil
import stat
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dulwich.diff_tree import tree_changes
from dulwich.graph import can_fast_forward, find_merge_base
from dulwich.object_store import DiskObjectStore, iter_tree_contents
from dulwich.objects import Blob, Commit, ObjectID
from dulwich.repo import Repo
from dulwich.walk import Walker

from shared.adapters.git.absent import AbsentMethods
from shared.adapters.git.transfer import GitServer, HttpsGitServer, git_errors, too_large
from shared.cluster.failures.errors import Dependency, InvalidManifest
from shared.ports.git_host import Addressee, BranchCommit, BranchHead, Capability, TreeEntry

MAX_FILE_BYTES = 1 << 20
"""A larger file is no part of an archive; a manifest has at most 256 KiB."""
MOST_ENTRIES = 100_000
"""Files and folders of a tree, as many as GitHub lists (docs.github.com/rest/git/trees)."""
_MOST_DEEP = 100
"""Folders in folders of a tree."""
_MOST_FILES = 300
"""As the port has it: GitHub lists so many files of a comparison (docs.github.com/rest/commits/commits)."""
_PACKS = 50
"""With more packs the folder is emptied: each fetch adds one."""
_OTHERS = 50
_TREES, _HISTORIES = 2, 200
_ID = re.compile(r"[0-9a-f]{40}")
_ADDRESS = re.compile(rb"<([^<>]*)>")


class GitServerHost(AbsentMethods):
    """The repository at an address of a git server, read over HTTPS unless another ``server`` is given."""

    name = "Git"
    to_read_another = (
        "give the key of GIT_SSH_KEY, or the user or token of GIT_PASSWORD, the right to read it"
    )

    def __init__(
        self, url: str, username: str = "", password: str = "", *, server: GitServer | None = None
    ) -> None:
        self._url, self._lock = url, threading.RLock()
        self._server = server or HttpsGitServer(url, username, password)
        self._folder = tempfile.TemporaryDirectory(prefix="roadstead-git-")
        self._repo = self._new_repo()
        self._heads: Mapping[str, str] = {}
        self._others = OrderedDict[str, GitServerHost]()
        self._sign_in = username, password
        self._trees = lru_cache(_TREES)(self._read_tree)
        self._changes = lru_cache(_HISTORIES)(self._read_changes)
        self._first_of_head = "", 0

    def _new_repo(self) -> Repo:
        folder = Path(tempfile.mkdtemp(dir=self._folder.name))
        return Repo.init_bare(str(folder))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._lock, git_errors():
            yield

    @property
    def _store(self) -> DiskObjectStore:
        store: Any = self._repo.object_store
        return store  # type: ignore[no-any-return]

    @property
    def credential(self) -> str:
        """The setting with which the server is read."""
        return self._server.credential

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Nothing: git has files and commits."""
        return frozenset()

    def addressee(self, address: str) -> Addressee:  # noqa: ARG002 - it is the same for all
        """Return that an address is a person's: git knows no other."""
        return Addressee.PERSON

    def other(self, repository: str) -> GitServerHost:
        """Return another repository of the server, with the same credential."""
        with self._lock:
            if repository not in self._others:
                self._others[repository] = self._new_other(repository)
            self._others.move_to_end(repository)
            while len(self._others) > _OTHERS:
                self._others.popitem(last=False)
            return self._others[repository]

    def _new_other(self, repository: str) -> GitServerHost:
        here = urlsplit(self._url)
        home, ending = "/~" * here.path.startswith("/~/"), ".git" * here.path.endswith(".git")
        url = here._replace(path=f"{home}/{repository}{ending}").geturl()
        return GitServerHost(url, server=self._server.at(url))

    def close(self) -> None:
        """Delete the folders, those of other repositories too."""
        for other in self._others.values():
            other.close()
        self._repo.close()
        self._folder.cleanup()

    def read_head(self, branch: str) -> BranchHead:
        """Return the commit that the branch points to; raise Dependency when there is no such branch."""
        with self._lock:
            heads = self._server.references()
            at = self._server.said_at.replace(microsecond=0)
            if branch not in heads:
                raise Dependency(f"no branch {branch}")
            if not self._has(heads[branch]):
                self._fetch()
            commit = heads[branch]
            return BranchHead(commit, at, self._first(commit))

    def is_descendant(self, commit: str, earlier: str) -> bool:
        """Return whether a commit is a descendant of another, or equal to it; False for an unknown one."""
        try:
            first, second = self._commit(earlier), self._commit(commit)
        except Dependency:
            return False
        with self._reading():
            return bool(can_fast_forward(self._repo, first.id, second.id))

    def changes(self, commit: str, path: str, most: int) -> Sequence[BranchCommit]:
        """Return the newest commits that changed something at or below a path; raise Dependency."""
        return self._changes(commit, path, most)

    def _read_changes(self, commit: str, path: str, most: int) -> Sequence[BranchCommit]:
        newest = self._commit(commit).id
        paths = [path.encode()] if path else None
        with self._reading():
            found = Walker(self._store, [newest], paths=paths, max_entries=most, order="topo")
            return [_change(entry.commit) for entry in found]

    def changes_since(self, commit: str, earlier: str, most: int) -> Sequence[BranchCommit] | None:
        """Return the commits that an earlier one does not have; None for more than ``most``."""
        newer, older = self._commit(commit).id, self._commit(earlier).id
        with self._reading():
            if not find_merge_base(self._repo, [newer, older]):
                raise Dependency(f"{commit} and {earlier} have no common ancestor")
            found = Walker(self._store, [newer], exclude=[older], max_entries=most + 1)
            listed = [_change(entry.commit) for entry in found]
        return None if len(listed) > most else listed

    def files_between(self, commit: str, earlier: str) -> Sequence[str]:
        """Return the paths of the files that differ between a commit and an ancestor."""
        new, old = self._commit(commit), self._commit(earlier)
        with self._reading():
            found = {
                side.path.decode(errors="replace")
                for change in tree_changes(self._store, old.tree, new.tree)
                for side in (change.old, change.new)
                if side is not None and side.path is not None
            }
        return sorted(found)[:_MOST_FILES]

    def tree(self, commit: str) -> Sequence[TreeEntry]:
        """Return every file at a commit; raise Unavailable for more than are planned."""
        return self._trees(commit)

    def _read_tree(self, commit: str) -> Sequence[TreeEntry]:
        tree = self._commit(commit).tree
        with self._reading():
            return tuple(self._entries(tree, commit))

    def _entries(self, tree: ObjectID, commit: str) -> Iterator[TreeEntry]:
        """Yield the files of a tree; folders count, because a tree can have any number of empty ones."""
        found = iter_tree_contents(self._store, tree, include_trees=True, max_depth=_MOST_DEEP)
        for number, entry in enumerate(found):
            if number > MOST_ENTRIES:  # the first is the tree itself
                raise too_large(f"{commit} has more than {MOST_ENTRIES:,} files and folders")
            if stat.S_ISDIR(entry.mode or 0):
                continue
            mode, sha = entry.mode or 0, entry.sha or b""
            is_file = stat.S_ISREG(mode)
            size = 0 if mode & 0o160000 == 0o160000 else len(self._store.get_raw(ObjectID(sha))[1])
            path = (entry.path or b"").decode(errors="replace")
            yield TreeEntry(path, sha.decode(), size, is_file)

    def blob(self, sha: str) -> bytes:
        """Return a file's content by its blob id; raise Dependency when there is none."""
        found = self._object(sha, f"no blob {sha}")
        if not isinstance(found, Blob):
            raise Dependency(f"no blob {sha}")
        return found.data

    def archive(self, commit: str, paths: Collection[str]) -> Mapping[str, bytes]:
        """Return the plain files at these paths of a commit that are small enough."""
        wanted = frozenset(paths)
        found = [entry for entry in self.tree(commit) if entry.path in wanted and entry.plain]
        return {entry.path: self.blob(entry.sha) for entry in found if entry.size <= MAX_FILE_BYTES}

    def _commit(self, commit: str) -> Commit:
        found = self._object(commit, f"no commit {commit}")
        if not isinstance(found, Commit):
            raise Dependency(f"no commit {commit}")
        return found

    def _object(self, sha: str, missing: str) -> Any:
        """Return an object; one that is not here is fetched with all branches, unless these are the same."""
        if not _ID.fullmatch(sha):
            raise InvalidManifest(f"{missing}: not the id of an object")
        with self._reading():
            if not self._has(sha):
                self._bring(sha)
            if not self._has(sha):
                raise Dependency(missing)
            return self._store[ObjectID(sha.encode())]

    def _bring(self, sha: str) -> None:
        """Fetch the branches, and otherwise the commit alone, as of a test merge or of a deleted branch."""
        if self._server.references() != self._heads:
            self._fetch()
        if not self._has(sha) and self._is_elsewhere(sha):
            self._server.fetch_commit(self._store, {head.encode() for head in self._heads.values()}, sha)

    def _is_elsewhere(self, _sha: str) -> bool:
        """Return whether the server has a commit of no branch, and gives it by its id."""
        return False

    def _has(self, sha: str) -> bool:
        return ObjectID(sha.encode()) in self._store

    def _fetch(self) -> None:
        with self._reading():
            if len(list(self._store.packs)) > _PACKS:
                self._repo.close()
                shutil.rmtree(self._repo.path)
                self._repo, self._heads = self._new_repo(), {}
            known = {commit.encode() for commit in self._heads.values()}
            self._heads = self._server.fetch_branches(self._store, known)

    def _first(self, head: str) -> int:
        """Return what stands for the id of the repository, from the first commit that others follow.

        It is looked for down to the last head, or to the beginning.
        """
        last, first = self._first_of_head
        commit = head
        with self._reading():
            while commit != last and (parents := self._commit(commit).parents):
                commit = parents[0].decode()
            found = first if commit == last else int(commit[:13], 16)
            self._first_of_head = head, found
        return found


def _change(commit: Commit) -> BranchCommit:
    return BranchCommit(
        commit.id.decode(),
        _address(commit.author),
        _address(commit.committer),
        commit.message.decode(errors="replace").rstrip("\n"),
        tuple(parent.decode() for parent in commit.parents),
    )


def _address(person: bytes) -> str:
    found = _ADDRESS.search(person)
    return found[1].decode(errors="replace").strip().lower() if found else ""
