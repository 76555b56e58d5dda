"""The helm-controller of the local Flux: it installs, upgrades and uninstalls the releases of charts.

Source of conditions, reasons, messages and of what a release is: ``fluxcd/helm-controller`` v1.4
(``internal/controller/helmrelease_controller.go``, ``internal/reconcile``, ``docs/spec/v2``). ``helm``
renders. An object of a release is applied server-side; Helm compares three versions of it instead.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import yaml

from localcloud.common.clock import in_seconds
from localcloud.flux.controller_flags import applying, flag
from localcloud.flux.flux_conditions import (
    FluxCondition,
    ObjectNotReady,
    condition,
    handled,
    is_ready,
    with_conditions,
)
from localcloud.flux.helm.helm_charts import HelmChartController
from localcloud.flux.helm.helm_releases import (
    GROUP,
    failed,
    marked,
    merged,
    origin_labels,
    place,
    release_name,
    snapshot_of,
)
from localcloud.flux.helm.helm_templates import Chart, Release, manifest_of, release_secret, rendered
from localcloud.flux.inventory import ClusterClient, apply_all, entry, prune, unhealthy
from localcloud.flux.notification_controller import ControllerEvent
from localcloud.flux.reconciling import Waits, reconcile_due, with_finalizer, without_finalizer
from localcloud.flux.schedule import ReconcileSchedule, go_duration, seconds_of
from localcloud.flux.source_controller import API as SOURCE_API
from localcloud.kubernetes.world.api_errors import StatusError
from localcloud.kubernetes.world.kinds import BUILT_IN, ResourceKind
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, Object, WriteMode

API = f"{GROUP}/v2"
_MANAGER, _NAMESPACE = "helm-controller", "flux-system"
_DEPENDENCY_SECONDS, _WAIT_SECONDS = 30.0, 300.0
_NOT_DONE = {
    "chartRef",
    "kubeConfig",
    "postRenderers",
    "driftDetection",
    "test",
    "rollback",
    "persistentClient",
}
"""What a HelmRelease may have and this controller does not carry out: it fails, and says so."""
_BUILT_IN = {kind.kind: kind for kind in BUILT_IN}


class HelmController:
    """Carries out the HelmRelease objects of one cluster with the charts that ``charts`` has."""

    def __init__(
        self,
        world: KubernetesWorld,
        charts: HelmChartController,
        clock: Callable[[], datetime],
        tell: Callable[[ControllerEvent], None] = lambda _: None,
    ) -> None:
        self._world, self._charts, self._clock, self._tell = world, charts, clock, tell
        self._waits = Waits(clock)
        self.schedule = ReconcileSchedule(clock)

    def reconcile(self) -> None:
        """Reconcile every HelmRelease that is due, or whose chart has another version."""
        reconcile_due(self._world, (API, "HelmRelease"), self.schedule, self._one, self._watched)

    def _watched(self, at: At, value: Object) -> object:
        found = self._chart_object(at, value)
        return None if found is None else (is_ready(found), (found.get("status") or {}).get("artifact"))

    def _one(self, at: At, value: Object) -> None:
        metadata, spec = value["metadata"], value["spec"]
        if "deletionTimestamp" in metadata:
            self._finalize(at, value)
            return
        value = with_finalizer(self._world, at, value, _MANAGER)
        status = dict(value.get("status") or {})
        interval = seconds_of(spec, "interval", 600.0)
        if spec.get("suspend"):
            self.schedule.ran(value, interval, self._watched(at, value))
            self._world.set_status(at, handled(value, status), manager=_MANAGER)
            return
        try:
            found = self._released(at, value, status)
            self.schedule.ran(value, interval, self._watched(at, value))
        except ObjectNotReady as problem:
            found = [FluxCondition("Ready", problem.status, problem.reason, problem.message)]
            if problem.reason in {"InstallFailed", "UpgradeFailed"}:
                found.append(FluxCondition("Released", "False", problem.reason, problem.message))
                self._tell(ControllerEvent(value, "error", problem.reason, problem.message, _MANAGER))
            if problem.retry is None:
                self.schedule.failed(value, self._watched(at, value))
            else:
                self.schedule.ran(value, problem.retry, self._watched(at, value))
        whole = with_conditions(value, status, found, self._clock())
        self._world.set_status(at, whole, manager=_MANAGER)

    def _released(self, at: At, value: Object, status: dict[str, Any]) -> list[FluxCondition]:
        """Bring the release to what the object says; raise NotReady."""
        spec = value["spec"]
        unknown = sorted(name for name in _NOT_DONE if spec.get(name))
        if unknown:
            raise ObjectNotReady("InstallFailed", f"the local Flux does not know {', '.join(unknown)}")
        self._check_dependencies(at, spec)
        chart = self._chart(at, value, status)
        values = self._values(at, spec)
        digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
        history = status.get("history") or []
        newest = history[0] if history else {}
        is_same = (newest.get("chartVersion"), newest.get("configDigest")) == (
            chart.version,
            f"sha256:{digest}",
        )
        status |= {"lastAttemptedRevision": chart.version, "lastAttemptedConfigDigest": f"sha256:{digest}"}
        status["lastAttemptedGeneration"] = value["metadata"]["generation"]
        release = Release(
            release_name(at, spec), spec.get("targetNamespace") or at.namespace, newest.get("version", 0) + 1
        )
        action = "install" if release.revision == 1 else "upgrade"
        if is_same and newest.get("status") == "deployed":
            ready = condition(value, "Released")
            return [
                FluxCondition(name, "True", ready["reason"], ready["message"])
                for name in ("Ready", "Released")
            ]
        if is_same:
            release = Release(release.name, release.namespace, newest["version"])
            action = "install" if release.revision == 1 else "upgrade"
        status["lastAttemptedReleaseAction"] = action
        snapshot = snapshot_of(release, chart, digest, history, in_seconds(self._clock()))
        self._apply(at, value, release, chart, values, action, is_new=not is_same)
        status["history"] = [
            snapshot,
            *[document for document in history if document["version"] != release.revision],
        ][:2]
        self._wait(value, release, chart, action)
        snapshot["status"] = "deployed"
        status["storageNamespace"] = release.namespace
        message = (
            f"{release.namespace}/{release.name}.v{release.revision} with chart {chart.name}@{chart.version}"
        )
        reason, message = f"{action.title()}Succeeded", f"Helm {action} succeeded for release {message}"
        self._tell(ControllerEvent(value, "info", reason, message, _MANAGER))
        return [FluxCondition(name, "True", reason, message) for name in ("Ready", "Released")]

    def _apply(
        self,
        at: At,
        value: Object,
        release: Release,
        chart: Chart,
        values: Mapping[str, Any],
        action: str,
        *,
        is_new: bool,
    ) -> None:
        spec = value["spec"]
        client = applying(self._world, _MANAGER, at.namespace, spec.get("serviceAccountName"))
        try:
            objects = [marked(client, item, at, release) for item in rendered(chart, release, values)]
            if (spec.get("install") or {}).get("createNamespace"):
                self._ensure_namespace(client, release.namespace)
            secret = release_secret(release, chart, "deployed", objects)
            refs = apply_all(client, [*objects, secret])
            if is_new and release.revision > 1:
                self._prune(client, at, Release(release.name, release.namespace, release.revision - 1), refs)
        except ObjectNotReady as problem:
            if problem.status == "Unknown":
                raise
            text = problem.message.strip()
            raise ObjectNotReady(f"{action.title()}Failed", failed(action, release, chart, text)) from problem

    def _ensure_namespace(self, client: ClusterClient, name: str) -> None:
        if client.find(At(_BUILT_IN["Namespace"], name, "")) is None:
            apply_all(client, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])

    def _prune(self, client: ClusterClient, at: At, before: Release, now: Sequence[At]) -> None:
        secret = self._world.find(At(_BUILT_IN["Secret"], before.secret, before.namespace))
        if secret is not None:
            old = [entry(place(client, item)) for item in manifest_of(secret)]
            prune(client, old, [entry(ref) for ref in now], origin_labels(at))

    def _wait(self, value: Object, release: Release, chart: Chart, action: str) -> None:
        """Raise NotReady until the objects of the release are ready, as ``helm --wait`` would."""
        spec = value["spec"]
        if (spec.get(action) or {}).get("disableWait"):
            return
        secret = self._world.get(At(_BUILT_IN["Secret"], release.secret, release.namespace))
        client: ClusterClient = self._world
        waiting = unhealthy(client, [place(client, item) for item in manifest_of(secret)])
        if not waiting:
            self._waits.end(value)
            return
        limit = seconds_of(spec.get(action) or {}, "timeout", seconds_of(spec, "timeout", _WAIT_SECONDS))
        if not self._waits.is_over(value, (value["metadata"]["generation"], release.revision), limit):
            text = f"Running '{action}' action with timeout of {go_duration(limit)}"
            raise ObjectNotReady("Progressing", text, status="Unknown", retry=1)
        text = f"context deadline exceeded: {', '.join(waiting)} not ready"
        raise ObjectNotReady(f"{action.title()}Failed", failed(action, release, chart, text))

    def _check_dependencies(self, at: At, spec: Mapping[str, Any]) -> None:
        for needed in spec.get("dependsOn") or ():
            name = f"{needed.get('namespace', at.namespace)}/{needed['name']}"
            found = self._world.find(At(at.kind, needed["name"], needed.get("namespace", at.namespace)))
            if found is None:
                missing = f'HelmRelease.{GROUP} "{needed["name"]}" not found'
                problem = f"unable to get '{name}' dependency: {missing}"
            elif not is_ready(found):
                problem = f"dependency '{name}' is not ready"
            else:
                continue
            raise ObjectNotReady("DependencyNotReady", problem, retry=_DEPENDENCY_SECONDS)

    def _chart(self, at: At, value: Object, status: dict[str, Any]) -> Chart:
        """Write the HelmChart of the object, and return its chart; raise NotReady while there is none."""
        template, kind = value["spec"]["chart"]["spec"], self._world.kind(SOURCE_API, "HelmChart")
        if kind is None:
            text = f'no matches for kind "HelmChart" in version "{SOURCE_API}"'
            raise ObjectNotReady("ArtifactFailed", f"could not get Source object: {text}")
        target = self._chart_place(kind, at, value)
        if (
            target.namespace != at.namespace
            and flag(self._world, _MANAGER, "no-cross-namespace-refs") == "true"
        ):
            ref = template["sourceRef"]
            where = f"{ref['kind']}/{target.namespace}/{ref['name']}"
            text = f"can't access '{where}', cross-namespace references have been blocked"
            raise ObjectNotReady("AccessDenied", text)
        ref = {"kind": template["sourceRef"]["kind"], "name": template["sourceRef"]["name"]}
        spec = {"chart": template["chart"], "sourceRef": ref, "interval": value["spec"]["interval"]}
        spec |= {
            name: template[name] for name in ("version", "reconcileStrategy", "interval") if name in template
        }
        metadata = {"name": target.name, "namespace": target.namespace, "labels": origin_labels(at)}
        body = {"apiVersion": SOURCE_API, "kind": "HelmChart", "metadata": metadata, "spec": spec}
        made = self._world.apply(target, body, WriteMode(manager=_MANAGER, force=True))
        status["helmChart"] = f"{target.namespace}/{target.name}"
        chart = self._charts.chart(made) if is_ready(made) else None
        if chart is None:
            message = condition(made, "Ready").get("message")
            text = message or "latest generation of object has not been reconciled"
            problem = f"HelmChart '{target.namespace}/{target.name}' is not ready: {text}"
            raise ObjectNotReady(
                "SourceNotReady", problem, retry=seconds_of(value["spec"], "interval", 600.0)
            )
        return chart

    def _chart_place(self, kind: ResourceKind, at: At, value: Object) -> At:
        ref = value["spec"]["chart"]["spec"]["sourceRef"]
        return At(kind, f"{at.namespace}-{at.name}", ref.get("namespace", at.namespace))

    def _chart_object(self, at: At, value: Object) -> Object | None:
        kind = self._world.kind(SOURCE_API, "HelmChart")
        if kind is None or "chart" not in value["spec"]:
            return None
        return self._world.find(self._chart_place(kind, at, value))

    def _values(self, at: At, spec: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for ref in spec.get("valuesFrom") or ():
            if "targetPath" in ref:
                raise ObjectNotReady("ValuesError", "the local Flux does not know targetPath")
            value = self._world.find(At(_BUILT_IN[ref["kind"]], ref["name"], at.namespace))
            key = ref.get("valuesKey", "values.yaml")
            text = ((value or {}).get("data") or {}).get(key)
            if text is None and ref.get("optional"):
                continue
            if text is None:
                named = f"{ref['kind']} '{at.namespace}/{ref['name']}'"
                problem = "not found" if value is None else f"missing key '{key}'"
                raise ObjectNotReady("ValuesError", f"could not resolve {named} values reference: {problem}")
            plain = base64.b64decode(text).decode() if ref["kind"] == "Secret" else text
            found = merged(found, yaml.safe_load(plain) or {})
        return merged(found, spec.get("values") or {})

    def _finalize(self, at: At, value: Object) -> None:
        spec, status = value["spec"], value.get("status") or {}
        if not spec.get("suspend"):
            client = applying(self._world, _MANAGER, at.namespace, spec.get("serviceAccountName"))
            for document in status.get("history") or ():
                release = Release(document["name"], document["namespace"], document["version"])
                self._prune(client, at, release, ())
                with suppress(StatusError):
                    self._world.delete(At(_BUILT_IN["Secret"], release.secret, release.namespace))
            chart, kind = self._chart_object(at, value), self._world.kind(SOURCE_API, "HelmChart")
            if chart is not None and kind is not None:
                self._world.delete(self._chart_place(kind, at, value))
        self.schedule.forget(value["metadata"]["uid"])
        self._waits.end(value)
        without_finalizer(self._world, at, value, _MANAGER)
