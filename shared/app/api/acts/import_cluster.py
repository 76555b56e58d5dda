"""Clusters read from Azure for an operator: an import, and a comparison with files. Nothing is written."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shared.app.access.rate_limiter import RateLimited, RateLimiter
from shared.app.api import schema
from shared.app.api.parts import iso
from shared.app.http_result import HttpResult, rejected, unknown_cluster
from shared.azure.importer import NotImportable, document, imported
from shared.azure.ownership import Owner
from shared.cluster.conditions import shown_phase
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.record import ClusterRecord
from shared.ports import Ports
from shared.ports.azure import GetCluster, ListMaintenance
from shared.resource_ids import ClusterId

_RESOURCE = re.compile(
    r"(?i)/subscriptions/(?P<subscription>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    r"/resourceGroups/(?P<group>[\w\-.()]{0,89}[\w\-()])"
    r"/providers/Microsoft\.ContainerService/managedClusters/(?P<name>[A-Za-z0-9_-]{1,63})/?"
)
"""A resource group's name does not end with a period: learn.microsoft.com, "Naming rules and restrictions for
Azure resources". So none is a step upwards in an address."""
MAX_LEFT = 200


def import_cluster(resource: str, ports: Ports) -> HttpResult:
    """Return the manifest of the cluster with an ARM resource id."""
    match = _RESOURCE.fullmatch(resource.strip())
    if match is None:
        form = ClusterId("SUBSCRIPTION", "GROUP", "NAME").resource
        return rejected(400, f"resource must be the id of a managed cluster, such as {form}")
    cluster = ClusterId(match["subscription"].lower(), match["group"], match["name"])
    config = ports.config
    owner = Owner(config.fleet, config.repository, cluster.name.lower(), config.previous_repository)
    try:
        existing = ports.azure.call(GetCluster(cluster))
        if existing is None:
            missing = f"there is no managed cluster {cluster.name} in {cluster.resource_group}"
            return rejected(404, f"{missing}, or Roadstead's identity may not see it")
        windows = ports.azure.call(ListMaintenance(cluster))
        result = imported(cluster, owner, existing, windows)
    except NotImportable as error:
        return rejected(409, str(error))
    except ReconcileError as error:
        return rejected(502, f"Azure could not be read: {error.kind}: {error}")
    view: schema.Imported = {
        "resource": cluster.resource,
        "manifest": document(result.name, result.short),
        "spec": dict(result.spec),
        "left": list(result.left[:MAX_LEFT]),
        "differences": list(result.differences[:MAX_LEFT]),
    }
    return HttpResult(200, view)


# Clusters as Azure shows them now, to compare files with them that nobody has pushed. It writes nothing.

WRONG_NAMES = f"clusters must be 1 to {schema.LIVE_CLUSTERS} names, separated by commas"


def read_live(names: Sequence[str], ports: Ports) -> HttpResult:
    """Return these clusters as Azure shows them, each read once, with a token of the read limit.

    Only clusters with a record are read, where their records say. One that cannot be read has the reason.
    """
    found = [(name, ports.state.cluster(name)) for name in names]
    for name, record in found:
        if record is None:
            return rejected(404, unknown_cluster(name, ports))
    reading = RateLimiter(None, ports).over(ports)
    view: schema.Live = {
        "fleet": ports.config.fleet,
        "repository": ports.config.repository,
        "previousRepository": ports.config.previous_repository,
        "readAt": iso(ports.clock()),
        "clusters": [_read(record, reading) for _, record in found if record is not None],
    }
    return HttpResult(200, view)


def _read(record: ClusterRecord, ports: Ports) -> schema.LiveCluster:
    existing, problem = None, ""
    try:
        if record.desired.is_existing:
            problem = "it is not in Azure: checks read it from inside"
        else:
            existing = ports.azure.call(GetCluster(record.desired.id))
    except RateLimited as limited:
        problem = str(limited)
    except ReconcileError as error:
        problem = f"{error.kind}: {error}"
    return {
        "name": record.name,
        "resource": "" if record.desired.is_existing else record.desired.id.resource,
        "phase": shown_phase(record).value,
        "existing": dict(existing) if existing is not None else None,
        "unmanaged": list(record.verified.unmanaged) if record.verified else None,
        "problem": problem,
    }
