"""The managed namespaces of a cluster in Azure, by their resource ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.fleet.resource_ids import ClusterId
from shared.fleet.systems.cluster_systems import systems_in

_NAMESPACES = "/managednamespaces/"


def managed_in(document: Mapping[str, Any]) -> Sequence[str]:
    """Return the resource ids, in lower case, of all managed namespaces of a stored form."""
    spec = document["spec"]
    cluster = ClusterId(spec["subscriptionId"], spec["resourceGroup"], document["name"])
    return tuple(
        f"{cluster.resource}{_NAMESPACES}{name}".lower()
        for one in systems_in(document)
        if one.get("managedNamespaces") is not None
        for name in one["namespaces"]
    )


def is_managed_namespace(resource: str) -> bool:
    """Return whether a resource id is that of a managed namespace."""
    return _NAMESPACES in resource


def namespaces_of(resources: Sequence[str]) -> frozenset[str]:
    """Return the names of the managed namespaces among resource ids."""
    return frozenset(each.rpartition("/")[2] for each in resources if is_managed_namespace(each))
