"""The source-controller of the local Flux: GitRepository objects and what was fetched for them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from localcloud.flux.flux_conditions import NotReady, stamp, with_conditions
from localcloud.kubernetes.world.kinds import BUILT_IN
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, Object

API = "source.toolkit.fluxcd.io/v1"
_SECRET = next(kind for kind in BUILT_IN if kind.kind == "Secret")
_MANAGER = "gotk-source-controller"


@dataclass(frozen=True)
class Source:
    """A branch of a git repository: the commit it points to, and a way to read all files there.

    ``accepts`` checks user name and password; None: no authentication.
    """

    revision: str
    files: Callable[[], Mapping[str, bytes]]
    accepts: Callable[[str, str], bool] | None = None


ReadSource = Callable[[str, str], Source | None]
"""Returns what is at (URL, branch), or None when there is no such repository or branch."""


class SourceController:
    """Fetches the GitRepository objects of one cluster."""

    def __init__(
        self, world: KubernetesWorld, read_source: ReadSource, clock: Callable[[], datetime]
    ) -> None:
        self._world, self._read, self._clock = world, read_source, clock
        self._artifacts: dict[str, Source] = {}

    def artifact(self, repository: Object) -> Source | None:
        """Return what was last fetched for a GitRepository."""
        return self._artifacts.get(repository["metadata"]["uid"])

    def reconcile(self) -> None:
        """Reconcile every GitRepository."""
        kind = self._world.kind(API, "GitRepository")
        if kind is None:
            return
        for repository in self._world.list(kind)[0]:
            if not (repository.get("spec") or {}).get("suspend"):
                metadata = repository["metadata"]
                status = self._status(repository)
                at = At(kind, metadata["name"], metadata["namespace"])
                self._world.set_status(at, status, manager=_MANAGER)

    def _status(self, repository: Object) -> Mapping[str, object]:
        status = dict(repository.get("status") or {})
        now = self._clock()
        try:
            branch, source = self._fetch(repository)
        except NotReady as problem:
            found = ("Ready", problem.status, problem.reason, problem.message)
            stored = (
                [("ArtifactInStorage", "True", "Succeeded", "stored artifact")]
                if "artifact" in status
                else []
            )
            return with_conditions(repository, status, [found, *stored], now)
        self._artifacts[repository["metadata"]["uid"]] = source
        revision = f"{branch}@sha1:{source.revision}"
        if (status.get("artifact") or {}).get("revision") != revision:
            path = f"gitrepository/{repository['metadata']['namespace']}/{repository['metadata']['name']}"
            url = f"http://source-controller.flux-system.svc.cluster.local./{path}/{source.revision}.tar.gz"
            status["artifact"] = {
                "revision": revision,
                "path": f"{path}/{source.revision}.tar.gz",
                "url": url,
                "digest": f"sha256:{hashlib.sha256(revision.encode()).hexdigest()}",
                "lastUpdateTime": stamp(now),
            }
        message = f"stored artifact for revision '{revision}'"
        found = ("Ready", "True", "Succeeded", message)
        return with_conditions(repository, status, [found, ("ArtifactInStorage", *found[1:])], now)

    def _fetch(self, repository: Object) -> tuple[str, Source]:
        spec = repository.get("spec") or {}
        url = spec.get("url", "")
        ref = spec.get("ref") or {}
        other = [name for name in ("tag", "semver", "commit", "name") if ref.get(name)]
        if other:
            raise NotReady("GitOperationFailed", f"this Flux follows branches only, not {other[0]}")
        branch = ref.get("branch", "master")
        user, password = self._credentials(repository)
        source = self._read(url, branch)
        failed = "failed to checkout and determine revision: unable to clone"
        if source is None:
            message = f"{failed} '{url}': repository or branch '{branch}' not found"
            raise NotReady("GitOperationFailed", message)
        if source.accepts is not None and not source.accepts(user, password):
            raise NotReady("GitOperationFailed", f"{failed} '{url}': authentication required")
        return branch, source

    def _credentials(self, repository: Object) -> tuple[str, str]:
        name = ((repository.get("spec") or {}).get("secretRef") or {}).get("name")
        if not name:
            return "", ""
        namespace = repository["metadata"]["namespace"]
        secret = self._world.find(At(_SECRET, name, namespace))
        if secret is None:
            message = f"failed to get secret '{namespace}/{name}': secrets \"{name}\" not found"
            raise NotReady("AuthenticationFailed", message)
        data = secret.get("data") or {}
        if "bearerToken" in data:
            return "", _decoded(data["bearerToken"])
        return _decoded(data.get("username", "")), _decoded(data.get("password", ""))


def _decoded(value: str) -> str:
    return base64.b64decode(value).decode(errors="replace")
