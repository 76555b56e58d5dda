"""A git repository in memory: commits on branches, blobs by hash, statuses. For tests and simulation."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import islice

from localcloud.common.clock import system_clock
from localcloud.git.world.branches import ChangedFile
from localcloud.git.world.commit_statuses import Statuses
from localcloud.git.world.pull_requests import Pulls
from shared.cluster.failures.errors import Dependency, InvalidManifest, Unavailable
from shared.language.resolve.repository_layout import blob_id
from shared.ports import BranchHead, Clock, CommitStatus, TreeEntry
from shared.ports.git_host import BranchCommit

_SHA = re.compile(r"[0-9a-f]{40}\Z")
_SUBMODULE = "160000"
_OPERATOR = "operator@example.invalid"


class MemoryRepository:
    """The Repository port over dictionaries; ``push`` and ``commit`` are the operator."""

    def __init__(self, clock: Clock = system_clock) -> None:
        self._heads: dict[str, str] = {}
        self._trees: dict[str, dict[str, TreeEntry]] = {}
        self._blobs: dict[str, bytes] = {}
        self._parents: dict[str, str] = {}
        self._others: dict[str, tuple[str, ...]] = {}
        """The further parents of merges."""
        self._authors: dict[str, str] = {}
        self._messages: dict[str, str] = {}
        self._clock = clock
        self.statuses = Statuses(clock)
        self.pulls = Pulls(self, clock)
        self.truncate_trees = False
        self.guarded: tuple[str, ...] = ()
        """The patterns of the branches that people may not move, as a ruleset of GitHub has them."""
        self.token_expires: datetime | None = None
        self.id = 1
        """GitHub's number of the repository."""

    def push(self, files: Mapping[str, bytes], *, branch: str = "main", message: str = "") -> str:
        """Commit exactly these files to a branch; return the commit."""
        old = self._trees.get(self._heads.get(branch, ""), {})
        return self.commit({**dict.fromkeys(old), **files}, branch=branch, message=message)

    def commit(
        self,
        files: Mapping[str, bytes | None],
        *,
        branch: str = "main",
        message: str = "",
        modes: Mapping[str, str] | None = None,
        author: str = _OPERATOR,
    ) -> str:
        """Commit changed files (None removes one) and return the commit; ``modes`` are git's."""
        parent = self._heads.get(branch, "")
        tree = dict(self._trees.get(parent, {}))
        for path, content in files.items():
            if content is None:
                tree.pop(path, None)
            else:
                tree[path] = self._entry(path, content, (modes or {}).get(path))
        commit = _hash(f"{parent}{sorted(tree)}{len(self._trees)}".encode())
        self._trees[commit], self._heads[branch] = tree, commit
        self._parents[commit], self._authors[commit] = parent, author
        self._messages[commit] = message
        return commit

    def _entry(self, path: str, content: bytes, mode: str | None) -> TreeEntry:
        if mode == _SUBMODULE:
            return TreeEntry(path, content.decode(), 0, plain=False)
        sha = blob_id(content)
        self._blobs[sha] = content
        return TreeEntry(path, sha, len(content), plain=mode is None)

    def reset(self, commit: str, branch: str = "main") -> None:
        """Create a branch, or move it as a forced push does."""
        self._heads[branch] = commit

    def merge(self, base: str, head: str) -> str | None:
        """Return the commit that merges two commits, file by file; None when both changed one file."""
        common = next((c for c in self._line(head) if c in set(self._line(base))), "")
        old, ours, theirs = (self._trees.get(c, {}) for c in (common, base, head))
        tree = dict(ours)
        for path in {*ours, *theirs}:
            before, mine, other = (t.get(path) for t in (old, ours, theirs))
            if other in (before, mine):
                continue
            if mine != before:
                return None
            tree.pop(path, None)
            tree |= {path: other} if other else {}
        commit = _hash(f"merge {base} {head}".encode())
        self._trees[commit], self._parents[commit] = tree, base
        self._others[commit] = (head,)
        return commit

    def land(self, base: str, head: str, message: str, *, squash: bool) -> str | None:
        """Return the commit that brings another's changes to a base; None when they conflict."""
        merged = self.merge(base, head)
        if merged is None:
            return None
        commit = _hash(f"land {base} {head} {squash}".encode())
        self._trees[commit], self._parents[commit] = self._trees[merged], base
        self._others[commit] = () if squash else (head,)
        self._messages[commit] = message
        return commit

    def add(self, files: Mapping[str, bytes | None], message: str, parents: Sequence[str]) -> str:
        """Return a commit on no branch: the last of its parents with some files changed."""
        unknown = [parent for parent in parents if parent not in self._trees]
        if unknown:
            raise Dependency(f"no commit {unknown[0]}")
        base = self._trees[parents[-1]]
        absent = [path for path, content in files.items() if content is None and path not in base]
        if absent:
            raise InvalidManifest(f"no file {absent[0]}")
        written = {
            path: self._entry(path, content, None) for path, content in files.items() if content is not None
        }
        tree = {
            path: entry for path, entry in {**base, **written}.items() if files.get(path, b"") is not None
        }
        changed = [written[path].sha if path in written else path for path in files]
        commit = _hash(f"{parents} {message} {' '.join(changed)} {len(self._trees)}".encode())
        self._trees[commit], self._authors[commit] = tree, _OPERATOR
        self._parents[commit], self._others[commit] = parents[0], tuple(parents[1:])
        return commit

    def target(self, ref: str) -> str:
        """Return the commit that a ref points to, by its full name; "" when there is no such branch."""
        return self._heads.get(ref.removeprefix("refs/heads/"), "")

    def heads(self) -> Mapping[str, str]:
        """Return every branch with the commit that it points to."""
        return dict(self._heads)

    def delete(self, branch: str) -> None:
        """Delete a branch."""
        self.head(branch)
        del self._heads[branch]

    def changed_files(self, base: str, head: str) -> Sequence[ChangedFile]:
        """Return what changed from the newest common ancestor of two commits to the second."""
        line = set(self._line(base))
        common = next((commit for commit in self._line(head) if commit in line), "")
        before, after = self._trees.get(common, {}), self._trees[head]
        removed = {path: entry for path, entry in before.items() if path not in after}
        found = [ChangedFile(path, "removed") for path in removed]
        for path, entry in after.items():
            old = next((name for name, gone in removed.items() if gone.sha == entry.sha), "")
            if path not in before and old:
                found.remove(ChangedFile(old, "removed"))
                del removed[old]
                found.append(ChangedFile(path, "renamed", old))
            elif before.get(path) != entry:
                found.append(ChangedFile(path, "modified" if path in before else "added"))
        return found

    def commits_of(self, base: str, head: str) -> Sequence[BranchCommit]:
        """Return the commits that only the second has."""
        line = set(self._line(base))
        return [self._change(commit) for commit in self._line(head) if commit not in line]

    def has(self, commit: str, base: str, head: str) -> bool:
        """Return whether a commit is among those that only the second of two has."""
        return commit in self._line(head) and commit not in self._line(base)

    def _line(self, commit: str) -> list[str]:
        """Return a commit and its ancestors, the nearest ones first."""
        line, next_ones = dict[str, None](), [commit]
        while next_ones:
            line |= dict.fromkeys(following for following in next_ones if following)
            parents = (
                (self._parents.get(following, ""), *self._others.get(following, ()))
                for following in next_ones
            )
            next_ones = [parent for some in parents for parent in some if parent and parent not in line]
        return list(line)

    def _first_line(self, commit: str) -> list[str]:
        """Return a commit and its first parents, newest first."""
        line = []
        while commit:
            line.append(commit)
            commit = self._parents.get(commit, "")
        return line

    def head(self, branch: str) -> str:
        """Return the commit that the branch points to."""
        if branch not in self._heads:
            raise Dependency(f"no branch {branch}")
        return self._heads[branch]

    def read_head(self, branch: str) -> BranchHead:
        """Return the commit that the branch points to, and the time."""
        at = self._clock().replace(microsecond=0)
        return BranchHead(self.head(branch), at, self.id, self.token_expires)

    def is_descendant(self, commit: str, earlier: str) -> bool:
        """Return whether a commit comes after another, or is it."""
        return earlier in self._line(commit)

    def changes(self, commit: str, path: str, most: int) -> Sequence[BranchCommit]:
        """Return the newest commits that changed something at or below a path."""
        if commit not in self._trees:
            raise Dependency(f"no commit {commit}")
        found = (
            self._change(ancestor)
            for ancestor in self._first_line(commit)
            if not path or self._below(ancestor, path) != self._below(self._parents.get(ancestor, ""), path)
        )
        return [*islice(found, most)]

    def changes_since(self, commit: str, earlier: str, most: int) -> Sequence[BranchCommit] | None:
        """Return the commits that an earlier one does not have; None for more than ``most``."""
        if not {commit, earlier} <= self._trees.keys() or not {*self._line(commit)} & {*self._line(earlier)}:
            raise Dependency(f"no commit {commit}, or {earlier}")
        found = self.commits_of(earlier, commit)
        return None if len(found) > most else found

    def _change(self, commit: str) -> BranchCommit:
        author = self._authors.get(commit, _OPERATOR).lower()
        parents = filter(None, (self._parents.get(commit), *self._others.get(commit, ())))
        return BranchCommit(commit, author, _OPERATOR, self._messages.get(commit, ""), tuple(parents))

    def files_between(self, commit: str, earlier: str) -> Sequence[str]:
        """Return the paths of the files that differ between a commit and an ancestor."""
        if not {commit, earlier} <= self._trees.keys():
            raise Dependency(f"no commit {commit}, or {earlier}")
        return sorted(dict(self._trees[commit].items() ^ self._trees[earlier].items()))

    def _below(self, commit: str, path: str) -> dict[str, TreeEntry]:
        tree = self._trees.get(commit, {})
        return {name: e for name, e in tree.items() if not path or f"{name}/".startswith(f"{path}/")}

    def tree(self, commit: str) -> Sequence[TreeEntry]:
        """Return every file at a commit."""
        if commit not in self._trees:
            raise Dependency(f"no tree {commit}")
        if self.truncate_trees:
            raise Unavailable(f"the tree of {commit} is truncated")
        return list(self._trees[commit].values())

    def blob(self, sha: str) -> bytes:
        """Return a file's content."""
        if not _SHA.match(sha):
            raise InvalidManifest(f"{sha!r} is not a blob id")
        if sha not in self._blobs:
            raise Dependency(f"no blob {sha}")
        return self._blobs[sha]

    def archive(self, commit: str, paths: Collection[str]) -> Mapping[str, bytes]:
        """Return the plain files at these paths of a commit."""
        if commit not in self._trees:
            raise Dependency(f"no commit {commit}")
        tree = self._trees[commit]
        wanted = [tree[path] for path in paths if path in tree and tree[path].plain]
        return {entry.path: self._blobs[entry.sha] for entry in wanted}

    def set_status(self, commit: str, status: CommitStatus) -> None:
        """Write a commit status by GitHub's rules."""
        if commit not in self._trees:
            raise InvalidManifest(f"No commit found for SHA: {commit}")
        self.statuses.add(commit, status)

    def files(self, commit: str) -> Mapping[str, bytes]:
        """Return every file at a commit with its content."""
        return {path: self._blobs[entry.sha] for path, entry in self._trees[commit].items()}


def _hash(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()
