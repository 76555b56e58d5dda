"""The kustomize-controller of the local Flux: it builds, applies, prunes and waits.

Source of conditions, reasons, messages and times: ``fluxcd/kustomize-controller``
(``internal/controller/kustomization_controller.go``) v1.7.3.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from localcloud.flux.controller_flags import account_of, applying, flag
from localcloud.flux.flux_conditions import (
    FluxCondition,
    ObjectNotReady,
    condition,
    handled,
    is_ready,
    kept,
    with_conditions,
)
from localcloud.flux.inventory import apply_all, entry, owner_labels, prune, unhealthy
from localcloud.flux.kustomize import kustomize_build as build
from localcloud.flux.kustomize.decryption import decrypted
from localcloud.flux.kustomize.kustomize_build import KustomizeBuilds, substituted
from localcloud.flux.notification_controller import ControllerEvent
from localcloud.flux.reconciling import Waits, reconcile_due, with_finalizer, without_finalizer
from localcloud.flux.schedule import ReconcileSchedule, go_duration, seconds_of
from localcloud.flux.source_controller import API as SOURCE_API
from localcloud.flux.source_controller import SourceRevision
from localcloud.kubernetes.world.kinds import BUILT_IN, SERVICE_ACCOUNT, ResourceKind
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, Object

_GROUP = "kustomize.toolkit.fluxcd.io"
API = f"{_GROUP}/v1"
_MANAGER, _NAMESPACE = "kustomize-controller", "flux-system"
_DEPENDENCY_SECONDS = 30.0
_LEAST_TIMEOUT = 30.0
_NOT_BUILT = {
    *("patches", "images", "components", "namePrefix", "nameSuffix", "commonMetadata"),
    *("kubeConfig", "healthCheckExprs", "deletionPolicy", "force"),
}
"""What a Kustomization may have and this controller does not carry out: it fails, and says so."""
_BUILT_IN = {kind.kind: kind for kind in BUILT_IN}


class KustomizeController:
    """Applies the Kustomization objects of one cluster; ``artifact`` gives what a source holds."""

    def __init__(
        self,
        world: KubernetesWorld,
        artifact: Callable[[Object], SourceRevision | None],
        clock: Callable[[], datetime],
        tell: Callable[[ControllerEvent], None] = lambda _: None,
    ) -> None:
        self._world, self._artifact, self._clock, self._tell = world, artifact, clock, tell
        self._waits, self._builds = Waits(clock), KustomizeBuilds()
        self.schedule = ReconcileSchedule(clock)

    def reconcile(self) -> None:
        """Reconcile every Kustomization that is due, or whose source has another revision."""
        reconcile_due(self._world, (API, "Kustomization"), self.schedule, self._one, self._revision)

    def _one(self, at: At, value: Object) -> None:
        metadata = value["metadata"]
        if "deletionTimestamp" in metadata:
            try:
                self._finalize(at, value)
            except ObjectNotReady:
                self.schedule.failed(value, self._revision(at, value))  # no condition is written
            return
        value = with_finalizer(self._world, at, value, _MANAGER)
        spec, status = value["spec"], dict(value.get("status") or {})
        interval = seconds_of(spec, "interval", 600.0)
        revision = self._revision(at, value)
        if spec.get("suspend"):
            self.schedule.ran(value, interval, revision)
            if condition(value, "Ready").get("status") == "True":
                status["observedGeneration"] = metadata["generation"]
            self._world.set_status(at, handled(value, status), manager=_MANAGER)
            return
        progress: list[str] = []
        try:
            self._reconciled(at, value, status, progress)
            found = [
                FluxCondition("Ready", "True", "ReconciliationSucceeded", f"Applied revision: {revision}")
            ]
            if spec.get("wait") or spec.get("healthChecks"):
                found.append(FluxCondition("Healthy", "True", "Succeeded", "Health check passed in 0s"))
            self.schedule.ran(value, interval, revision)
        except ObjectNotReady as problem:
            found = _failed(value, problem, progress)
            if problem.status == "False" and problem.retry is None:
                self._report(value, "error", problem.reason, problem.message, revision)
            usual = seconds_of(spec, "retryInterval", interval)
            self.schedule.ran(value, usual if problem.retry is None else problem.retry, revision)
        whole = with_conditions(value, status, found, self._clock())
        self._world.set_status(at, whole, manager=_MANAGER)

    def _report(self, value: Object, severity: str, reason: str, message: str, revision: str) -> None:
        about = {f"{_GROUP}/revision": revision} if revision else {}
        self._tell(ControllerEvent(value, severity, reason, message, _MANAGER, about))

    def _reconciled(self, at: At, value: Object, status: dict[str, Any], progress: list[str]) -> None:
        """Bring the cluster to what the source holds; raise NotReady. ``progress`` takes what it is at."""
        unknown = sorted(name for name in _NOT_BUILT if value["spec"].get(name))
        if unknown:
            raise ObjectNotReady("BuildFailed", f"the local Flux does not know {', '.join(unknown)}")
        source, revision = self._source(at, value)
        self._check_dependencies(at, value, revision)
        limit = f"for revision {revision} with a timeout of {go_duration(_timeout(value['spec']))}"
        progress.append(f"Fetching manifests {limit}")
        objects = self._built(at, value, source, status, revision, progress, limit)
        progress.append(f"Detecting drift {limit}")
        before = (status.get("inventory") or {}).get("entries") or []
        client = applying(self._world, _MANAGER, at.namespace, value["spec"].get("serviceAccountName"))
        changes = list[str]()
        refs = apply_all(client, [_marked(item, at, value["spec"]) for item in objects], changes)
        if changes:
            self._report(value, "info", "Progressing", "\n".join(changes), revision)
        status["inventory"] = {"entries": [entry(ref) for ref in refs]}
        if value["spec"].get("prune"):
            owner = owner_labels(at.name, at.namespace)
            prune(client, before, status["inventory"]["entries"], owner)
        waits = value["spec"].get("wait")
        checked = [ref for ref in refs if ref != at] if waits else self._checked(value)
        if checked:
            progress.append(f"Running health checks {limit}")
            self._check_health(value, revision, checked)
            if condition(value, "Healthy").get("status") != "True":
                self._report(value, "info", "Succeeded", "Health check passed in 0s", revision)
        status["lastAppliedRevision"] = revision

    def _built(
        self,
        at: At,
        value: Object,
        source: SourceRevision,
        status: dict[str, Any],
        revision: str,
        progress: list[str],
        limit: str,
    ) -> list[dict[str, Any]]:
        spec = value["spec"]
        files = source.files()
        build.check_path(files, spec.get("path", "./"))
        status["lastAttemptedRevision"] = revision
        progress.append(f"Building manifests {limit}")
        objects = self._builds.objects(value["metadata"]["uid"], files, spec.get("path", "./"))
        if "decryption" in spec:
            objects = decrypted(objects, spec["decryption"], lambda name: self._secret(name, at.namespace))
        variables = self._variables(at, spec.get("postBuild") or {}, objects)
        return objects if variables is None else [substituted(item, variables) for item in objects]

    def _secret(self, name: str, namespace: str) -> Object | None:
        return self._world.find(At(_BUILT_IN["Secret"], name, namespace))

    def _checked(self, value: Object) -> list[At]:
        """Return the objects of ``healthChecks``; raise NotReady for an unknown kind."""
        found = []
        for health_check in value["spec"].get("healthChecks") or ():
            kind = self._world.kind(health_check["apiVersion"], health_check["kind"])
            if kind is None:
                unknown = (
                    f'no matches for kind "{health_check["kind"]}" in version "{health_check["apiVersion"]}"'
                )
                raise ObjectNotReady("HealthCheckFailed", unknown)
            found.append(
                At(kind, health_check["name"], health_check.get("namespace", "") if kind.namespaced else "")
            )
        return found

    def _check_health(self, value: Object, revision: str, refs: Sequence[At]) -> None:
        """Raise NotReady while objects are not ready, and when that lasts too long."""
        waiting = unhealthy(self._world, refs)
        if not waiting:
            self._waits.end(value)
            return
        limit = _timeout(value["spec"])
        if not self._waits.is_over(value, (value["metadata"]["generation"], revision), limit):
            raise ObjectNotReady("Progressing", "Reconciliation in progress", status="Unknown", retry=1)
        listed = ", ".join(f"{name} status: 'InProgress'" for name in waiting)
        text = f"health check failed after {go_duration(limit)}: timeout waiting for: [{listed}]"
        raise ObjectNotReady("HealthCheckFailed", text)

    def _check_dependencies(self, at: At, value: Object, revision: str) -> None:
        for needed in value["spec"].get("dependsOn") or ():
            namespace = needed.get("namespace", at.namespace)
            name = f"{namespace}/{needed['name']}"
            found = self._world.find(At(at.kind, needed["name"], namespace))
            problem = ""
            if found is None:
                missing = f'{at.kind.resource} "{needed["name"]}" not found'
                problem = f"dependency '{name}' not found: {missing}"
            elif not is_ready(found):
                problem = f"dependency '{name}' is not ready"
            elif found["spec"].get("sourceRef") == value["spec"].get("sourceRef"):
                applied = (found.get("status") or {}).get("lastAppliedRevision")
                problem = "" if applied == revision else f"dependency '{name}' revision is not up to date"
            if problem:
                raise ObjectNotReady("DependencyNotReady", problem, retry=_DEPENDENCY_SECONDS)

    def _prune_all(self, at: At, spec: Mapping[str, Any], entries: Sequence[Mapping[str, str]]) -> None:
        """Delete what a Kustomization applied, unless its account no longer exists (``finalize``)."""
        name = account_of(self._world, _MANAGER, spec.get("serviceAccountName"))
        if not name or self._world.find(At(SERVICE_ACCOUNT, name, at.namespace)) is not None:
            prune(
                applying(self._world, _MANAGER, at.namespace, spec.get("serviceAccountName")),
                entries,
                [],
                owner_labels(at.name, at.namespace),
            )

    def _named_source(self, at: At, value: Object) -> tuple[Object | None, str]:
        """Return the source object, and its name in messages."""
        ref = (value.get("spec") or {}).get("sourceRef") or {}
        namespace, name = ref.get("namespace", at.namespace), ref.get("name", "")
        kind = self._world.kind(SOURCE_API, str(ref.get("kind")))
        if kind is None:
            return None, f'no matches for kind "{ref.get("kind")}" in version "{SOURCE_API}"'
        return self._world.find(At(kind, name, namespace)), f'{kind.kind}.{kind.group} "{name}" not found'

    def _revision(self, at: At, value: Object) -> str:
        """Return the revision of the source's artifact, "" when there is none."""
        found = self._named_source(at, value)[0]
        return str((((found or {}).get("status") or {}).get("artifact") or {}).get("revision") or "")

    def _source(self, at: At, value: Object) -> tuple[SourceRevision, str]:
        ref = value["spec"]["sourceRef"]
        namespace = ref.get("namespace", at.namespace)
        if namespace != at.namespace and flag(self._world, _MANAGER, "no-cross-namespace-refs") == "true":
            where = f"{ref['kind']}/{namespace}/{ref['name']}"
            blocked = "cross-namespace references have been blocked"
            raise ObjectNotReady("AccessDenied", f"can't access '{where}', {blocked}")
        found, missing = self._named_source(at, value)
        if found is None:
            raise ObjectNotReady("ArtifactFailed", missing)
        source, revision = self._artifact(found), self._revision(at, value)
        if source is None or not revision:
            message = f"Source artifact not found, retrying in {go_duration(_DEPENDENCY_SECONDS)}"
            raise ObjectNotReady("ArtifactFailed", message, retry=_DEPENDENCY_SECONDS)
        return source, revision

    def _variables(
        self, at: At, post_build: Mapping[str, Any], objects: Sequence[Mapping[str, Any]]
    ) -> Mapping[str, str] | None:
        if not post_build:
            return None
        found: dict[str, str] = {}
        for ref in post_build.get("substituteFrom") or ():
            kind = _BUILT_IN[ref["kind"]]
            value = self._world.find(At(kind, ref["name"], at.namespace))
            if value is None and not ref.get("optional") and objects:
                missing = f'{kind.plural} "{ref["name"]}" not found'
                text = f"substitute from '{ref['kind']}/{ref['name']}' error: {missing}"
                raise ObjectNotReady(
                    "BuildFailed", f"post build failed for '{build.identified(objects[0])}': {text}"
                )
            found |= _texts((value or {}).get("data") or {}, secret=ref["kind"] == "Secret")
        return found | {key: str(text) for key, text in (post_build.get("substitute") or {}).items()}

    def _finalize(self, at: At, value: Object) -> None:
        metadata, spec = value["metadata"], value["spec"]
        entries = ((value.get("status") or {}).get("inventory") or {}).get("entries") or []
        if spec.get("prune") and not spec.get("suspend"):
            self._prune_all(at, spec, entries)
        self.schedule.forget(metadata["uid"])
        self._builds.forget(metadata["uid"])
        self._waits.end(value)
        without_finalizer(self._world, at, value, _MANAGER)


