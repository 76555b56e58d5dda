"""The identity of Flux, out of reach of the teams of a cluster. Pure.

An object of Flux with ``provider: azure``, or that opens Azure Key Vault, acts as the controller itself where
it names no service account. With the flags here it acts as the account ``default`` of its namespace, which
has no identity (fluxcd.io/flux/installation/configuration/multitenancy). Controllers have these flags since
v1.7.0, which is in Flux 2.7 (their ``main.go``), and end at once when they get an account without the feature
gate. The platform's own objects then name the accounts of the controllers, and Flux asks for the tenant of an
account that an object names (``auth/azure/options.go`` of fluxcd/pkg).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from shared.fleet.desired import Desired
from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux.flux_objects import ComponentsError
from shared.fleet.kubernetes.flux.lockdown import is_locked_down, with_flags
from shared.fleet.kubernetes.flux.workload_identity import CONTROLLERS

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
    for one in _controllers(components):
        name, version = one["metadata"]["name"], _version(one)
        if version < _FIRST:
            raise ComponentsError(
                f"{name}: its image has no version of 1.7 or later, and before Flux 2.7 nothing keeps the "
                "teams of this cluster from acting as spec.flux.workloadIdentity; pin Flux 2.7 or later"
            )
        if any(f"{_GATE}=false" in arg for arg in _args(one)):
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
    if not any(_defines_field(one) for one in components):
        raise ComponentsError(
            f"this Flux Operator has no {_INSTANCE_FIELD}, and without it nothing keeps the teams of this "
            "cluster from acting as spec.flux.workloadIdentity; pin a newer operator"
        )
    return {"objectLevelWorkloadIdentity": True, _INSTANCE_FIELD: True}


def lets_accounts_act(components: Sequence[Json]) -> tuple[Json, ...]:
    """Return the components with the feature gate, without which a source cannot act as a team's account."""
    new = {one["metadata"]["name"] for one in _controllers(components) if _version(one) >= _FIRST}
    return with_flags(components, dict.fromkeys(new & {SOURCE_ACCOUNT}, (_GATE_FLAG,)))


def _controllers(components: Sequence[Json]) -> Sequence[Json]:
    return [
        one for one in components if one["kind"] == "Deployment" and one["metadata"]["name"] in CONTROLLERS
    ]


def _version(deployment: Json) -> tuple[int, int]:
    """Return the version of a controller, (0, 0) for an image without one."""
    first = deployment["spec"]["template"]["spec"]["containers"][0]
    found = _VERSION.search(str(first.get("image") or ""))
    return (int(found[2]), int(found[3])) if found else (0, 0)


def _args(deployment: Json) -> Sequence[str]:
    return deployment["spec"]["template"]["spec"]["containers"][0].get("args") or ()


def _defines_field(one: Json) -> bool:
    """Return whether an object defines FluxInstance with the field, or with any."""
    if one["kind"] != "CustomResourceDefinition" or one["spec"]["names"]["kind"] != "FluxInstance":
        return False
    for version in one["spec"]["versions"]:
        spec = (version["schema"]["openAPIV3Schema"].get("properties") or {}).get("spec") or {}
        cluster = (spec.get("properties") or {}).get("cluster") or {}
        if spec.get("x-kubernetes-preserve-unknown-fields") or _INSTANCE_FIELD in (
            cluster.get("properties") or {}
        ):
            return True
    return False
