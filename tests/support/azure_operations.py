"""Every operation of Azure, and an example of each."""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from localcloud.azure.world.access.policy_assignments import DEFINITIONS
from localcloud.common.clock import ManualClock
from shared.ports import azure
from shared.ports.azure import AzureCall, states_of
from shared.ports.azure.clusters import events_between
from shared.resource_ids import ManagedIdentityId, RegionId, SubscriptionId
from tests.support.arm_bodies import window
from tests.support.azure_ports import CLUSTER, SUBSCRIPTION, body, pool

_MODULES = [import_module(found.name) for found in iter_modules(azure.__path__, f"{azure.__name__}.")]
OPERATIONS: list[type[AzureCall[Any]]] = [
    found
    for module in _MODULES
    for found in vars(module).values()
    if isinstance(found, type) and found.__module__ == module.__name__
    if issubclass(found, AzureCall) and (found.sdk or found.request)
]


def example(kind: type[AzureCall[Any]]) -> AzureCall[Any]:
    """Return the operation on what ``Azure.with_cluster`` has created; any other field has its own name."""
    target = {
        **{"GroupId": CLUSTER.group, "ClusterId": CLUSTER},
        **{"RegionId": RegionId(SUBSCRIPTION, "eastus"), "SubscriptionId": SubscriptionId(SUBSCRIPTION)},
    }
    target["ManagedIdentityId"] = ManagedIdentityId(SUBSCRIPTION, CLUSTER.resource_group, "shop")
    tags = {"tags": {"team": "shop"}}
    applied: dict[str, Any] = {"scope": "cluster", "namespace": "flux-system", "sourceKind": "GitRepository"}
    applied |= {"gitRepository": {"url": "https://github.com/example/fleet"}}
    below = {
        "put_extension": {"properties": {"extensionType": "microsoft.flux"}},
        "put_flux_configuration": {"properties": applied},
    }
    bodies = below | {
        "patch_cluster": tags,
        "put_cluster": body(),
        "put_pool": pool(),
        "put_maintenance": window(),
        "put_managed_namespace": {"location": "westeurope", "properties": {"deletePolicy": "Keep"}},
        "put_policy_assignment": {"properties": {"policyDefinitionId": next(iter(DEFINITIONS))}},
    }
    given: dict[str, Any] = {
        "target": target[next(str(field.type) for field in fields(kind) if field.name == "target")],
        "body": bodies.get(kind.name, {"location": "westeurope"}),
        "pool": "system",
        "group": "",
        "configuration": "default" if kind.name == "put_maintenance" else "flux-system",
        "extension": "flux",
        "namespace": "Microsoft.Compute" if kind.name == "list_features" else "shop",
        "etag": None,
        **{"since": "2026-10-01", "until": "2026-10-30", "skip": ""},
        "only_new": False,
        "page": "",
        "credential": "roadstead-shop",
        "principal": "00000000-0000-0000-0000-0000000000aa",
        "role": "AcrPull",
        "scope": f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{CLUSTER.resource_group}",
        "assignment": "00000000-0000-0000-0000-0000000000bb",
        "filter": states_of(["a"])
        if kind.name == "query_policy_states"
        else events_between(ManualClock()(), ManualClock()()),
    }
    return kind(**{field.name: given.get(field.name, field.name) for field in fields(kind)})
