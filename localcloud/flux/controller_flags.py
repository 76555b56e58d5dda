"""What the Deployment of a controller says: its flags, and with whose rights it applies."""

from __future__ import annotations

from localcloud.flux.inventory import ClusterClient
from localcloud.kubernetes.world.kinds import DEPLOYMENT
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At
from localcloud.kubernetes.world.rbac import ServiceAccount, ServiceAccountWorld

_NAMESPACE = "flux-system"


def flag(world: KubernetesWorld, controller: str, name: str) -> str:
    """Return a flag of a controller, "" where its Deployment does not set it."""
    found = world.find(At(DEPLOYMENT, controller, _NAMESPACE)) or {}
    pod = ((found.get("spec") or {}).get("template") or {}).get("spec") or {}
    args = [arg for container in pod.get("containers") or () for arg in container.get("args") or ()]
    given = (arg.removeprefix(f"--{name}=") for arg in args if arg.startswith(f"--{name}="))
    return next(given, "")


def account_of(world: KubernetesWorld, controller: str, named: str | None) -> str:
    """Return the account whose rights count: the one that an object names, or that of the lock-down."""
    return named or flag(world, controller, "default-service-account")


def applying(world: KubernetesWorld, controller: str, namespace: str, named: str | None) -> ClusterClient:
    """Return what applies an object: the controller's own rights, or those of an account of the namespace."""
    name = account_of(world, controller, named)
    return ServiceAccountWorld(world, ServiceAccount(namespace, name)) if name else world
