"""Resource group, cluster and node pools, each brought to the manifest by at most one PUT a time.

Waiting reads the resource again: that is limited per cluster, while operation statuses are limited for a
whole subscription (learn.microsoft.com/azure/aks/quotas-skus-regions).
"""

from __future__ import annotations

from shared.fleet.azure import ImmutableChange, cluster_body, group_body, pool_body
from shared.jobs.errors import Immutable, NotOwned, from_http
from shared.jobs.outcomes import Done, Fail, Outcome, Wait
from shared.jobs.row import ClusterRow
from shared.pipeline.steps.looks import Json, owner_of, provisioning_error, state_of
from shared.ports import Ports


def ensure_resource_group(row: ClusterRow, ports: Ports) -> Outcome:
    """Have the resource group; one that exists without our tags is used, never changed, never deleted."""
    desired = row.desired
    spec = desired.spec
    existing = ports.groups.get(spec.subscription_id, spec.resource_group)
    if existing is None:
        ports.groups.put(spec.subscription_id, spec.resource_group, group_body(desired, owner_of(row, ports)))
        return Done(f"made the resource group {spec.resource_group}")
    if state_of(existing) == "Deleting":
        return Wait(poll(ports), f"the resource group {spec.resource_group} is still being deleted")
    return Done()


def ensure_cluster(row: ClusterRow, ports: Ports) -> Outcome:
    """Bring the managed cluster to the spec; its node pools come with its creation."""
    desired, owner = row.desired, owner_of(row, ports)
    existing = ports.aks.get(desired.id)
    if existing is not None:
        hindrance = _hindrance(existing, row, ports)
        if hindrance:
            return hindrance
    try:
        body = cluster_body(desired, owner, existing)
    except ImmutableChange as error:
        return Fail(Immutable(str(error)))
    if body is None:
        return Done()
    ports.aks.put(desired.id, body, etag=_etag(existing))
    return Wait(
        poll(ports), "Azure is creating the cluster" if existing is None else "Azure is updating the cluster"
    )


def ensure_node_pools(row: ClusterRow, ports: Ports) -> Outcome:
    """Bring one node pool after the other to the spec; remove those of ours that git no longer has."""
    desired, owner = row.desired, owner_of(row, ports)
    existing = ports.aks.get(desired.id)
    if existing is None:
        return Wait(poll(ports), "Azure does not show the cluster yet")
    hindrance = _hindrance(existing, row, ports)
    if hindrance:
        return hindrance
    pools = {pool["name"]: pool for pool in existing["properties"].get("agentPoolProfiles") or ()}
    for pool in desired.spec.node_pools:
        profile = pools.get(pool.name)
        if profile and profile.get("provisioningState") == "Failed" and _failed_under_us(row):
            return _failure(profile, f"the node pool {pool.name}")
        try:
            body = pool_body(pool, desired, owner, profile)
        except ImmutableChange as error:
            return Fail(Immutable(str(error)))
        if body is not None:
            ports.aks.put_pool(desired.id, pool.name, body, etag=_etag(profile))
            verb = "updating" if profile else "creating"
            return Wait(poll(ports), f"Azure is {verb} the node pool {pool.name}")
    wanted = {pool.name for pool in desired.spec.node_pools}
    for name, profile in pools.items():
        if name not in wanted and owner.owns(profile):
            ports.aks.delete_pool(desired.id, name)
            return Wait(poll(ports), f"Azure is deleting the node pool {name}")
    left = sorted(set(pools) - wanted)
    return Done(f"left alone, not made by us: node pool {', '.join(left)}" if left else "")


def poll(ports: Ports) -> float:
    """Return the seconds until the next look at Azure, spread so that clusters do not march in step."""
    return ports.config.poll_seconds * (0.9 + 0.2 * ports.random())


def _hindrance(existing: Json, row: ClusterRow, ports: Ports) -> Outcome | None:
    """Return what keeps us from writing to the cluster now, None when nothing does."""
    properties = existing["properties"]
    if not owner_of(row, ports).owns(existing):
        return Fail(
            NotOwned(
                f"the cluster {row.name} exists in {row.desired.spec.resource_group} but does not carry the "
                "tags of this fleet, so it is not touched; use another name, or remove it by hand"
            )
        )
    if (properties.get("powerState") or {}).get("code") == "Stopped":
        return Wait(poll(ports) * 4, "the cluster is stopped; start it, Azure allows nothing else")
    busy = _busy(properties)
    if busy:
        return Wait(poll(ports), busy)
    if state_of(existing) == "Failed" and _failed_under_us(row):
        return _failure(properties, f"the cluster {row.name}")
    return None


def _failure(properties: Json, what: str) -> Fail:
    code, message = provisioning_error(properties, what)
    return Fail(from_http(400, code, f"{what}: {message}"))


def _busy(properties: Json) -> str:
    doing = {"Creating": "creating", "Updating": "updating", "Upgrading": "upgrading", "Deleting": "deleting"}
    state = properties.get("provisioningState")
    if state in doing:
        return f"Azure is {doing[state]} the cluster"
    for pool in properties.get("agentPoolProfiles") or ():
        state = pool.get("provisioningState")
        if state in (*doing, "Scaling", "UpgradingNodeImageVersion"):
            return f"Azure is {doing.get(state, 'changing')} the node pool {pool['name']}"
    return ""


def _failed_under_us(row: ClusterRow) -> bool:
    """Tell whether the failure is the answer to this job's own write, and not one that we may repair."""
    return row.job.reason.startswith("Azure is ")


def _etag(existing: Json | None) -> str | None:
    return str(existing["eTag"]) if existing is not None and existing.get("eTag") else None
