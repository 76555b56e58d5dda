"""The manifest of a managed cluster that exists: two reads of Azure, nothing is written or kept."""

from __future__ import annotations

import re

from shared.fleet.aks.ownership import Owner
from shared.fleet.importing.importer import NotImportable, document, imported
from shared.fleet.resource_ids import ClusterId
from shared.jobs.errors import ReconcileError
from shared.pipeline.api.approval import Answer
from shared.ports import Ports
from shared.ports.azure import GetCluster, ListMaintenance

_RESOURCE = re.compile(
    r"(?i)/subscriptions/(?P<subscription>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    r"/resourceGroups/(?P<group>[\w\-.()]{1,90})"
    r"/providers/Microsoft\.ContainerService/managedClusters/(?P<name>[A-Za-z0-9_-]{1,63})/?"
)
MAX_LEFT = 200


def import_cluster(resource: str, ports: Ports) -> Answer:
    """Return the manifest of the cluster with an ARM resource id.

    ``spec`` says everything, ``manifest`` leaves out what means the same unsaid; ``left`` are sentences
    about what it cannot say, ``differences`` the fields that adopting the cluster by it would change.
    """
    match = _RESOURCE.fullmatch(resource.strip())
    if match is None:
        form = ClusterId("SUBSCRIPTION", "GROUP", "NAME").resource
        return Answer(400, {"error": f"resource must be the id of a managed cluster, as {form}"})
    cluster = ClusterId(match["subscription"].lower(), match["group"], match["name"])
    config = ports.config
    owner = Owner(config.fleet, config.repository, cluster.name.lower(), config.previous_repository)
    try:
        existing = ports.azure.call(GetCluster(cluster))
        if existing is None:
            words = f"there is no managed cluster {cluster.name} in {cluster.resource_group}"
            return Answer(404, {"error": f"{words}, or Roadstead's identity may not see it"})
        windows = ports.azure.call(ListMaintenance(cluster))
        found = imported(cluster, owner, existing, windows)
    except NotImportable as error:
        return Answer(409, {"error": str(error)})
    except ReconcileError as error:
        return Answer(502, {"error": f"Azure could not be read: {error.kind}: {error}"})
    return Answer(
        200,
        {
            "resource": cluster.resource,
            "manifest": document(found.name, found.short),
            "spec": found.spec,
            "left": list(found.left[:MAX_LEFT]),
            "differences": list(found.differences[:MAX_LEFT]),
        },
    )
