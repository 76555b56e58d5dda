"""Branches of our own on a git server that lets the credential push: what is pushed is checked by the
server.

A push names the commit that each branch had. The server refuses it where the branch has another one by then
(git-receive-pack, "old value"), so a branch is compared and swapped in one step. A commit waits for its
branch under a reference of its own, which is no branch: nobody sees it, and it starts no pipeline.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from dulwich.client import SendPackResult
from dulwich.errors import SendPackError
from dulwich.object_store import commit_tree_changes, tree_lookup_path
from dulwich.objects import ZERO_SHA, Blob, Commit, ObjectID
from dulwich.refs import Ref

from shared.adapters.git.host import GitServerHost
from shared.adapters.git.transfer import git_errors
from shared.cluster.failures.errors import Conflict, InvalidManifest, Unauthorized, Unavailable
from shared.ports.pull_requests import NewCommit

_WAITING = "refs/roadstead/"
_RACED = (
    *("failed to update ref", "failed to lock", "reference already exists", "cannot lock ref"),
    *("tf401028", "already been updated"),
)
"""What git (builtin/receive-pack.c) and Azure DevOps say of a reference that was moved meanwhile."""


class WritableGit(GitServerHost):
    """The repository at an address of a git server, which the credential may push to.

    ``to_write`` is what a person does so that it may, as the remedy of a refusal.
    """

    to_write: str

    @contextmanager
    def _permitted(self) -> Iterator[None]:
        try:
            yield
        except Unauthorized as error:
            raise Unauthorized(f"{error}; {self.to_write}", request_id=error.request_id) from error

    def tip(self, branch: str) -> str | None:
        """Return the commit that a branch points to, None when there is no such branch."""
        with self._lock:
            return self._server.references().get(branch)

    def branches(self, prefix: str) -> Mapping[str, str]:
        """Return the branches with a prefix; one request for all."""
        with self._lock:
            found = self._server.references()
        return {name: commit for name, commit in found.items() if name.startswith(prefix)}

    def new_commit(self, commit: NewCommit, person: str, at: int) -> str:
        """Create a commit of a person, "Name <address>", at a time in seconds, and return its id."""
        name = self._made(commit, person, at)
        with self._permitted():
            self._push({f"{_WAITING}{name}": (None, name)})
        return name

    def _made(self, commit: NewCommit, person: str, at: int) -> str:
        """Create a commit in the folder of this instance."""
        parents = [self._commit(parent) for parent in commit.parents]
        with self._reading():
            made = Commit()
            made.tree = self._changed_tree(parents[-1].tree, commit.files)
            made.parents = [parent.id for parent in parents]
            made.author = made.committer = person.encode()
            made.author_time = made.commit_time = at
            made.author_timezone = made.commit_timezone = 0
            made.message = commit.message.encode()
            self._store.add_object(made)
        return made.id.decode()

    def _changed_tree(self, tree: ObjectID, files: Mapping[str, bytes | None]) -> ObjectID:
        changes: list[tuple[bytes, int | None, ObjectID | None]] = []
        for path, content in files.items():
            if content is None:
                self._require_file(tree, path)
                changes.append((path.encode(), None, None))
                continue
            blob = Blob.from_string(content)
            self._store.add_object(blob)
            changes.append((path.encode(), stat.S_IFREG | 0o644, blob.id))
        return commit_tree_changes(self._store, tree, changes)

    def _require_file(self, tree: ObjectID, path: str) -> None:
        try:
            tree_lookup_path(self._store.__getitem__, tree, path.encode())
        except (KeyError, ValueError):
            raise InvalidManifest(f"no file {path} to remove") from None

    def move_branch(self, branch: str, tip: str | None, commit: str) -> None:
        """Let a branch point to a commit, if it still has its ``tip``; raise Conflict otherwise."""
        self._commit(commit)
        if tip is not None and not self.is_descendant(commit, tip):
            raise Conflict(f"{commit} does not come after {tip}, so the branch {branch} does not move to it")
        with self._permitted():
            self._push({f"refs/heads/{branch}": (tip, commit), f"{_WAITING}{commit}": (commit, None)})

    def _push(self, moves: Mapping[str, tuple[str | None, str | None]]) -> None:
        """Move references, each from its old commit to a new one; None for no reference.

        One that only waits is no reason to fail: it may be gone.
        """
        new: dict[Ref, ObjectID] = {}

        def wanted(found: Mapping[Ref, ObjectID]) -> dict[Ref, ObjectID]:
            for name, (old, commit) in moves.items():
                ref = Ref(name.encode())
                known = found[ref].decode() if ref in found else None
                waits = name.startswith(_WAITING)
                if known == commit and (waits or old is not None):
                    continue
                if known != old and not waits:
                    raise Conflict(f"{name} is at {known or 'no commit'} by now, and not at {old or 'none'}")
                new[ref] = ObjectID(commit.encode()) if commit else ZERO_SHA
            return new

        with self._lock, git_errors():
            try:
                result = self._server.send_pack(self._server.path, wanted, self._store.generate_pack_data)
            except SendPackError as error:
                raise Conflict(f"the git server refuses the commits: {error}") from None
        _require_moved(new, result)


def _require_moved(new: Mapping[Ref, ObjectID], result: SendPackResult) -> None:
    """Raise what the server says of a reference that did not move; Unavailable where it does not say."""
    said: Mapping[bytes, str | None] = result.ref_status or {}
    for ref, commit in new.items():
        if said.get(ref, "") is None or (commit == ZERO_SHA and ref.startswith(_WAITING.encode())):
            continue
        name, why = ref.decode(errors="replace"), str(said.get(ref, ""))
        if not why:
            raise Unavailable(f"the git server did not say whether it moved {name}")
        if any(text in why.lower() for text in _RACED):
            raise Conflict(f"{name} did not move: {why}")
        raise Unauthorized(f"the git server refuses to move {name}: {why}")
