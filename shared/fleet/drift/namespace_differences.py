"""The managed namespaces of a cluster's systems, compared with those in Azure. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from shared.fleet.desired import Desired
from shared.fleet.drift.differences import Difference
from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.managed_namespaces import (
    differing_fields,
    live_fields,
    managed_by_azure,
    wanted_fields,
)
from shared.fleet.systems.cluster_systems import read_system

NAMESPACES = "managedNamespaces["
"""How the path of a difference of a managed namespace begins."""


def namespace_path(namespace: str, field: str = "") -> str:
    """Return the path of a managed namespace, or of a field of it."""
    return ".".join(filter(None, (f"{NAMESPACES}{namespace}]", field)))


def namespace_differences(desired: Desired, live: Mapping[str, Json]) -> tuple[Difference, ...]:
    """Return the fields in which managed namespaces differ, whatever a job leaves; ``live`` is by name."""
    found: list[Difference] = []
    systems = tuple(read_system(one) for one in desired.systems)
    for name, system in sorted(managed_by_azure(systems).items()):
        if name not in live:
            found.append(Difference(namespace_path(name), {"system": system.name}, None))
            continue
        wanted, has = wanted_fields(system), live_fields(live[name])
        found += [
            Difference(namespace_path(name, field), wanted[field] or None, has[field] or None)
            for field in differing_fields(has, wanted)
        ]
    return tuple(found)
