"""What operators have read of Azure: an import, clusters as they are now. Nothing is written."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shared.app.access.context import StepContext
from shared.app.access.rate_limiter import RateLimited, RateLimiter
from shared.app.api import schema
from shared.app.api.acts import Refusal, answers, known_cluster
from shared.app.api.projection import projected
from shared.azure.differences import beyond_git
from shared.azure.importer import NotImportable, document, imported
from shared.azure.ownership import FLEET_TAG, OwnerTags, tag
from shared.cluster.divergence.verification import known_beyond
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.findings.conditions import shown_phase
from shared.cluster.record import ClusterRecord
from shared.json_tree import Json
from shared.ports import Ports
from shared.ports.azure import GetCluster, ListClusters, ListMaintenance, every_document
from shared.resource_ids import ClusterId, SubscriptionId

_RESOURCE = re.compile(
    r"(?i)/subscriptions/(?P<subscription>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    r"/resourceGroups/(?P<group>[\w\-.()]{0,89}[\w\-()])"
    r"/providers/Microsoft\.ContainerService/managedClusters/(?P<name>[A-Za-z0-9_-]{1,63})/?"
)
"""A resource group's name does not end with a period: learn.microsoft.com, "Naming rules and restrictions for
Azure resources". So none is a step upwards in an address."""
MAX_LEFT = 200
_SUBSCRIPTION = re.compile(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@answers(200)
def importable(subscription: str, ports: Ports) -> schema.Importable:
    """Return the managed clusters of a subscription, each with the fleet that manages it already."""
    if not _SUBSCRIPTION.fullmatch(subscription):
        raise Refusal(400, "subscription must be the id of one, such as 00000000-0000-0000-0000-000000000001")
    listed = _listed(subscription.lower(), ports=ports)
    if isinstance(listed, str):
        raise Refusal(502, f"Azure could not be read: {listed}")
    return {
        "subscription": subscription.lower(),
        "clusters": [
            {"resource": str(live["id"]), "fleet": tag(live, FLEET_TAG) or ""}
            for _, live in sorted(listed.items())
        ],
    }


def _listed(subscription: str, *, ports: Ports) -> dict[str, Json] | str:
    """Return the clusters of a subscription by their places, or why they could not be listed."""
    azure = RateLimiter(None, ports).over(ports).azure
    try:
        listed = every_document(azure, ListClusters(SubscriptionId(subscription)))
        return {str(cluster["id"]).lower(): cluster for cluster in listed}
    except RateLimited as limited:
        return str(limited)
    except ReconcileError as error:
        return f"{error.kind}: {error}"


@answers(200)
def import_cluster(resource: str, ports: Ports) -> schema.Import:
    """Return the manifest of the cluster with an ARM resource id."""
    match = _RESOURCE.fullmatch(resource.strip())
    if match is None:
        form = ClusterId("SUBSCRIPTION", "GROUP", "NAME").resource
        raise Refusal(400, f"resource must be the id of a managed cluster, such as {form}")
    cluster = ClusterId(match["subscription"].lower(), match["group"], match["name"])
    config = ports.config
    owner = OwnerTags(config.fleet, config.repository, cluster.name.lower(), config.previous_repository)
    try:
        live = ports.azure.call(GetCluster(cluster))
        if live is None:
            missing = f"there is no managed cluster {cluster.name} in {cluster.resource_group}"
            raise Refusal(404, f"{missing}, or Roadstead's identity may not see it")
        windows = ports.azure.call(ListMaintenance(cluster))
        result = imported(cluster, owner, live, windows)
    except NotImportable as error:
        raise Refusal(409, str(error)) from error
    except ReconcileError as error:
        raise Refusal(502, f"Azure could not be read: {error.kind}: {error}") from error
    return {
        "resource": cluster.resource,
        "manifest": document(result.name, result.short),
        "spec": dict(result.spec),
        "left": list(result.left[:MAX_LEFT]),
        "differences": list(result.differences[:MAX_LEFT]),
    }


# Clusters as Azure shows them now, to compare files with them that nobody has pushed. It writes nothing.


@answers(200)
def read_live(names: Sequence[str], ports: Ports) -> schema.Live:
    """Return these clusters as Azure shows them, each read once, with a token of the read limit.

    Only clusters with a record are read, where their records say. One that cannot be read has the reason.
    """
    records = [known_cluster(name, ports.state.cluster(name), ports) for name in names]
    reading = RateLimiter(None, ports).over(ports)
    return projected(
        schema.Live,
        ports.config,
        readAt=ports.clock(),
        clusters=[_read(record, reading) for record in records],
    )


def _read(record: ClusterRecord, ports: Ports) -> schema.LiveCluster:
    live, problem = None, ""
    try:
        if record.desired.is_attached:
            problem = "it is not in Azure: checks read it from inside"
        else:
            live = ports.azure.call(GetCluster(record.desired.id))
    except RateLimited as limited:
        problem = str(limited)
    except ReconcileError as error:
        problem = f"{error.kind}: {error}"
    return projected(
        schema.LiveCluster,
        record,
        resource="" if record.desired.is_attached else record.desired.id.resource,
        phase=shown_phase(record),
        live=live,
        lowered=record.divergence.lowered,
        unmanaged=_unmanaged(record, live, ports),
        removed={pool: list(keys) for pool, keys in record.removals.keys.items()},
        problem=problem,
    )


def _unmanaged(record: ClusterRecord, live: Json | None, ports: Ports) -> Sequence[str] | None:
    """Return the names of what is beyond git and known of a cluster, None where nobody looked."""
    verified = record.observation.verified
    if verified is None or live is None or record.desired.problem:
        return verified.unmanaged if verified else None
    return known_beyond(verified, beyond_git(record.desired, StepContext.of(record, ports).owner, live))
