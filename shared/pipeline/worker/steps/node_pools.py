"""Node pools, one after the other: made, written, upgraded, replaced, removed; at most one write a look.

New pools come before old ones go, so that a System pool is always there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared.fleet.aks.cluster_body import control_plane, newer_than_asked, upgrade_ahead
from shared.fleet.aks.node_pool_body import (
    autoscaler_off_write,
    new_pool_write,
    ownership_write,
    pool_difference,
    pool_write,
)
from shared.fleet.aks.node_pool_replacement import (
    Create,
    Keep,
    Replace,
    Retire,
    Stage,
    drain_minutes,
    serving,
    stage_of,
)
from shared.fleet.aks.upgrades import minor, next_version
from shared.fleet.aks.writes import ImmutableChange, Write
from shared.fleet.json_tree import Json
from shared.fleet.kubernetes_versions import image_older
from shared.fleet.manifests import NodePool
from shared.jobs.errors import Immutable, InvalidManifest, NotOwned
from shared.jobs.outcomes import Done, Fail, GoToStep, Outcome, Restart, Wait
from shared.jobs.recipes import Step
from shared.jobs.record import ClusterRecord
from shared.pipeline.worker.steps import drain
from shared.pipeline.worker.steps.azure_state import (
    BAD,
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
from shared.pipeline.worker.steps.repeated_write import asked_for, gone_again, once_more, still_there
from shared.ports import Ports


def ensure_node_pools(record: ClusterRecord, ports: Ports) -> Outcome:
    """Bring one node pool after the other to the spec; remove those of ours that git no longer has."""
    desired, owner = record.desired, owner_of(record, ports)
    existing = ports.aks.get(desired.id)
    if existing is None:
        return Restart(f"the cluster {record.name} is gone from Azure")
    hindered = not_ours(existing, record, ports) or not_ready(existing, record, ports)
    if hindered:
        return hindered
    pools = serving(profiles_of(existing), owner)
    stages = [(pool, _stage(pool, pools, existing, record, ports)) for pool in desired.spec.node_pools]
    for pool, stage in sorted(stages, key=_turn):
        outcome = _brought_on(pool, stage, existing, record, ports)
        if outcome:
            return outcome
    wanted = [profile for pool in desired.spec.node_pools for profile in pools.get(pool.name, ())]
    unwanted = [profile for profile in profiles_of(existing) if profile not in wanted]
    for profile in unwanted:
        if owner.owns(profile):
            return _gone(profile, drain_minutes(profile), record, ports)
    return _next_hop(existing, record, ports) or Done("; ".join(_notes(unwanted, existing, record, ports)))


def _turn(staged: tuple[NodePool, Stage]) -> tuple[bool, bool, bool]:
    """Return when a pool's turn is: a drain may take long, so all others come before what waits for one.

    Another System pool has to be there before one becomes a User pool.
    """
    pool, stage = staged
    return type(stage) is not Create, type(stage) is Retire, pool.mode != "System"


def _stage(
    pool: NodePool, pools: Mapping[str, Sequence[Json]], existing: Json, record: ClusterRecord, ports: Ports
) -> Stage:
    taken = {str(profile["name"]) for profile in profiles_of(existing)}
    taken |= {other.name for other in record.desired.spec.node_pools if other.name != pool.name}
    return stage_of(pool, record.desired, owner_of(record, ports), pools.get(pool.name, ()), taken)


def _brought_on(
    pool: NodePool, stage: Stage, existing: Json, record: ClusterRecord, ports: Ports
) -> Outcome | None:
    """Do the next thing that a pool of the manifest needs; None when it needs nothing."""
    owner, plane = owner_of(record, ports), control_plane(existing)
    match stage:
        case Create(name):
            write = new_pool_write(pool, owner, name, control_plane=plane)
            return _make(name, write, f"Azure is creating the node pool {name}", record, ports)
        case Keep(profile) | Replace(profile) if not owner.owns(profile):
            return _taken_over(pool, profile, record, ports)
        case Keep(profile):
            return _keep(pool, profile, existing, record, ports)
        case Replace(old, name, why):
            write = new_pool_write(pool, owner, name, like=old, control_plane=plane)
            told = f"replacing the node pool {old['name']} by {name}, which alone can have {why}"
            return _make(name, write, told, record, ports)
        case Retire():
            return _retire(pool, stage, existing, record, ports)


def _taken_over(pool: NodePool, profile: Json, record: ClusterRecord, ports: Ports) -> Outcome:
    """Mark a pool as ours that is not, if nothing else of it differs or differences are accepted."""
    desired, owner, name = record.desired, owner_of(record, ports), str(profile["name"])
    found = [
        path
        for path in pool_difference(pool, desired, owner, profile)
        if not path.startswith("tags.roadstead-")
    ]
    accepted = desired.adopt == "with-differences" and not owner.is_others(profile)
    if owner.is_others(profile) or (found and not accepted):
        told = (
            f"the node pool {name} is not touched: it is not this cluster's: {owner.describe_tags(profile)}"
        )
        differs = f"; it differs from the manifest in {', '.join(found[:5])}" if found else ""
        way_out = "give the pool another name in the manifest"
        if found and not owner.is_others(profile):
            way_out += ", make it equal, or accept the differences with roadstead.dev/adopt: with-differences"
        return Fail(NotOwned(f"{told}{differs}; {way_out}"))
    write = ownership_write(pool, owner, profile)
    wrote = f"{name}:{write.digest}"
    if wrote == record.job.wrote:
        return not_kept(f"the node pool {name}", write)
    request = ports.aks.put_pool(desired.id, name, write.body, etag=etag_of(profile))
    return Wait(poll(ports), f"taking the node pool {name} over{fields(write)}", wrote, request)


def _make(name: str, write: Write, told: str, record: ClusterRecord, ports: Ports) -> Outcome:
    wrote = once_more(f"{name}:{write.digest}", record)
    if not wrote:
        return gone_again(f"the node pool {name}")
    request = ports.aks.put_pool(record.desired.id, name, write.body, etag=None)
    return Wait(poll(ports), told, wrote, request)


def _keep(
    pool: NodePool, profile: Json, existing: Json, record: ClusterRecord, ports: Ports
) -> Outcome | None:
    """Write a pool if it differs, then look at its node image."""
    name, plane = str(profile["name"]), control_plane(existing)
    what = f"the node pool {name}"
    try:
        write = pool_write(pool, record.desired, owner_of(record, ports), profile, control_plane=plane)
    except ImmutableChange as error:
        return Fail(Immutable(str(error)))
    if profile.get("provisioningState") in BAD and record.job.wrote.startswith(f"{name}:"):
        return failure(profile, what, record)
    if write is None:
        return _image(profile, record, ports)
    wrote = f"{name}:{write.digest}"
    if wrote == record.job.wrote:
        return not_kept(what, write)
    request = ports.aks.put_pool(record.desired.id, name, write.body, etag=etag_of(profile))
    return Wait(poll(ports), f"Azure is updating {what}{fields(write)}", wrote, request)


def _retire(
    pool: NodePool, stage: Retire, existing: Json, record: ClusterRecord, ports: Ports
) -> Outcome | None:
    """Empty a pool that has been replaced, then remove it."""
    old, kept = stage.old, stage.kept
    made = tuple(f"{profile['name']}:" for profile in (old, kept))
    if stage.misfit and record.job.wrote.startswith(made):
        made_for_nothing = f"Azure has made a second node pool for {pool.name} that still differs"
        told = f"{made_for_nothing}: {stage.misfit}; nothing is drained, and no third one is made"
        return Fail(InvalidManifest(told))
    # What a later commit says of the pool that stays may be what lets the pods move there.
    written = None if stage.misfit else _keep(pool, kept, existing, record, ports)
    return written or drain.arrived(kept, record, ports) or _gone(old, drain_minutes(kept), record, ports)


def _gone(profile: Json, minutes: int, record: ClusterRecord, ports: Ports) -> Outcome:
    """Empty a pool, as AKS itself does not, then remove it; ``minutes`` is how long no pod may leave."""
    resting = _rested(profile, record, ports)
    return resting or drain.emptied(profile, minutes, record, ports) or _remove(profile, record, ports)


def _rested(old: Json, record: ClusterRecord, ports: Ports) -> Outcome | None:
    """Switch the autoscaler of a pool off, or it would make new nodes for the pods that leave."""
    write = autoscaler_off_write(old)
    if write is None:
        return None
    name = str(old["name"])
    wrote = f"rest {name}:{write.digest}"
    if wrote == record.job.wrote:
        return not_kept(f"the node pool {name}", write)
    request = ports.aks.put_pool(record.desired.id, name, write.body, etag=etag_of(old))
    told = f"Azure is switching the autoscaler of the node pool {name} off, which is to be emptied"
    return Wait(poll(ports), told, wrote, request)


def _remove(profile: Json, record: ClusterRecord, ports: Ports) -> Outcome:
    name = str(profile["name"])
    deleted = f"{name}:deleted"
    if profile.get("provisioningState") in BAD and asked_for(deleted, record):
        return failure(profile, f"the node pool {name}", record)
    wrote = once_more(deleted, record)
    if not wrote:
        return still_there(f"the node pool {name}")
    request = ports.aks.delete_pool(record.desired.id, name, etag=etag_of(profile))
    return Wait(poll(ports), f"Azure is deleting the node pool {name}", wrote, request)


def _image(profile: Json, record: ClusterRecord, ports: Ports) -> Outcome | None:
    """Bring a pool to the newest node image when its own is older than the manifest allows."""
    oldest, image = record.desired.spec.min_node_image_version, str(profile.get("nodeImageVersion") or "")
    if not oldest or not image_older(image, oldest):
        return None
    name = str(profile["name"])
    wrote = f"{name}:image:{image}"
    if record.job.wrote == wrote:
        message = f"spec.minNodeImageVersion {oldest}: the newest image that Azure has for the node pool"
        return Fail(InvalidManifest(f"{message} {name} is {image}"))
    request = ports.aks.upgrade_node_image(record.desired.id, name)
    return Wait(poll(ports), f"Azure is replacing the node image {image} of {name}", wrote, request)


def _next_hop(existing: Json, record: ClusterRecord, ports: Ports) -> Outcome | None:
    """Send the job back to the control plane once every node runs this minor, and it has further to go."""
    if not upgrade_ahead(record.desired, existing):
        return None
    old = drain.behind(existing, record, ports)
    if old:
        return old
    plane = control_plane(existing)
    following = next_version(record.desired.spec.kubernetes_version, plane)
    return GoToStep(Step.CLUSTER, f"every node runs {minor(plane)}; on to {following}")


def _notes(unwanted: Sequence[Json], existing: Json, record: ClusterRecord, ports: Ports) -> list[str]:
    left = ", ".join(sorted(str(profile["name"]) for profile in unwanted))
    notes = [f"left alone, not made by us: node pool {left}"] if left else []
    return [*notes, *newer_than_asked(record.desired, owner_of(record, ports), existing)]
