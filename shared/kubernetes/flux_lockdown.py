"""Flux locked down for several tenants: flags, its identity, and workload identity.

The flags, and the service account of the platform's own Kustomizations, are those of
fluxcd.io/flux/installation/configuration/multitenancy: an object of Flux refers to none in another namespace,
a Kustomization or HelmRelease that names no service account has the rights of the account ``default`` of its
namespace, and nothing is fetched from a remote base.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from shared.json_tree import Json
from shared.kubernetes.flux_objects import DIGEST, ComponentsError, stamped
from shared.language.desired import Desired

PLATFORM_ACCOUNT = "kustomize-controller"
"""The service account, in the namespace of Flux, with which the platform's own Kustomizations are applied."""
_OWN_NAMESPACE = "--no-cross-namespace-refs=true"
_DEFAULT_ACCOUNT = "--default-service-account=default"
FLAGS: Mapping[str, tuple[str, ...]] = {
    "kustomize-controller": (_OWN_NAMESPACE, "--no-remote-bases=true", _DEFAULT_ACCOUNT),
    "helm-controller": (_OWN_NAMESPACE, _DEFAULT_ACCOUNT),
    "notification-controller": (_OWN_NAMESPACE,),
    "image-reflector-controller": (_OWN_NAMESPACE,),
    "image-automation-controller": (_OWN_NAMESPACE,),
}
"""What each controller of Flux gets, by its Deployment."""


def is_locked_down(desired: Desired) -> bool:
    """Return whether Flux is locked down: the cluster has systems, or had some, and its manifest allows it.

    It stays so after the last one: what a team left behind would have all rights otherwise, and Flux may
    still apply it while it is being removed.
    """
    return bool(desired.systems or desired.had_systems) and desired.spec.flux.lockdown


def locked_down(components: Sequence[Json]) -> tuple[Json, ...]:
    """Return the components of Flux with the flags; a flag that the file sets itself stays."""
    return with_flags(components, FLAGS)


def with_flags(components: Sequence[Json], flags: Mapping[str, Sequence[str]]) -> tuple[Json, ...]:
    """Return components with more flags, by Deployment; a flag that the file sets itself stays."""
    return tuple(
        _flagged(component, flags.get(_name(component), ()))
        if component["kind"] == "Deployment"
        else component
        for component in components
    )


def _is_given(flag: str, args: Sequence[str]) -> bool:
    """Return whether arguments have a flag; of ``--feature-gates=A=true,B=true``, each gate is one."""
    name, _, value = flag.partition("=")
    gate = value.rpartition("=")[0]
    return any(arg.startswith(f"{name}=") and gate in arg for arg in args)


def _name(deployment: Json) -> str:
    return str(deployment["metadata"]["name"])


def _args(deployment: Json) -> Sequence[str]:
    return deployment["spec"]["template"]["spec"]["containers"][0].get("args") or ()


def _lacking(deployment: Json, flags: Sequence[str]) -> Sequence[str]:
    return [flag for flag in flags if not _is_given(flag, _args(deployment))]


def _flagged(deployment: Json, flags: Sequence[str]) -> Json:
    more = _lacking(deployment, flags)
    if not more:
        return deployment
    template = deployment["spec"]["template"]
    first, *others = template["spec"]["containers"]
    containers = [{**first, "args": [*_args(deployment), *more]}, *others]
    spec = {
        **deployment["spec"],
        "template": {**template, "spec": {**template["spec"], "containers": containers}},
    }
    metadata = dict(deployment["metadata"])
    metadata["annotations"] = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != DIGEST}
    if not metadata["annotations"]:
        del metadata["annotations"]
    return stamped({**deployment, "metadata": metadata, "spec": spec})


# Flux as an identity of Azure: what its controllers need to get tokens through workload identity.
#
# The annotation of the ServiceAccount and the label of the pods are those of azure.github.io/azure-
# workload-identity and of fluxcd.io/flux/integrations/azure. The webhook of AKS gives pods with that label
# the token, and the client id of the annotation, when they are created. So another client id has to replace
# the pods.

TENANT_ID = "azure.workload.identity/tenant-id"
CLIENT_ID, USES = "azure.workload.identity/client-id", "azure.workload.identity/use"
OF_PODS = "roadstead.dev/workload-identity"
"""The annotation of the pods with the client id, so that they are replaced with it."""
CONTROLLERS = ("source-controller", "kustomize-controller")
"""Those that pull sources, and that decrypt with Azure Key Vault."""


def with_identity(components: Sequence[Json], client_id: str, *, tenant_id: str = "") -> tuple[Json, ...]:
    """Return the components of Flux with controllers that act as an identity of Azure."""
    named = identity_annotations(client_id, tenant_id)
    return tuple(
        _acting(component, client_id, named) if _concerned(component) else component
        for component in components
    )


def identity_annotations(client_id: str, tenant_id: str) -> dict[str, str]:
    """Return the annotations of an account that acts as an identity; ``tenant_id``: "" for none."""
    return {CLIENT_ID: client_id} | ({TENANT_ID: tenant_id} if tenant_id else {})


def _concerned(document: Json) -> bool:
    return (
        document["kind"] in ("ServiceAccount", "Deployment") and document["metadata"]["name"] in CONTROLLERS
    )


def _acting(document: Json, client_id: str, named: Mapping[str, str]) -> Json:
    if document["kind"] == "ServiceAccount":
        return stamped({**document, "metadata": _metadata(document["metadata"], "annotations", named)})
    template = document["spec"]["template"]
    pods = _metadata(template.get("metadata") or {}, "labels", {USES: "true"})
    pods = _metadata(pods, "annotations", {OF_PODS: client_id})
    spec = {**document["spec"], "template": {**template, "metadata": pods}}
    return stamped({**document, "metadata": _metadata(document["metadata"], "annotations", {}), "spec": spec})


