"""Node pools, one after the other: made, written, upgraded, replaced, removed; at most one write a look.

New pools come before old ones go, so that a System pool is always there.
"""

from __future__ import annotations

from collections.abc import Sequence

from shared.fleet.azure import control_plane, newer_than_asked, upgrade_ahead
from shared.fleet.azurepools import new_pool_write, pool_write
from shared.fleet.desired import digest_of
from shared.fleet.manifests import NodePool
from shared.fleet.rotation import Create, Keep, Replace, Retire, serving, stage_of
from shared.fleet.upgrades import minor, next_version
from shared.fleet.versions import image_older
from shared.fleet.writes import ImmutableChange, Write
from shared.jobs.errors import Immutable, InvalidManifest
from shared.jobs.outcomes import Back, Done, Fail, Outcome, Restart, Wait
from shared.jobs.recipes import Step
from shared.jobs.row import ClusterRow
from shared.pipeline.steps import nodes
from shared.pipeline.steps.looks import (
    BAD,
    Json,
    etag_of,
    failure,
    fields,
    not_kept,
    not_ours,
    not_ready,
    owner_of,
    poll,
    profiles_of,
)
from shared.ports import Ports


def ensure_node_pools(row: ClusterRow, ports: Ports) -> Outcome:
    """Bring one node pool after the other to the spec; remove those of ours that git no longer has."""
    desired, owner = row.desired, owner_of(row, ports)
    existing = ports.aks.get(desired.id)
    if existing is None:
        return Restart(f"the cluster {row.name} is gone from Azure")
    hindered = not_ours(existing, row, ports) or not_ready(existing, row, ports)
    if hindered:
        return hindered
    pools = serving(profiles_of(existing), owner)
    for pool in desired.spec.node_pools:
        outcome = _ensure_pool(pool, pools.get(pool.name, ()), existing, row, ports)
        if outcome:
            return outcome
    wanted = {pool.name for pool in desired.spec.node_pools}
    unwanted = [profile for name, found in pools.items() if name not in wanted for profile in found]
    for profile in unwanted:
        if owner.owns(profile):
            return _remove(profile, row, ports)
    return _next_hop(existing, row, ports) or Done("; ".join(_notes(unwanted, existing, row, ports)))


def _ensure_pool(
    pool: NodePool, mine: Sequence[Json], existing: Json, row: ClusterRow, ports: Ports
) -> Outcome | None:
    """Do the next thing that a pool of the manifest needs; None when it needs nothing."""
    owner = owner_of(row, ports)
    taken = {str(profile["name"]) for profile in profiles_of(existing)}
    taken |= {other.name for other in row.desired.spec.node_pools if other.name != pool.name}
    match stage_of(pool, row.desired, owner, mine, taken):
        case Create(name):
            return _make(
                name, new_pool_write(pool, owner, name), f"Azure is creating the node pool {name}", row, ports
            )
        case Keep(profile):
            return _keep(pool, profile, existing, row, ports)
        case Replace(old, name, why):
            write = new_pool_write(pool, owner, name, like=old)
            told = f"replacing the node pool {old['name']} by {name}, which alone can have {why}"
            return _make(name, write, told, row, ports)
        case Retire(old, kept):
            return _retire(pool, old, kept, existing, row, ports)


def _make(name: str, write: Write, told: str, row: ClusterRow, ports: Ports) -> Wait:
    request = ports.aks.put_pool(row.desired.id, name, write.body, etag=None)
    return Wait(poll(ports), told, f"{name}:{digest_of(write.body)}", request)


def _keep(pool: NodePool, profile: Json, existing: Json, row: ClusterRow, ports: Ports) -> Outcome | None:
    """Write a pool if it differs, then look at its node image."""
    name, plane = str(profile["name"]), control_plane(existing)
    what = f"the node pool {name}"
    try:
        write = pool_write(pool, row.desired, owner_of(row, ports), profile, control_plane=plane)
    except ImmutableChange as error:
        return Fail(Immutable(str(error)))
    if profile.get("provisioningState") in BAD and row.job.wrote.startswith(f"{name}:"):
        return failure(profile, what)
    if write is None:
        return _image(profile, row, ports)
    wrote = f"{name}:{digest_of(write.body)}"
    if wrote == row.job.wrote:
        return not_kept(what, write)
    request = ports.aks.put_pool(row.desired.id, name, write.body, etag=etag_of(profile))
    return Wait(poll(ports), f"Azure is updating {what}{fields(write)}", wrote, request)


def _retire(
    pool: NodePool, old: Json, kept: Json, existing: Json, row: ClusterRow, ports: Ports
) -> Outcome | None:
    """Empty a pool that has been replaced, then remove it."""
    if kept.get("provisioningState") in BAD:
        if row.job.wrote.startswith(f"{kept['name']}:"):
            return failure(kept, f"the node pool {kept['name']}")
        return _keep(pool, kept, existing, row, ports)
    return nodes.moved(pool, old, kept, row, ports) or _remove(old, row, ports)


def _remove(profile: Json, row: ClusterRow, ports: Ports) -> Wait:
    name = str(profile["name"])
    request = ports.aks.delete_pool(row.desired.id, name, etag=etag_of(profile))
    return Wait(poll(ports), f"Azure is deleting the node pool {name}", f"{name}:deleted", request)


def _image(profile: Json, row: ClusterRow, ports: Ports) -> Outcome | None:
    """Bring a pool to the newest node image when its own is older than the manifest allows."""
    oldest, image = row.desired.spec.min_node_image_version, str(profile.get("nodeImageVersion") or "")
    if not oldest or not image_older(image, oldest):
        return None
    name = str(profile["name"])
    wrote = f"{name}:image:{image}"
    if row.job.wrote == wrote:
        message = f"spec.minNodeImageVersion {oldest}: the newest image that Azure has for the node pool"
        return Fail(InvalidManifest(f"{message} {name} is {image}"))
    request = ports.aks.upgrade_node_image(row.desired.id, name)
    return Wait(poll(ports), f"Azure is replacing the node image {image} of {name}", wrote, request)


def _next_hop(existing: Json, row: ClusterRow, ports: Ports) -> Outcome | None:
    """Send the job back to the control plane once every node runs this minor, and it has further to go."""
    if not upgrade_ahead(row.desired, existing):
        return None
    old = nodes.behind(existing, row, ports)
    if old:
        return old
    plane = control_plane(existing)
    following = next_version(row.desired.spec.kubernetes_version, plane)
    return Back(Step.CLUSTER, f"every node runs {minor(plane)}; on to {following}")


def _notes(unwanted: Sequence[Json], existing: Json, row: ClusterRow, ports: Ports) -> list[str]:
    left = ", ".join(sorted(str(profile["name"]) for profile in unwanted))
    notes = [f"left alone, not made by us: node pool {left}"] if left else []
    return [*notes, *newer_than_asked(row.desired, owner_of(row, ports), existing)]
