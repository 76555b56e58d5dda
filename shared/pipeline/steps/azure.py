"""Resource group, cluster and node pools, each brought to the manifest by at most one PUT a time.

Waiting reads the resource again: that is limited per cluster, while operation statuses are limited for a
whole subscription (learn.microsoft.com/azure/aks/quotas-skus-regions).
"""

from __future__ import annotations

from shared.fleet.azure import (
    ImmutableChange,
    Write,
    cluster_write,
    group_body,
    newer_than_asked,
    pool_write,
    settled,
)
from shared.fleet.desired import digest_of
from shared.fleet.manifests import NodePool
from shared.jobs.errors import Immutable, InvalidManifest, NotOwned, from_http
from shared.jobs.outcomes import Done, Fail, Outcome, Restart, Wait
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
    hindrance = _hindrance(existing, row, ports) if existing is not None else None
    if hindrance:
        return hindrance
    try:
        write = cluster_write(desired, owner, existing)
    except ImmutableChange as error:
        return Fail(Immutable(str(error)))
    if write is None:
        return Done()
    wrote = digest_of(write.body)
    if wrote == row.job.wrote:
        return _not_kept(f"the cluster {row.name}", write)
    ports.aks.put(desired.id, write.body, etag=_etag(existing))
    if existing is None:
        return Wait(poll(ports), "Azure is creating the cluster", wrote)
    return Wait(poll(ports), f"Azure is updating the cluster{_fields(write)}", wrote)


def ensure_node_pools(row: ClusterRow, ports: Ports) -> Outcome:
    """Bring one node pool after the other to the spec; remove those of ours that git no longer has."""
    desired, owner = row.desired, owner_of(row, ports)
    existing = ports.aks.get(desired.id)
    if existing is None:
        return Restart(f"the cluster {row.name} is gone from Azure")
    hindrance = _hindrance(existing, row, ports)
    if hindrance:
        return hindrance
    pools = {pool["name"]: pool for pool in existing["properties"].get("agentPoolProfiles") or ()}
    for pool in desired.spec.node_pools:
        outcome = _ensure_pool(pool, pools.get(pool.name), row, ports)
        if outcome:
            return outcome
    wanted = {pool.name for pool in desired.spec.node_pools}
    for name, profile in pools.items():
        if name not in wanted and owner.owns(profile):
            ports.aks.delete_pool(desired.id, name, etag=_etag(profile))
            return Wait(poll(ports), f"Azure is deleting the node pool {name}")
    left = sorted(set(pools) - wanted)
    notes = [f"left alone, not made by us: node pool {', '.join(left)}"] if left else []
    return Done("; ".join([*notes, *newer_than_asked(desired, existing)]))


def _ensure_pool(pool: NodePool, profile: Json | None, row: ClusterRow, ports: Ports) -> Outcome | None:
    """Write one node pool if it differs; None when it does not."""
    what = f"the node pool {pool.name}"
    if profile and profile.get("provisioningState") in _BAD and row.job.wrote.startswith(f"{pool.name}:"):
        return _failure(profile, what)
    try:
        write = pool_write(pool, row.desired, owner_of(row, ports), profile)
    except ImmutableChange as error:
        return Fail(Immutable(str(error)))
    if write is None:
        return None
    wrote = f"{pool.name}:{digest_of(write.body)}"
    if wrote == row.job.wrote:
        return _not_kept(what, write)
    ports.aks.put_pool(row.desired.id, pool.name, write.body, etag=_etag(profile))
    if profile is None:
        return Wait(poll(ports), f"Azure is creating {what}", wrote)
    return Wait(poll(ports), f"Azure is updating {what}{_fields(write)}", wrote)


def _fields(write: Write) -> str:
    """Name what is written, as ": tags.cost, sku.tier"."""
    shown = ", ".join(write.paths[:5]) + (", ..." if len(write.paths) > 5 else "")
    return f": {shown}" if shown else ""


def _not_kept(what: str, write: Write) -> Fail:
    """Stop writing what Azure takes and does not keep: a policy, or a value that it changes."""
    told = f"Azure accepted the last write to {what}, but it still differs from the manifest{_fields(write)}"
    return Fail(InvalidManifest(f"{told}; something (a policy?) changes it back, so it is not written again"))


def poll(ports: Ports) -> float:
    """Return the seconds until the next look at Azure, spread so that clusters do not march in step."""
    return ports.config.poll_seconds * (0.9 + 0.2 * ports.random())


def _hindrance(existing: Json, row: ClusterRow, ports: Ports) -> Outcome | None:
    """Return what keeps us from writing to the cluster now, None when nothing does."""
    properties = existing["properties"]
    owner = owner_of(row, ports)
    if not owner.owns(existing):
        return Fail(
            NotOwned(f"the cluster {row.name} is not touched: it is not this fleet's: {owner.told(existing)}")
        )
    if (properties.get("powerState") or {}).get("code") == "Stopped":
        return Wait(poll(ports) * 4, "the cluster is stopped; start it, Azure allows nothing else")
    busy = _busy(properties)
    if busy:
        return Wait(poll(ports), busy)
    if state_of(existing) in _BAD and row.job.wrote:
        return _failure(properties, f"the cluster {row.name}")
    return None


def _failure(properties: Json, what: str) -> Fail:
    code, message = provisioning_error(properties, what)
    return Fail(from_http(400, code, f"{what}: {message}"))


_BAD = ("Failed", "Canceled")
_DOING = {"Creating": "creating", "Deleting": "deleting", "Upgrading": "upgrading"}


def _busy(properties: Json) -> str:
    """Say what Azure is doing; every state but the settled ones is an operation under way."""
    state = str(properties.get("provisioningState") or "")
    if not settled(state):
        return f"Azure is {_DOING.get(state, 'updating')} the cluster"
    for pool in properties.get("agentPoolProfiles") or ():
        state = str(pool.get("provisioningState") or "")
        if not settled(state):
            return f"Azure is {_DOING.get(state, 'updating')} the node pool {pool['name']}"
    return ""


def _etag(existing: Json | None) -> str | None:
    return str(existing["eTag"]) if existing is not None and existing.get("eTag") else None
