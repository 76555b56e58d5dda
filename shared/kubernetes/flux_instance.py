"""The FluxInstance of a cluster: which Flux the Flux Operator installs, and whether it has done so. Pure.

Fields, conditions and annotations are those of ``api/v1/fluxinstance_types.go`` and
``internal/controller/fluxinstance_controller.go`` of controlplaneio-fluxcd/flux-operator: the one instance is
called flux and is in the operator's namespace; the condition Ready has an ``observedGeneration`` of its own;
and an instance with the annotation ``fluxcd.controlplane.io/reconcile: disabled`` is left alone, whatever its
condition Ready.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shared.json_tree import Json
from shared.kubernetes.flux_lockdown import CONTROLLERS, OF_PODS, USES, identity_annotations, is_locked_down
from shared.kubernetes.flux_objects import DIGEST, KUSTOMIZATION, NAMESPACE, SOURCE, stamped
from shared.kubernetes.flux_readiness import Readiness, Suspended, reconciled
from shared.language.desired import Desired
from shared.language.model.cluster.flux import FluxInstance
from shared.resource_ids import ObjectRef

INSTANCE = ObjectRef("fluxcd.controlplane.io/v1", "FluxInstance", "flux", NAMESPACE)
OWNER = "fluxcd.controlplane.io/name"
"""The label of what the operator applies, with the name of the instance."""
_RECONCILE, _DISABLED = "fluxcd.controlplane.io/reconcile", "disabled"
RESUME = f"kubectl -n {NAMESPACE} annotate fluxinstance {INSTANCE.name} {_RECONCILE}=enabled --overwrite"
_HELM = ("helm.toolkit.fluxcd.io/v2", "HelmRelease")


def instance_object(
    desired: Desired,
    instance: FluxInstance,
    *,
    identities: Mapping[str, bool],
    client_id: str,
    tenant_id: str,
) -> dict[str, Any]:
    """Return the FluxInstance of a cluster, locked down where it has systems.

    ``identities``: fields of ``cluster`` that say, there, as whom Flux acts for objects that name an account,
    and for those that name none; ``client_id``: as whom the controllers act, "" for nobody; ``tenant_id``:
    what their accounts need then, or "".
    """
    spec = instance.model_dump(by_alias=True, mode="json", exclude_none=True)
    cluster = spec.get("cluster") or {}
    if is_locked_down(desired):
        cluster |= {"multitenant": True, **identities}
    if cluster:
        spec["cluster"] = cluster
    if client_id:
        given = (spec.get("kustomize") or {}).get("patches") or []
        spec["kustomize"] = {"patches": [*given, *_identity_patches(client_id, tenant_id)]}
    metadata = {"name": INSTANCE.name, "namespace": INSTANCE.namespace}
    whole = {"apiVersion": INSTANCE.api_version, "kind": INSTANCE.kind, "metadata": metadata, "spec": spec}
    return stamped(whole)


def instance_readiness(live: Json) -> Readiness:
    """Judge a FluxInstance: Ready is only what the operator has reconciled as it is now."""
    annotations = live["metadata"].get("annotations") or {}
    if str(annotations.get(_RECONCILE) or "").lower() == _DISABLED:
        return Suspended()
    return reconciled(live)


def kinds_of_instance(instance: FluxInstance) -> Iterator[tuple[str, str]]:
    """Yield the apiVersion and kind of the objects of Flux that such an instance defines, sources first."""
    yield from ((SOURCE.api_version, kind) for kind in ("GitRepository", "OCIRepository", "Bucket"))
    yield KUSTOMIZATION.api_version, KUSTOMIZATION.kind
    if "helm-controller" in instance.components:
        yield _HELM


def _identity_patches(client_id: str, tenant_id: str) -> Iterator[dict[str, Any]]:
    names = f"({'|'.join(CONTROLLERS)})"
    account = {"annotations": identity_annotations(client_id, tenant_id)}
    pods = {"labels": {USES: "true"}, "annotations": {OF_PODS: client_id}}
    for kind, api_version, fields in (
        ("ServiceAccount", "v1", {"metadata": {"name": "any", **account}}),
        ("Deployment", "apps/v1", {"metadata": {"name": "any"}, "spec": {"template": {"metadata": pods}}}),
    ):
        patch = json.dumps({"apiVersion": api_version, "kind": kind, **fields}, indent=1)
        yield {"target": {"kind": kind, "name": names}, "patch": patch}


# The storage versions of a CustomResourceDefinition, when a new one drops a version that is in use.
#
# Kubernetes refuses a definition without a version in which objects may still be stored
# (``status.storedVersions``). So a definition with the versions of both is applied first, every object is
# written once, which stores it in the new version, and then the old version can go
# (kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning).


def dropped_versions(manifest: Json, live: Json) -> list[str]:
    """Return the versions in which objects may be stored and which the new definition lacks."""
    names = {version["name"] for version in manifest["spec"]["versions"]}
    stored: Sequence[str] = (live.get("status") or {}).get("storedVersions") or ()
    return [name for name in stored if name not in names]


def bridge(manifest: Json, live: Json) -> Json:
    """Return the new definition with the versions that it drops, as they are served now."""
    dropped = dropped_versions(manifest, live)
    old = [
        {**version, "storage": False} for version in live["spec"]["versions"] if version["name"] in dropped
    ]
    metadata = dict(manifest["metadata"])
    metadata["annotations"] = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != DIGEST}
    spec = {**manifest["spec"], "versions": [*manifest["spec"]["versions"], *old]}
    return stamped({**manifest, "metadata": metadata, "spec": spec})


def storage_version(manifest: Json) -> str:
    """Return the version in which a definition stores its objects."""
    return next(str(version["name"]) for version in manifest["spec"]["versions"] if version.get("storage"))


def kind_in(manifest: Json, version: str) -> tuple[str, str]:
    """Return the apiVersion and the kind of a definition's objects in a version."""
    spec = manifest["spec"]
    return f"{spec['group']}/{version}", str(spec["names"]["kind"])


def migrated(live: Json, version: str) -> dict[str, Any]:
    """Return a definition whose objects are all stored in one version."""
    return {**live, "status": {**live["status"], "storedVersions": [version]}}
