"""Import: the manifest of a managed cluster, from two reads of Azure. Nothing is written."""

from __future__ import annotations

import re

from shared.fleet.aks.ownership import Owner
from shared.fleet.importing.importer import NotImportable, document, imported
from shared.fleet.resource_ids import ClusterId
from shared.jobs.failures.errors import ReconcileError
from shared.pipeline.api import schema
from shared.pipeline.http_result import HttpResult, rejected
from shared.ports import Ports
from shared.ports.azure import GetCluster, ListMaintenance

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
