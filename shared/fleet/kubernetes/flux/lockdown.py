"""Flux locked down for several tenants, on a cluster that has systems of teams.

The flags, and the service account of the platform's own Kustomizations, are those of
fluxcd.io/flux/installation/configuration/multitenancy: an object of Flux refers to none in another namespace,
a Kustomization or HelmRelease that names no service account has the rights of the account ``default`` of its
namespace, and nothing is fetched from a remote base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared.fleet.desired import Desired
from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux.flux_objects import DIGEST, stamped

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


def without_lockdown(deployments: Sequence[Json]) -> Sequence[str]:
    """Return the controllers, of these Deployments of a cluster, that lack one of the flags."""
    return [one["metadata"]["name"] for one in deployments if _lacking(one, FLAGS.get(_name(one), ()))]


def with_flags(components: Sequence[Json], flags: Mapping[str, Sequence[str]]) -> tuple[Json, ...]:
    """Return components with more flags, by Deployment; a flag that the file sets itself stays."""
    return tuple(
        _flagged(one, flags.get(_name(one), ())) if one["kind"] == "Deployment" else one for one in components
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
