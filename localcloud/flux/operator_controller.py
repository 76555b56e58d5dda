"""The Flux Operator of the local Flux: it installs the small Flux where a FluxInstance asks for one.

Source of rules, conditions and messages: controlplaneio-fluxcd/flux-operator,
``internal/controller/fluxinstance_controller.go`` (order, conditions, requests, garbage collection),
``internal/builder/semver.go`` (versions) and ``internal/builder/profiles.go`` (the lock-down). Patches change
fields of objects; JSON patches are refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import yaml

from localcloud.common.flux_manifests import KINDS, NAMESPACE, definition, definition_of, deployment
from localcloud.flux.flux_conditions import FluxCondition, ObjectNotReady, handled, with_conditions
from localcloud.flux.reconciling import reconcile_due, with_finalizer, without_finalizer
from localcloud.flux.schedule import ReconcileSchedule
from localcloud.flux.sources.semver_range import newest
from localcloud.kubernetes.world.api_errors import StatusError
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, Object, WriteMode

GROUP = "fluxcd.controlplane.io"
API = f"{GROUP}/v1"
FINALIZER = f"{GROUP}/finalizer"
VERSIONS = ("v2.6.4", "v2.7.5", "v2.8.7", "v2.8.8")
"""The versions of Flux that this operator has, of three minors of the operator's repository. It reads no
artifact: what one has besides is not known here."""
_MANAGER = "flux-operator"
_EVERY = 3600.0
_TIMEOUT = 300.0
_USUAL = ("source-controller", "kustomize-controller", "helm-controller", "notification-controller")
_MORE_KINDS = (
    ("helm-controller", "HelmRelease", "helmreleases", "helm.toolkit.fluxcd.io/v2"),
    ("notification-controller", "Provider", "providers", "notification.toolkit.fluxcd.io/v1beta3"),
    ("notification-controller", "Alert", "alerts", "notification.toolkit.fluxcd.io/v1beta3"),
)
"""What else the controllers define, of which the small Flux posts the events and leaves Helm alone."""
_LOCKED = {
    "kustomize-controller": ("no-cross-namespace-refs=true", "no-remote-bases=true"),
    "helm-controller": ("no-cross-namespace-refs=true",),
    "notification-controller": ("no-cross-namespace-refs=true",),
}
_WITH_ACCOUNT = ("kustomize-controller", "helm-controller")


class OperatorController:
    """Reconciles the FluxInstance of one cluster."""

    def __init__(self, world: KubernetesWorld, clock: Callable[[], datetime]) -> None:
        self._world, self._clock = world, clock
        self._since: dict[str, datetime] = {}
        self.schedule = ReconcileSchedule(clock)

    def reconcile(self) -> None:
        """Reconcile the FluxInstance if it is due."""
        reconcile_due(
            self._world, (API, "FluxInstance"), self.schedule, self._one, lambda _at, value: _annotated(value)
        )

    def _one(self, at: At, value: Object) -> None:
        if (at.name, at.namespace) != ("flux", NAMESPACE):
            return
        if "deletionTimestamp" in value["metadata"]:
            self._remove(_entries(value))
            without_finalizer(self._world, at, value, _MANAGER, FINALIZER)
            return
        value = with_finalizer(self._world, at, value, _MANAGER, FINALIZER)
        watched = _annotated(value)
        if watched == "disabled":
            self.schedule.ran(value, _EVERY, watched)
            return
        status = dict(value.get("status") or {})
        try:
            self._installed(value, status)
            found = [
                FluxCondition("Ready", "True", "ReconciliationSucceeded", "Reconciliation finished in 1s")
            ]
            self.schedule.ran(value, _EVERY, watched)
        except ObjectNotReady as problem:
            found = [FluxCondition("Ready", problem.status, problem.reason, problem.message)]
            if problem.reason == "BuildFailed":
                found.append(FluxCondition("Stalled", "True", problem.reason, problem.message))
                self.schedule.ran(value, _EVERY, watched)
            else:
                self.schedule.ran(value, problem.retry or 10.0, watched)
        whole = with_conditions(value, status, found, self._clock())
        whole.pop("observedGeneration", None)  # this status has none, and each condition its own
        self._world.set_status(at, handled(value, whole), manager=_MANAGER)

    def _installed(self, value: Object, status: dict[str, Any]) -> None:
        """Install what the spec asks for; raise NotReady."""
        spec = value["spec"]
        version = _version(spec, str(status.get("lastAppliedRevision") or ""))
        objects = [_patched(manifest, spec) for manifest in _manifests(spec, version)]
        digest = hashlib.sha256(json.dumps(objects, sort_keys=True).encode()).hexdigest()
        status["lastAttemptedRevision"] = revision = f"{version}@sha256:{digest}"
        before = _entries(value)
        try:
            places = [self._apply(document) for document in objects]
        except StatusError as error:
            raise ObjectNotReady("ReconciliationFailed", f"reconciliation failed: {error}") from error
        status["inventory"] = {"entries": [_entry(at) for at in places]}
        names = {entry["id"] for entry in status["inventory"]["entries"]}
        self._remove([entry for entry in before if entry["id"] not in names])
        self._wait(value, revision, places)
        status["lastAppliedRevision"] = revision
        registry = spec["distribution"]["registry"]
        status["components"] = [
            {"name": name, "repository": f"{registry}/{name}", "tag": version}
            for name in spec.get("components") or _USUAL
        ]

    def _apply(self, manifest: Mapping[str, Any]) -> At:
        kind = self._world.kind(manifest["apiVersion"], manifest["kind"])
        if kind is None:
            raise ObjectNotReady(
                "ReconciliationFailed", f"reconciliation failed: no matches for {manifest['kind']}"
            )
        metadata = dict(manifest["metadata"])
        own = {f"{GROUP}/name": "flux", f"{GROUP}/namespace": NAMESPACE}
        metadata["labels"] = {**(metadata.get("labels") or {}), "app.kubernetes.io/part-of": "flux", **own}
        at = At(kind, metadata["name"], metadata.get("namespace", "") if kind.namespaced else "")
        self._world.apply(at, {**manifest, "metadata": metadata}, WriteMode(manager=_MANAGER, force=True))
        return at

    def _wait(self, value: Object, revision: str, places: Sequence[At]) -> None:
        """Raise ObjectNotReady while a controller does not run."""
        late = [at.name for at in places if at.kind.kind == "Deployment" and not self._runs(at)]
        key = f"{value['metadata']['uid']} {revision}"
        if not late:
            self._since.pop(key, None)
            return
        since = self._since.setdefault(key, self._clock())
        if (self._clock() - since).total_seconds() < _TIMEOUT:
            raise ObjectNotReady("Progressing", "Reconciliation in progress", status="Unknown", retry=5.0)
        listed = ", ".join(f"Deployment/{NAMESPACE}/{name} status: 'InProgress'" for name in late)
        text = f"reconciliation failed: timeout waiting for: [{listed}]"
        raise ObjectNotReady("ReconciliationFailed", text)

    def _runs(self, at: At) -> bool:
        found = self._world.find(at) or {}
        status, wanted = found.get("status") or {}, (found.get("spec") or {}).get("replicas", 1)
        current = status.get("observedGeneration") == (found.get("metadata") or {}).get("generation")
        counts = [status.get(name, 0) for name in ("updatedReplicas", "availableReplicas", "replicas")]
        return current and counts == [wanted] * 3

    def _remove(self, entries: Sequence[Mapping[str, str]]) -> None:
        for entry in entries:
            namespace, name, group, kind_name = entry["id"].split("_")
            kind = self._world.kind(f"{group}/{entry['v']}" if group else entry["v"], kind_name)
            if kind is not None and kind_name not in ("Namespace", "CustomResourceDefinition"):
                with suppress(StatusError):
                    self._world.delete(At(kind, name, namespace))


def _annotated(value: Object) -> str:
    """Return what the annotation says of the reconciliation."""
    return str((value["metadata"].get("annotations") or {}).get(f"{GROUP}/reconcile", "")).lower()


def _entries(value: Object) -> list[Mapping[str, str]]:
    return list(((value.get("status") or {}).get("inventory") or {}).get("entries") or ())


def _entry(at: At) -> dict[str, str]:
    return {"id": f"{at.namespace}_{at.name}_{at.kind.group}_{at.kind.kind}", "v": at.kind.version}


def _version(spec: Mapping[str, Any], applied: str) -> str:
    wanted = str(spec["distribution"]["version"])
    found = newest(VERSIONS, wanted)
    if found is None:
        raise ObjectNotReady("BuildFailed", f"build failed: no match found for semver: {wanted}")
    before = applied.partition("@")[0]
    if before and _minor(found) < _minor(before):
        unsupported = f"downgrading from {before} to {found} is not supported, reinstall needed"
        raise ObjectNotReady("BuildFailed", f"build failed: {unsupported}")
    return found


def _minor(version: str) -> tuple[int, int]:
    major, minor, _ = version.removeprefix("v").split(".")
    return int(major), int(minor)


def _manifests(spec: Mapping[str, Any], version: str) -> Iterator[dict[str, Any]]:
    for kind in KINDS:
        yield definition(kind)
    for component, kind, plural, api_version in _MORE_KINDS:
        if component in (spec.get("components") or _USUAL):
            yield definition_of(kind, plural, api_version)
    registry, cluster = spec["distribution"]["registry"], spec.get("cluster") or {}
    subjects = [
        {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
        for name in ("kustomize-controller", "helm-controller")
    ]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    yield {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"cluster-reconciler-{NAMESPACE}"},
        "roleRef": role,
        "subjects": subjects,
    }
    for name in spec.get("components") or _USUAL:
        metadata = {"name": name, "namespace": NAMESPACE}
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        args = []
        if cluster.get("multitenant"):
            args += [f"--{flag}" for flag in _LOCKED.get(name, ())]
            account = cluster.get("tenantDefaultServiceAccount") or "default"
            args += [f"--default-service-account={account}"] if name in _WITH_ACCOUNT else []
        if cluster.get("objectLevelWorkloadIdentity"):
            args.append("--feature-gates=ObjectLevelWorkloadIdentity=true")
        if cluster.get("multitenantWorkloadIdentity"):
            args += _of_identities(name, cluster)
        yield deployment(name, f"{registry}/{name}:{version}", args)


def _of_identities(name: str, cluster: Mapping[str, Any]) -> Iterator[str]:
    """Yield the flags of a controller with the lock-down of identities (``internal/builder/profiles.go``)."""
    for flag, field, controllers in (
        ("service", "tenantDefaultServiceAccount", ("source-controller", "notification-controller")),
        ("decryption-service", "tenantDefaultDecryptionServiceAccount", ("kustomize-controller",)),
        ("kubeconfig-service", "tenantDefaultKubeConfigServiceAccount", _WITH_ACCOUNT),
    ):
        if name in controllers:
            yield f"--default-{flag}-account={cluster.get(field) or 'default'}"


def _patched(manifest: dict[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    for document in (spec.get("kustomize") or {}).get("patches") or ():
        patch, target = yaml.safe_load(document["patch"]), document.get("target") or {}
        if not isinstance(patch, dict):
            raise ObjectNotReady("BuildFailed", "build failed: this operator knows no JSON patches")
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        if target.get("kind") in (None, kind) and re.fullmatch(str(target.get("name") or ".*"), name):
            named = {**patch, "metadata": {**(patch.get("metadata") or {}), "name": name}}
            manifest = _merged(manifest, named)
    return manifest


def _merged(value: Any, patch: Any) -> Any:
    if isinstance(value, dict) and isinstance(patch, dict):
        return {**value, **{key: _merged(value.get(key), document) for key, document in patch.items()}}
    return patch
