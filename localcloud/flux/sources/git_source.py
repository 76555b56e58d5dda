"""Git repositories: branches, tags, refs by name, and commits.

Source of messages and of what Flux fetches: ``internal/controller/gitrepository_controller.go`` of
``fluxcd/source-controller`` v1.7.3, ``git/gogit/clone.go`` of ``fluxcd/pkg``, and go-git.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, Protocol
from urllib.parse import urlsplit

from dulwich.errors import NotGitRepository

from localcloud.flux.flux_conditions import ObjectNotReady
from localcloud.flux.sources.fetched import (
    SourceArtifact,
    SourceLogin,
    SourceRevision,
    identity_of,
    secret_of,
)
from localcloud.flux.sources.ssh_source import SshRefusal, SshRepository
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import Object

_HEADS, _TAGS = "refs/heads/", "refs/tags/"


@dataclass(frozen=True)
class GitRef:
    """What is read of a repository: the commit of a ref, by its full name, or a commit that a ref reaches.

    A commit without a name is one that any branch reaches.
    """

    name: str = ""
    commit: str = ""


ReadSource = Callable[[str, GitRef], SourceRevision | None]
"""Returns what is at (URL, ref), or None when there is no such repository."""


class RefHistory(Protocol):
    """What of a repository says to which commit a ref leads."""

    def target(self, ref: str) -> str:
        """Return the commit that a ref points to, by its full name; "" when there is no such ref."""
        ...

    def heads(self) -> Mapping[str, str]:
        """Return every branch with its commit."""
        ...

    def is_descendant(self, commit: str, earlier: str) -> bool:
        """Return whether a commit comes after another, or is it."""
        ...


def commit_of(history: RefHistory, ref: GitRef) -> str:
    """Return the commit that is read, "" when there is none."""
    if not ref.commit:
        return history.target(ref.name)
    tips = [history.target(ref.name)] if ref.name else [*history.heads().values()]
    return ref.commit if any(tip and history.is_descendant(tip, ref.commit) for tip in tips) else ""


def fetch_repository(world: KubernetesWorld, read: ReadSource, value: Object) -> SourceArtifact:
    """Return what a GitRepository names; raise NotReady."""
    spec = value.get("spec") or {}
    url, ref = spec.get("url", ""), spec.get("ref") or {}
    if ref.get("semver") and not (ref.get("commit") or ref.get("name") or ref.get("tag")):
        raise ObjectNotReady("GitOperationFailed", "this Flux reads no ranges of tags (spec.ref.semver)")
    over_ssh = url.startswith("ssh:")
    read = _over_ssh(SshRepository(url, secret_of(world, value) or {})) if over_ssh else read
    stored = ((value.get("status") or {}).get("artifact") or {}).get("revision", "")
    clone = _Clone(url, read, SourceLogin() if over_ssh else _login(world, value), stored)
    source, revision = clone.fetched(ref)
    message = f"stored artifact for revision '{revision}'"
    return SourceArtifact(source, revision, message, f"stored artifact for commit '{source.revision}'")


@dataclass(frozen=True)
class _Clone:
    """One reconciliation of a repository; ``stored`` is the revision of the artifact, "" for none."""

    url: str
    read: ReadSource
    login: SourceLogin
    stored: str

    def fetched(self, ref: Mapping[str, Any]) -> tuple[SourceRevision, str]:
        """Return what a ``spec.ref`` leads to, and its revision: a commit counts first, a branch last."""
        if ref.get("commit"):
            source = self._commit(ref["commit"], ref.get("branch", ""))
            name = ref.get("name") or ref.get("branch")  # whatever the name points to
            return source, f"{name}@sha1:{source.revision}" if name else f"sha1:{source.revision}"
        if ref.get("name"):
            return self._named(ref["name"])
        short = ref.get("tag") or ref.get("branch") or "master"
        source = self._at(f"{_TAGS if ref.get('tag') else _HEADS}{short}", listed=bool(self.stored))
        return source, f"{short}@sha1:{source.revision}"

    def _commit(self, commit: str, branch: str) -> SourceRevision:
        if branch:
            self._at(f"{_HEADS}{branch}")
        return self._reached(commit, f"{_HEADS}{branch}" if branch else "")

    def _named(self, name: str) -> tuple[SourceRevision, str]:
        """Return a ref by its full name; one that is no branch and no tag is cloned by its commit."""
        source = self._read(GitRef(name), listed=True)
        if not source.revision:
            _fail(f"unable to resolve ref '{name}' to a specific commit")
        revision = f"{name}@sha1:{source.revision}"
        if not name.startswith((_HEADS, _TAGS)) and revision != self.stored:
            source = self._reached(source.revision, "")
        return source, revision

    def _at(self, name: str, *, listed: bool = False) -> SourceRevision:
        source = self._read(GitRef(name), listed=listed)
        if not source.revision:
            _fail(f"unable to clone '{self.url}': couldn't find remote ref \"{name}\"")
        return source

    def _reached(self, commit: str, name: str) -> SourceRevision:
        source = self._read(GitRef(name, commit))
        if not source.revision:
            _fail(f"unable to resolve commit object for '{commit}': object not found")
        return source

    def _read(self, ref: GitRef, *, listed: bool = False) -> SourceRevision:
        """Return what a ref leads to; ``listed``: the refs are asked for before anything is cloned."""
        failed = f"unable to {'list remote for' if listed else 'clone'} '{self.url}'"
        try:
            source = self.read(self.url, ref)
        except SshRefusal as refusal:
            _fail(f"{failed}: {refusal}")
        except NotGitRepository:
            _fail(f"unable to clone: repository not found: git repository: '{self.url}'")
        if source is None:
            _fail(f"{failed}: repository not found: Repository not found.")
        if source.accepts is not None and not source.accepts(self.login.user, self.login.password):
            _fail(f"{failed}: authentication required")
        return source


def _over_ssh(repository: SshRepository) -> ReadSource:
    """Return what reads a repository over SSH, each time with a new connection, as Flux does."""

    def read(_url: str, ref: GitRef) -> SourceRevision:
        repository.fetch()
        commit = commit_of(repository, ref)
        return SourceRevision(commit, partial(repository.files, commit))

    return read


def _fail(problem: str) -> NoReturn:
    raise ObjectNotReady("GitOperationFailed", f"failed to checkout and determine revision: {problem}")


def _login(world: KubernetesWorld, value: Object) -> SourceLogin:
    spec = value.get("spec") or {}
    if spec.get("provider") == "azure":
        return SourceLogin(client_id=identity_of(world, value))
    data = secret_of(world, value) or {}
    if data.get("bearerToken"):
        return SourceLogin(password=data["bearerToken"])
    if data.get("password") and not data.get("username"):
        transport = urlsplit(str(spec.get("url", ""))).scheme
        problem = f"invalid '{transport}' auth option: 'password' requires 'username' to be set"
        raise ObjectNotReady("AuthenticationFailed", f"failed to configure authentication options: {problem}")
    return SourceLogin(data.get("username", ""), data.get("password", ""))