def _failed(value: Object, problem: ObjectNotReady, progress: Sequence[str]) -> list[FluxCondition]:
    found = [FluxCondition("Ready", problem.status, problem.reason, problem.message)]
    if progress:
        reason = "ProgressingWithRetry" if problem.status == "False" else "Progressing"
        found.insert(0, FluxCondition("Reconciling", "True", reason, progress[-1]))
    healthy = condition(value, "Healthy")
    if progress and progress[-1].startswith("Running health checks"):
        if problem.status == "Unknown":
            found.append(FluxCondition("Healthy", "Unknown", "Progressing", progress[-1]))
        else:
            message = problem.message.partition(": ")[2]
            found.append(FluxCondition("Healthy", "False", problem.reason, message))
    elif healthy:
        found.append(kept(healthy))
    return found


def _timeout(spec: Mapping[str, Any]) -> float:
    return max(_LEAST_TIMEOUT, seconds_of(spec, "timeout", seconds_of(spec, "interval", 600.0) - 30))


def _texts(data: Mapping[str, str], *, secret: bool) -> dict[str, str]:
    if not secret:
        return dict(data)
    return {key: base64.b64decode(value).decode(errors="replace") for key, value in data.items()}


def _marked(value: Mapping[str, Any], at: At, spec: Mapping[str, Any]) -> dict[str, Any]:
    metadata = dict(value["metadata"])
    metadata["labels"] = {**(metadata.get("labels") or {}), **owner_labels(at.name, at.namespace)}
    if spec.get("targetNamespace") and _is_namespaced(value):
        metadata["namespace"] = spec["targetNamespace"]
    return {**value, "metadata": metadata}


def _is_namespaced(value: Mapping[str, Any]) -> bool:
    kind: ResourceKind | None = _BUILT_IN.get(value["kind"])
    return kind is None or kind.namespaced