def _metadata(metadata: Json, field: str, added: Mapping[str, str]) -> dict[str, Any]:
    """Return metadata with more labels or annotations, and without the digest of the object as it was."""
    values = {**(metadata.get(field) or {}), **added}
    values.pop(DIGEST, None)
    rest = {key: value for key, value in metadata.items() if key != field}
    return rest | ({field: values} if values else {})


# The identity of Flux, out of reach of the teams of a cluster. Pure.
#
# An object of Flux with ``provider: azure``, or that opens Azure Key Vault, acts as the controller itself
# where it names no service account. With the flags here it acts as the account ``default`` of its
# namespace, which has no identity (fluxcd.io/flux/installation/configuration/multitenancy). Controllers
# have these flags since v1.7.0, which is in Flux 2.7 (their ``main.go``), and end at once when they get an
# account without the feature gate. The platform's own objects then name the accounts of the controllers,
# and Flux asks for the tenant of an account that an object names (``auth/azure/options.go`` of fluxcd/pkg).

SOURCE_ACCOUNT = "source-controller"
"""The service account, in the namespace of Flux, as which the platform's own sources are pulled."""
_GATE = "ObjectLevelWorkloadIdentity"
_GATE_FLAG = f"--feature-gates={_GATE}=true"
_FLAGS: Mapping[str, tuple[str, ...]] = {
    "source-controller": (_GATE_FLAG, "--default-service-account=default"),
    "kustomize-controller": (
        _GATE_FLAG,
        "--default-decryption-service-account=default",
        "--default-kubeconfig-service-account=default",
    ),
}
_FIRST = (1, 7)
_VERSION = re.compile(r":(v?(\d+)\.(\d+)[^/@]*)(@[^/]*)?$")
_INSTANCE_FIELD = "multitenantWorkloadIdentity"
_OLDER = re.compile(r"v?2\.[0-6](\.|$)")


def keeps_identity(desired: Desired) -> bool:
    """Return whether Flux acts as an identity of Azure on a cluster where teams must not act as it."""
    return is_locked_down(desired) and desired.spec.flux.workload_identity is not None


def identity_kept(components: Sequence[Json]) -> tuple[Json, ...]:
    """Return the components of Flux with the flags; raise ComponentsError for controllers without them."""
    for controller in _controllers(components):
        name, version = controller["metadata"]["name"], _version(controller)
        if version < _FIRST:
            raise ComponentsError(
                f"{name}: its image has no version of 1.7 or later, and before Flux 2.7 nothing keeps the "
                "teams of this cluster from acting as spec.flux.workloadIdentity; pin Flux 2.7 or later"
            )
        if any(f"{_GATE}=false" in arg for arg in _args(controller)):
            raise ComponentsError(
                f"{name}: the feature gate {_GATE} is false, and so nothing keeps the teams of this cluster "
                "from acting as spec.flux.workloadIdentity; remove it from the arguments"
            )
    return with_flags(components, _FLAGS)


def identity_kept_by_operator(components: Sequence[Json], version: str) -> Mapping[str, bool]:
    """Return the fields of ``cluster`` of a FluxInstance; raise ComponentsError for an operator without them.

    The API server drops a field that the definition of the operator does not have, without an error
    (kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions, Field pruning).
    """
    if _OLDER.match(version):
        raise ComponentsError(
            f"before Flux 2.7 nothing keeps the teams of this cluster from acting as "
            f"spec.flux.workloadIdentity, and spec.flux.instance.distribution.version is {version}"
        )
    if not any(_defines_field(component) for component in components):
        raise ComponentsError(
            f"this Flux Operator has no {_INSTANCE_FIELD}, and without it nothing keeps the teams of this "
            "cluster from acting as spec.flux.workloadIdentity; pin a newer operator"
        )
    return {"objectLevelWorkloadIdentity": True, _INSTANCE_FIELD: True}


def lets_accounts_act(components: Sequence[Json]) -> tuple[Json, ...]:
    """Return the components with the feature gate, without which a source cannot act as a team's account."""
    new = {
        controller["metadata"]["name"]
        for controller in _controllers(components)
        if _version(controller) >= _FIRST
    }
    return with_flags(components, dict.fromkeys(new & {SOURCE_ACCOUNT}, (_GATE_FLAG,)))


def _controllers(components: Sequence[Json]) -> Sequence[Json]:
    return [
        component
        for component in components
        if component["kind"] == "Deployment" and component["metadata"]["name"] in CONTROLLERS
    ]


def _version(deployment: Json) -> tuple[int, int]:
    """Return the version of a controller, (0, 0) for an image without one."""
    first = deployment["spec"]["template"]["spec"]["containers"][0]
    found = _VERSION.search(str(first.get("image") or ""))
    return (int(found[2]), int(found[3])) if found else (0, 0)


def _defines_field(document: Json) -> bool:
    """Return whether an object defines FluxInstance with the field, or with any."""
    if document["kind"] != "CustomResourceDefinition" or document["spec"]["names"]["kind"] != "FluxInstance":
        return False
    for version in document["spec"]["versions"]:
        spec = (version["schema"]["openAPIV3Schema"].get("properties") or {}).get("spec") or {}
        cluster = (spec.get("properties") or {}).get("cluster") or {}
        if spec.get("x-kubernetes-preserve-unknown-fields") or _INSTANCE_FIELD in (
            cluster.get("properties") or {}
        ):
            return True
    return False
