"""The kustomize-controller of the local Flux: it builds, applies, waits and prunes."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from localcloud.flux.flux_conditions import NotReady, is_ready, requested, with_conditions
from localcloud.flux.inventory import apply_all, entry, prune, unhealthy
from localcloud.flux.kustomize_build import build, substituted
from localcloud.flux.source_controller import API as SOURCE_API
from localcloud.flux.source_controller import Source
from localcloud.kubernetes.world.api_errors import ApiError
from localcloud.kubernetes.world.kinds import BUILT_IN, Kind
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, Object, Write
from localcloud.kubernetes.world.patches import MERGE

API = "kustomize.toolkit.fluxcd.io/v1"
FINALIZER = "finalizers.fluxcd.io"
_MANAGER = "gotk-kustomize-controller"
_BUILT_IN = {kind.kind: kind for kind in BUILT_IN}


class KustomizeController:
    """Applies the Kustomization objects of one cluster; ``artifact`` gives what a source holds."""

    def __init__(
        self,
        world: KubernetesWorld,
        artifact: Callable[[Object], Source | None],
        clock: Callable[[], datetime],
    ) -> None:
        self._world, self._artifact, self._clock = world, artifact, clock
        self._done: dict[str, tuple[object, datetime]] = {}

    def reconcile(self) -> None:
        """Reconcile every Kustomization."""
        kind = self._world.kind(API, "Kustomization")
        if kind is None:
            return
        for value in self._world.list(kind)[0]:
            at = At(kind, value["metadata"]["name"], value["metadata"]["namespace"])
            with suppress(ApiError):  # another writer was faster: the next round continues
                if "deletionTimestamp" in value["metadata"]:
                    self._finalize(at, value)
                elif not (value.get("spec") or {}).get("suspend"):
                    self._one(at, value)

    def _one(self, at: At, value: Object) -> None:
        if FINALIZER not in (value["metadata"].get("finalizers") or ()):
            finalizers = [*(value["metadata"].get("finalizers") or ()), FINALIZER]
            patch = {"metadata": {"finalizers": finalizers}}
            value = self._world.patch(at, patch, MERGE, Write(manager=_MANAGER))
        status = dict(value.get("status") or {})
        try:
            self._check_dependencies(at, value)
            source, revision = self._source(at, value)
            if self._is_done(value, revision):
                return
            status["lastAttemptedRevision"] = revision
            self._bring(at, value, source, status)
            status["lastAppliedRevision"] = revision
        except NotReady as problem:
            found = ("Ready", problem.status, problem.reason, problem.message)
        else:
            self._done[value["metadata"]["uid"]] = (self._state(value, revision), self._clock())
            found = ("Ready", "True", "ReconciliationSucceeded", f"Applied revision: {revision}")
        whole = with_conditions(value, status, [found], self._clock())
        self._world.set_status(at, whole, manager=_MANAGER)

    def _bring(self, at: At, value: Object, source: Source, status: dict[str, Any]) -> None:
        spec = value["spec"]
        objects = build(source.files(), spec.get("path", "./"))
        variables = self._variables(at, spec.get("postBuild") or {})
        if variables is not None:
            objects = [substituted(item, variables) for item in objects]
        target = spec.get("targetNamespace")
        before = (status.get("inventory") or {}).get("entries") or []
        refs = apply_all(self._world, [_marked(item, at, target) for item in objects])
        status["inventory"] = {"entries": [entry(ref) for ref in refs]}
        if spec.get("prune"):
            prune(self._world, before, status["inventory"]["entries"])
        if spec.get("wait"):
            waiting = unhealthy(self._world, refs)
            if waiting:
                text = f"health check: waiting for {', '.join(waiting[:5])}"
                raise NotReady("Progressing", text, status="Unknown")

    def _state(self, value: Object, revision: str) -> object:
        return (value["metadata"]["generation"], revision, requested(value))

    def _is_done(self, value: Object, revision: str) -> bool:
        state, when = self._done.get(value["metadata"]["uid"], (None, self._clock()))
        fresh = self._clock() - when < _duration((value.get("spec") or {}).get("interval", "10m"))
        return fresh and is_ready(value) and state == self._state(value, revision)

    def _check_dependencies(self, at: At, value: Object) -> None:
        for needed in (value.get("spec") or {}).get("dependsOn") or ():
            namespace = needed.get("namespace", at.namespace)
            found = self._world.find(At(at.kind, needed["name"], namespace))
            if found is None or not is_ready(found):
                raise NotReady(
                    "DependencyNotReady", f"dependency '{namespace}/{needed['name']}' is not ready"
                )

    def _source(self, at: At, value: Object) -> tuple[Source, str]:
        ref = (value.get("spec") or {}).get("sourceRef") or {}
        namespace, name = ref.get("namespace", at.namespace), ref.get("name", "")
        kind = self._world.kind(SOURCE_API, str(ref.get("kind")))
        found = self._world.find(At(kind, name, namespace)) if kind is not None else None
        if found is None:
            raise NotReady("ArtifactFailed", f"{ref.get('kind')} '{namespace}/{name}' not found")
        source = self._artifact(found)
        revision = ((found.get("status") or {}).get("artifact") or {}).get("revision")
        if source is None or not revision:
            raise NotReady("ArtifactFailed", "Source artifact not found, retrying in 30s")
        return source, revision

    def _variables(self, at: At, post_build: Mapping[str, Any]) -> Mapping[str, str] | None:
        if not post_build:
            return None
        found: dict[str, str] = {}
        for ref in post_build.get("substituteFrom") or ():
            value = self._world.find(At(_BUILT_IN[ref["kind"]], ref["name"], at.namespace))
            if value is None and not ref.get("optional"):
                text = f"substitute from '{ref['kind']}/{ref['name']}' error: not found"
                raise NotReady("BuildFailed", f"post build failed: {text}")
            found |= _texts((value or {}).get("data") or {}, secret=ref["kind"] == "Secret")
        return found | {key: str(text) for key, text in (post_build.get("substitute") or {}).items()}

    def _finalize(self, at: At, value: Object) -> None:
        entries = ((value.get("status") or {}).get("inventory") or {}).get("entries") or []
        if (value.get("spec") or {}).get("prune"):
            prune(self._world, entries, [])
        finalizers = [name for name in value["metadata"].get("finalizers") or () if name != FINALIZER]
        if len(finalizers) != len(value["metadata"].get("finalizers") or ()):
            patch = {"metadata": {"finalizers": finalizers}}
            self._world.patch(at, patch, MERGE, Write(manager=_MANAGER))
        self._done.pop(value["metadata"]["uid"], None)


def _texts(data: Mapping[str, str], *, secret: bool) -> dict[str, str]:
    if not secret:
        return dict(data)
    return {key: base64.b64decode(value).decode(errors="replace") for key, value in data.items()}


def _marked(value: Mapping[str, Any], at: At, target: str | None) -> dict[str, Any]:
    metadata = dict(value["metadata"])
    owner = {f"{at.kind.group}/name": at.name, f"{at.kind.group}/namespace": at.namespace}
    metadata["labels"] = {**(metadata.get("labels") or {}), **owner}
    if target and _is_namespaced(value):
        metadata["namespace"] = target
    return {**value, "metadata": metadata}


def _is_namespaced(value: Mapping[str, Any]) -> bool:
    kind: Kind | None = _BUILT_IN.get(value["kind"])
    return kind is None or kind.namespaced


_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}


def _duration(text: str) -> timedelta:
    """Read a Go duration such as "1h", "10m0s" or "30s"; what it cannot read counts as ten minutes."""
    seconds, number = 0.0, ""
    for letter in text:
        if letter in _UNITS and number:
            seconds, number = seconds + float(number) * _UNITS[letter], ""
        elif letter.isdigit() or letter == ".":
            number += letter
        else:
            return timedelta(minutes=10)
    return timedelta(seconds=seconds) if not number else timedelta(minutes=10)
