"""Branches of git repositories.

Source of messages: ``internal/controller/gitrepository_controller.go`` of ``fluxcd/source-controller``, its
git library, and go-git, in v1.7.3.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from localcloud.flux.flux_conditions import NotReady
from localcloud.flux.sources.fetched import Fetched, Login, Source, identity_of, secret_of
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import Object

ReadSource = Callable[[str, str], Source | None]
"""Returns what is at (URL, branch or commit), or None when there is no such repository."""


def fetch_branch(world: KubernetesWorld, read: ReadSource, value: Object) -> Fetched:
    """Return the branch that a GitRepository names; raise NotReady."""
    spec = value.get("spec") or {}
    url, ref = spec.get("url", ""), spec.get("ref") or {}
    other = [name for name in ("tag", "semver", "name") if ref.get(name)]
    if other:
        raise NotReady("GitOperationFailed", f"this Flux follows branches and commits, not {other[0]}")
    if url.startswith("ssh:"):
        raise NotReady("GitOperationFailed", "this Flux clones over HTTPS only, not over SSH")
    branch, commit = ref.get("branch", "master"), ref.get("commit", "")
    login = _login(world, value)
    source = read(url, commit or branch)
    failed = f"failed to checkout and determine revision: unable to clone '{url}'"
    if source is None:
        raise NotReady("GitOperationFailed", f"{failed}: repository not found: Repository not found.")
    if source.accepts is not None and not source.accepts(login.user, login.password):
        raise NotReady("GitOperationFailed", f"{failed}: authentication required")
    if not source.revision:
        missing = f'couldn\'t find remote ref "refs/heads/{branch}"' if not commit else "object not found"
        raise NotReady("GitOperationFailed", f"{failed}: {missing}")
    revision = f"{branch}@sha1:{source.revision}"
    stored = f"stored artifact for revision '{revision}'"
    return Fetched(source, revision, stored, f"stored artifact for commit '{source.revision}'")


def _login(world: KubernetesWorld, value: Object) -> Login:
    spec = value.get("spec") or {}
    if spec.get("provider") == "azure":
        return Login(client_id=identity_of(world, value))
    data = secret_of(world, value) or {}
    if data.get("bearerToken"):
        return Login(password=data["bearerToken"])
    if data.get("password") and not data.get("username"):
        transport = urlsplit(str(spec.get("url", ""))).scheme
        problem = f"invalid '{transport}' auth option: 'password' requires 'username' to be set"
        raise NotReady("AuthenticationFailed", f"failed to configure authentication options: {problem}")
    return Login(data.get("username", ""), data.get("password", ""))
