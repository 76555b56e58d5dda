"""Branches of git repositories.

Source of messages: ``internal/controller/gitrepository_controller.go`` of ``fluxcd/source-controller``, its
git library, and go-git, in v1.7.3.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from localcloud.flux.flux_conditions import ObjectNotReady
from localcloud.flux.sources.fetched import (
    SourceArtifact,
    SourceLogin,
    SourceRevision,
    identity_of,
    secret_of,
)
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import Object

ReadSource = Callable[[str, str], SourceRevision | None]
"""Returns what is at (URL, branch), or None when there is no such repository."""


def fetch_branch(world: KubernetesWorld, read: ReadSource, value: Object) -> SourceArtifact:
    """Return the branch that a GitRepository names; raise NotReady."""
    spec = value.get("spec") or {}
    url, ref = spec.get("url", ""), spec.get("ref") or {}
    other = [name for name in ("tag", "semver", "commit", "name") if ref.get(name)]
    if other:
        raise ObjectNotReady("GitOperationFailed", f"this Flux follows branches only, not {other[0]}")
    if url.startswith("ssh:"):
        raise ObjectNotReady("GitOperationFailed", "this Flux clones over HTTPS only, not over SSH")
    branch = ref.get("branch", "master")
    login = _login(world, value)
    source = read(url, branch)
    failed = f"failed to checkout and determine revision: unable to clone '{url}'"
    if source is None:
        raise ObjectNotReady("GitOperationFailed", f"{failed}: repository not found: Repository not found.")
    if source.accepts is not None and not source.accepts(login.user, login.password):
        raise ObjectNotReady("GitOperationFailed", f"{failed}: authentication required")
    if not source.revision:
        missing = f'couldn\'t find remote ref "refs/heads/{branch}"'
        raise ObjectNotReady("GitOperationFailed", f"{failed}: {missing}")
    revision = f"{branch}@sha1:{source.revision}"
    stored = f"stored artifact for revision '{revision}'"
    return SourceArtifact(source, revision, stored, f"stored artifact for commit '{source.revision}'")


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
