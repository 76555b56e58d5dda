"""What operators have read of Azure: an import, clusters as they are now, a drill. Nothing is written.

A drill rebuilds the records next to the live ones, as after a loss of the tables, and compares. It reads one
list for each subscription, and decides with the functions of a rebuild; what is inside clusters, checks read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from shared.app.access.context import StepContext
from shared.app.access.rate_limiter import RateLimited, RateLimiter
from shared.app.api import schema
from shared.app.api.acts import Refusal, answers, known_cluster
from shared.app.api.parts import projected
from shared.app.repository import read_desired
from shared.azure.changes.writes import ImmutableChange
from shared.azure.cluster_body import cluster_write
from shared.azure.differences import differences_of
from shared.azure.importer import NotImportable, document, imported
from shared.azure.ownership import CLUSTER_TAG, FLEET_TAG, LIFE_TAG, Owner, tag
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.findings.conditions import shown_phase
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import NOTHING_REMOVED
from shared.cluster.transitions.acceptance import accept_new
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.language.stored_cluster import StoredCluster
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


@answers(200)
def import_cluster(resource: str, ports: Ports) -> schema.Imported:
    """Return the manifest of the cluster with an ARM resource id."""
    match = _RESOURCE.fullmatch(resource.strip())
    if match is None:
        form = ClusterId("SUBSCRIPTION", "GROUP", "NAME").resource
        raise Refusal(400, f"resource must be the id of a managed cluster, such as {form}")
    cluster = ClusterId(match["subscription"].lower(), match["group"], match["name"])
    config = ports.config
    owner = Owner(config.fleet, config.repository, cluster.name.lower(), config.previous_repository)
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

WRONG_NAMES = f"clusters must be 1 to {schema.LIVE_CLUSTERS} names, separated by commas"


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
        unmanaged=record.observation.verified.unmanaged if record.observation.verified else None,
        problem=problem,
    )


_UID = "drill"
_INSIDE = "it is not in Azure: a job would read inside it whose it is, and write nothing"
_NO_ID = "the app has no ROADSTEAD_INSTALLATION, so that it would be another installation"


@answers(200)
def drill(ports: Ports) -> schema.Drill:
    """Return what a loss of all tables would cost now, at the commit that was planned last."""
    fleet, began = ports.state.fleet(), ports.elapsed()
    if not fleet.commit:
        raise Refusal(409, "no commit was planned yet")
    try:
        desired = read_desired(fleet.commit, {}, ports)
    except ReconcileError as error:
        raise Refusal(502, f"the fleet repository could not be read: {error.kind}: {error}") from error
    records = {record.name: record for record in ports.state.clusters()}
    clusters = [_resolved(cluster) for _, cluster in sorted(desired.clusters.items())]
    listed, unread = _list(
        _subscriptions([*clusters, *(record.desired for record in records.values())]), ports
    )
    return projected(
        schema.Drill,
        ports.config,
        commit=fleet.commit,
        readAt=ports.clock(),
        clusters=[
            _drilled(cluster, records.get(cluster.name), listed, unread, ports) for cluster in clusters
        ],
        orphans=_orphans(clusters, records, listed, ports),
        invalid=sorted(desired.invalid),
        unread=[{"subscription": name, "problem": problem} for name, problem in sorted(unread.items())],
        seconds=round(ports.elapsed() - began, 1),
    )


def _resolved(cluster: Desired) -> Desired:
    return StoredCluster(cluster.document())


def _subscriptions(clusters: Iterable[Desired]) -> list[str]:
    return sorted(
        {cluster.azure_names.subscription_id.lower() for cluster in clusters if not cluster.is_attached}
    )


def _list(subscriptions: Sequence[str], ports: Ports) -> tuple[Mapping[str, Json], Mapping[str, str]]:
    """Return the clusters by their places, and why a subscription could not be listed."""
    listed: dict[str, Json] = {}
    unread: dict[str, str] = {}
    found = ports.together(partial(_listed, ports=ports), subscriptions)
    for subscription, entry in zip(subscriptions, found, strict=True):
        if isinstance(entry, str):
            unread[subscription] = entry
        else:
            listed |= entry
    return listed, unread


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


def _drilled(
    desired: Desired,
    record: ClusterRecord | None,
    listed: Mapping[str, Json],
    unread: Mapping[str, str],
    ports: Ports,
) -> schema.DrilledCluster:
    """Return what would happen to a cluster of git."""
    live = listed.get(desired.id.resource.lower())
    rebuilt = accept_new(desired, uid=_UID, commit="", now=ports.clock())
    outcome, reason, differs = _outcome(rebuilt, live, unread, ports)
    unlike = list(_unlike(rebuilt, record, live)) if outcome in ("rebuilt", "differs") else []
    return {"name": desired.name, "outcome": outcome, "reason": reason, "differs": differs, "unlike": unlike}


def _outcome(
    rebuilt: ClusterRecord, live: Json | None, unread: Mapping[str, str], ports: Ports
) -> tuple[schema.DrillOutcome, str, list[str]]:
    """Return the outcome, its reason, and the fields that differ."""
    if rebuilt.desired.is_attached:
        return "unknown", _INSIDE, []
    problem = unread.get(rebuilt.desired.azure_names.subscription_id.lower())
    if problem is not None:
        return "unknown", problem, []
    if live is None:
        return "create", "Azure has no such cluster, so that it would be created", []
    if not ports.config.installation:
        return "takeover", _NO_ID, []
    owner = StepContext.of(
        replace(rebuilt, azure=replace(rebuilt.azure, life=tag(live, LIFE_TAG) or "")), ports
    ).owner
    if not owner.owns(live):
        return "takeover", owner.describe_tags(live), []
    rivals = owner.rivals(live)
    if rivals:
        named = " and ".join(dict.fromkeys(str(rival) if rival.id else "no installation" for rival in rivals))
        return "takeover", f"its tags name {named}", []
    differs = _differences(rebuilt.desired, owner, live)
    return ("differs", "it is not as git has it", differs) if differs else ("rebuilt", "", [])


def _differences(desired: Desired, owner: Owner, live: Json) -> list[str]:
    found = [*map(str, differences_of(desired, owner, live))]
    if found:
        return found
    try:
        write = cluster_write(desired, owner, live)
    except ImmutableChange as error:
        return [str(error)]
    return ["its tags, or an operation that failed"] if write is not None else []


def _unlike(rebuilt: ClusterRecord, record: ClusterRecord | None, live: Json | None) -> Iterator[str]:
    """Yield what of a live record a rebuilt one would lack."""
    if record is None:
        yield "there is no record of it now"
        return
    life = tag(live, LIFE_TAG) if live else None
    if life != (record.azure.life or record.uid):
        yield f"its record has the life {record.azure.life or record.uid}, and its tag {life or 'none'}"
    if rebuilt.digest != record.digest:
        yield "its accepted spec is not that of the commit"
    if record.removals != NOTHING_REMOVED:
        yield "what accepted commits took from it is still to be removed"
    if record.ownership.predecessors:
        yield "its resource group may have the tag of a former installation, and would stay after a delete"


def _orphans(
    clusters: Iterable[Desired],
    records: Mapping[str, ClusterRecord],
    listed: Mapping[str, Json],
    ports: Ports,
) -> Iterator[schema.DrilledOrphan]:
    """Yield the clusters with the fleet's tags that git does not have."""
    known, config = {cluster.id.resource.lower() for cluster in clusters}, ports.config
    for place, live in sorted(listed.items()):
        name = tag(live, CLUSTER_TAG) or ""
        owner = Owner(config.fleet, config.repository, name, config.previous_repository)
        if place in known or not name or not owner.owns(live):
            continue
        record = records.get(name)
        yield {
            "name": name,
            "resource": str(live["id"]),
            "deleting": record is not None and record.deleting,
        }
