"""The source-controller of the local Flux: GitRepository objects and what was fetched for them.

Source of conditions, reasons and messages: ``fluxcd/source-controller``
(``internal/controller/gitrepository_controller.go``), its git library, and go-git, in v1.7.3.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from localcloud.flux.flux_conditions import (
    Condition,
    NotReady,
    condition,
    handled,
    kept,
    stamp,
    with_conditions,
)
from localcloud.flux.notification_controller import FluxEvent
from localcloud.flux.schedule import Schedule, seconds_of
from localcloud.kubernetes.world.api_errors import ApiError
from localcloud.kubernetes.world.kinds import BUILT_IN
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, Object, Write
from localcloud.kubernetes.world.writes.patches import MERGE

_GROUP = "source.toolkit.fluxcd.io"
API = f"{_GROUP}/v1"
FINALIZER = "finalizers.fluxcd.io"
_SECRET = next(kind for kind in BUILT_IN if kind.kind == "Secret")
_MANAGER = "source-controller"
STORAGE = "http://source-controller.flux-system.svc.cluster.local."


@dataclass(frozen=True)
class Source:
    """A branch of a git repository: the commit it points to, and a way to read all files there.

    ``revision`` is "" when the repository has no such branch. ``accepts`` checks user name and password;
    None: no authentication.
    """

    revision: str
    files: Callable[[], Mapping[str, bytes]]
    accepts: Callable[[str, str], bool] | None = None


ReadSource = Callable[[str, str], Source | None]
"""Returns what is at (URL, branch), or None when there is no such repository."""


class SourceController:
    """Fetches the GitRepository objects of one cluster."""

    def __init__(
        self,
        world: KubernetesWorld,
        read_source: ReadSource,
        clock: Callable[[], datetime],
        tell: Callable[[FluxEvent], None] = lambda _: None,
    ) -> None:
        self._world, self._read, self._clock, self._tell = world, read_source, clock, tell
        self._artifacts: dict[str, Source] = {}
        self.schedule = Schedule(clock)

    def artifact(self, repository: Object) -> Source | None:
        """Return what was last fetched for a GitRepository."""
        return self._artifacts.get(repository["metadata"]["uid"])

    def reconcile(self) -> None:
        """Reconcile every GitRepository that is due."""
        kind = self._world.kind(API, "GitRepository")
        if kind is None:
            return
        for repository in self._world.list(kind)[0]:
            metadata = repository["metadata"]
            if self.schedule.is_due(repository):
                with suppress(ApiError):  # another writer was faster: the next round continues
                    self._one(At(kind, metadata["name"], metadata["namespace"]), repository)

    def _one(self, at: At, repository: Object) -> None:
        metadata = repository["metadata"]
        finalizers = metadata.get("finalizers") or []
        if "deletionTimestamp" in metadata:
            left = [name for name in finalizers if name != FINALIZER]
            self._artifacts.pop(metadata["uid"], None)
            self.schedule.forget(metadata["uid"])
            if left != finalizers:
                self._patch(at, {"metadata": {"finalizers": left}})
            return
        if FINALIZER not in finalizers:
            repository = self._patch(at, {"metadata": {"finalizers": [*finalizers, FINALIZER]}})
        spec = repository.get("spec") or {}
        interval = seconds_of(spec, "interval", 60.0)
        status = dict(repository.get("status") or {})
        if spec.get("suspend"):
            self.schedule.ran(repository, interval)
            self._world.set_status(at, handled(repository, status), manager=_MANAGER)
            return
        try:
            found = self._fetched(repository, status)
            self.schedule.ran(repository, interval)
        except NotReady as problem:
            self.schedule.failed(repository)
            found = self._failed(repository, problem)
            self._tell(FluxEvent(repository, "error", problem.reason, problem.message, _MANAGER))
        whole = with_conditions(repository, status, found, self._clock())
        self._world.set_status(at, whole, manager=_MANAGER)

    def _patch(self, at: At, patch: Mapping[str, Any]) -> Object:
        return self._world.patch(at, patch, MERGE, Write(manager=_MANAGER))

    def _fetched(self, repository: Object, status: dict[str, Any]) -> Sequence[Condition]:
        branch, source = self._fetch(repository)
        metadata = repository["metadata"]
        self._artifacts[metadata["uid"]] = source
        revision = f"{branch}@sha1:{source.revision}"
        if (status.get("artifact") or {}).get("revision") != revision:
            path = f"gitrepository/{metadata['namespace']}/{metadata['name']}/{source.revision}.tar.gz"
            status["artifact"] = {
                "digest": f"sha256:{hashlib.sha256(source.revision.encode()).hexdigest()}",
                "lastUpdateTime": stamp(self._clock()),
                "path": path,
                "revision": revision,
                "size": sum(len(content) for content in source.files().values()),
                "url": f"{STORAGE}/{path}",
            }
            stored, about = (
                f"stored artifact for commit '{source.revision}'",
                {f"{_GROUP}/revision": revision},
            )
            self._tell(FluxEvent(repository, "info", "NewArtifact", stored, _MANAGER, about))
        message = f"stored artifact for revision '{revision}'"
        return [
            Condition("Ready", "True", "Succeeded", message),
            Condition("ArtifactInStorage", "True", "Succeeded", message),
        ]

    def _failed(self, repository: Object, problem: NotReady) -> Sequence[Condition]:
        stored = condition(repository, "ArtifactInStorage")
        observed = (repository.get("status") or {}).get("observedGeneration", -1)
        generation = repository["metadata"]["generation"]
        progress = "reconciliation in progress" if stored else "building artifact"
        if stored and observed != generation:
            progress = f"processing object: new generation {observed} -> {generation}"
        return [
            Condition("Reconciling", "True", "ProgressingWithRetry", progress),
            Condition("Ready", "False", problem.reason, problem.message),
            Condition("FetchFailed", "True", problem.reason, problem.message),
            *([kept(stored)] if stored else []),
        ]

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
        failed = f"failed to checkout and determine revision: unable to clone '{url}'"
        if source is None:
            raise NotReady("GitOperationFailed", f"{failed}: repository not found: Repository not found.")
        if source.accepts is not None and not source.accepts(user, password):
            raise NotReady("GitOperationFailed", f"{failed}: authentication required")
        if not source.revision:
            missing = f'couldn\'t find remote ref "refs/heads/{branch}"'
            raise NotReady("GitOperationFailed", f"{failed}: {missing}")
        return branch, source

    def _credentials(self, repository: Object) -> tuple[str, str]:
        name = ((repository.get("spec") or {}).get("secretRef") or {}).get("name")
        if not name:
            return "", ""
        namespace = repository["metadata"]["namespace"]
        secret = self._world.find(At(_SECRET, name, namespace))
        if secret is None:
            failed = f"failed to get secret '{namespace}/{name}'"
            raise NotReady("AuthenticationFailed", f'{failed}: {failed}: secrets "{name}" not found')
        data = {key: _decoded(value) for key, value in (secret.get("data") or {}).items()}
        if data.get("bearerToken"):
            return "", data["bearerToken"]
        if data.get("password") and not data.get("username"):
            transport = urlsplit(str((repository.get("spec") or {}).get("url", ""))).scheme
            problem = f"invalid '{transport}' auth option: 'password' requires 'username' to be set"
            raise NotReady("AuthenticationFailed", f"failed to configure authentication options: {problem}")
        return data.get("username", ""), data.get("password", "")


def _decoded(value: str) -> str:
    return base64.b64decode(value).decode(errors="replace")
