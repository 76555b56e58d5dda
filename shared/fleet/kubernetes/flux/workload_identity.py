"""Flux as an identity of Azure: what its controllers need to get tokens through workload identity.

The annotation of the ServiceAccount and the label of the pods are those of
azure.github.io/azure-workload-identity and of fluxcd.io/flux/integrations/azure. The webhook of AKS gives
pods with that label the token, and the client id of the annotation, when they are created. So another client
id has to replace the pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux.flux_objects import DIGEST, stamped

TENANT_ID = "azure.workload.identity/tenant-id"
CLIENT_ID, USES = "azure.workload.identity/client-id", "azure.workload.identity/use"
OF_PODS = "roadstead.dev/workload-identity"
"""The annotation of the pods with the client id, so that they are replaced with it."""
CONTROLLERS = ("source-controller", "kustomize-controller")
"""Those that pull sources, and that decrypt with Azure Key Vault."""


def with_identity(components: Sequence[Json], client_id: str, *, tenant_id: str = "") -> tuple[Json, ...]:
    """Return the components of Flux with controllers that act as an identity of Azure.

    ``tenant_id``: objects of Flux name the accounts of the controllers, which then need the tenant.
    """
    named = identity_annotations(client_id, tenant_id)
    return tuple(_acting(one, client_id, named) if _concerned(one) else one for one in components)


def identity_annotations(client_id: str, tenant_id: str) -> dict[str, str]:
    """Return the annotations of an account that acts as an identity; ``tenant_id``: "" for none."""
    return {CLIENT_ID: client_id} | ({TENANT_ID: tenant_id} if tenant_id else {})


def _concerned(one: Json) -> bool:
    return one["kind"] in ("ServiceAccount", "Deployment") and one["metadata"]["name"] in CONTROLLERS


def _acting(one: Json, client_id: str, named: Mapping[str, str]) -> Json:
    if one["kind"] == "ServiceAccount":
        return stamped({**one, "metadata": _metadata(one["metadata"], "annotations", named)})
    template = one["spec"]["template"]
    pods = _metadata(template.get("metadata") or {}, "labels", {USES: "true"})
    pods = _metadata(pods, "annotations", {OF_PODS: client_id})
    spec = {**one["spec"], "template": {**template, "metadata": pods}}
    return stamped({**one, "metadata": _metadata(one["metadata"], "annotations", {}), "spec": spec})


def _metadata(metadata: Json, field: str, added: Mapping[str, str]) -> dict[str, Any]:
    """Return metadata with more labels or annotations, and without the digest of the object as it was."""
    values = {**(metadata.get(field) or {}), **added}
    values.pop(DIGEST, None)
    rest = {key: value for key, value in metadata.items() if key != field}
    return rest | ({field: values} if values else {})
