"""Node pools, one after the other: created, updated, upgraded, replaced, removed; at most one write a step.

New pools are created before old ones are removed, so that there is always a System pool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared.app.access.azure_state import (
    FAILED_STATES,
    etag_of,
    failure,
    fields,
    not_taken_over,
    profiles_of,
    reverted,
    without_version,
)
from shared.app.access.contests import read_ours
from shared.app.access.context import StepContext
from shared.app.worker.steps import drain
from shared.app.worker.steps.writable import not_ready, send, wait_for, was_accepted
from shared.azure.changes.upgrades import minor, next_version
from shared.azure.changes.writes import ImmutableChange, PlannedWrite, pool_is_stopped
from shared.azure.cluster_body import control_plane, newer_than_requested, upgrade_pending
from shared.azure.node_pools.body import (
    autoscaler_off_write,
    new_pool_write,
    ownership_write,
    pool_difference,
    pool_write,
    sizes_not_shown,
)
from shared.azure.node_pools.replacement import (
    Create,
    Keep,
    Replace,
    Retire,
    Stage,
    drain_minutes,
    serving,
    stage_of,
)
from shared.azure.node_pools.rollback import (
    Versions,
    asked_for,
    is_pending,
    recently_used,
    rollback_write,
    runs,
    unmet,
)
from shared.cluster.failures.errors import Immutable, InvalidManifest, NotOwned
from shared.cluster.job import AcceptedWrite, WriteKind
from shared.cluster.outcomes import OBSERVE_SECONDS, Done, Fail, GoToStep, Outcome, Wait
from shared.cluster.recipes import Step
from shared.json_tree import Json
from shared.kubernetes_versions import image_older
from shared.language.model.node_pool import NodePool
from shared.ports.azure import DeletePool, GetPoolUpgradeProfile, PutPool, UpgradeNodeImage

_AUTOSCALER = WriteKind.DISABLE_AUTOSCALER
_POOL_WRITES = (WriteKind.PUT, WriteKind.DELETE, WriteKind.UPGRADE_NODE_IMAGE)


def ensure_node_pools(context: StepContext) -> Outcome:
    """Bring one node pool after the other to the spec; remove those of ours that git no longer has."""
    owner, wanted = context.owner, context.desired.spec.node_pools
    live = read_ours(context)
    if not isinstance(live, Mapping):
        return live
    hindrance = not_ready(context, live)
    if hindrance:
        return hindrance
    pools = serving(profiles_of(live), owner)
    left = context.desired.left
    stages = [
        (pool, _stage(context, live, pool, pools.get(pool.name, ())))
        for pool in wanted
        if pool.name in pools or f"nodePools[{pool.name}]" not in left
    ]
    for pool, stage in sorted(stages, key=_order):
        outcome = _advanced(context, live, pool, stage)
        if outcome:
            return outcome
    used = [profile for pool in wanted for profile in pools.get(pool.name, ())]
    unwanted = [profile for profile in profiles_of(live) if profile not in used]
    for profile in unwanted:
        if owner.owns(profile) and f"nodePools[{profile['name']}]" not in left:
            return _removed(context, profile, drain_minutes(profile))
    return _next_hop(context, live) or Done("; ".join(_notes(context, live, unwanted)))


def _order(staged: tuple[NodePool, Stage]) -> tuple[bool, bool, bool]:
    """Return the sort key of a pool: a drain may take long, so pools that wait for one come last.

    Another System pool has to be there before one becomes a User pool.
    """
    pool, stage = staged
    return type(stage) is not Create, type(stage) is Retire, pool.mode != "System"


def _stage(context: StepContext, live: Json, pool: NodePool, profiles: Sequence[Json]) -> Stage:
    taken = {str(profile["name"]) for profile in profiles_of(live)}
    taken |= {other.name for other in context.desired.spec.node_pools if other.name != pool.name}
    return stage_of(pool, context.desired, context.owner, profiles, taken)


def _advanced(context: StepContext, live: Json, pool: NodePool, stage: Stage) -> Outcome | None:
    owner, plane = context.owner, control_plane(live)
    match stage:
        case Create(name):
            write = new_pool_write(pool, owner, name, control_plane=plane)
            return _create(context, name, write, f"Azure is creating the node pool {name}")
        case Keep(profile) | Replace(profile) if not owner.owns(profile):
            return _adopted(context, pool, profile)
        case Keep(profile):
            return _updated(context, live, pool, profile)
        case Replace(old, name, reason):
            write = new_pool_write(pool, owner, name, like=old, control_plane=plane)
            text = f"replacing the node pool {old['name']} by {name}: only a new pool can have {reason}"
            return _create(context, name, write, text)
        case Retire():
            return _retired(context, live, pool, stage)


def _adopted(context: StepContext, pool: NodePool, profile: Json) -> Outcome:
    """Tag a pool as ours, if nothing else of it differs or its differences are accepted."""
    desired, owner, name = context.desired, context.owner, str(profile["name"])
    differences = [
        path
        for path in pool_difference(pool, desired, owner, profile)
        if not path.startswith("tags.roadstead-")
    ]
    accepted = desired.adopt == "with-differences" and not owner.is_others(profile)
    if owner.is_others(profile) or (differences and not accepted):
        problem = (
            f"the node pool {name} is not touched: it is not this cluster's: {owner.describe_tags(profile)}"
        )
        differs = f"; it differs from the manifest in {', '.join(differences[:5])}" if differences else ""
        remedy = "give the pool another name in the manifest"
        if differences and not owner.is_others(profile):
            remedy += ", make it equal, or accept the differences with roadstead.dev/adopt: with-differences"
        return Fail(NotOwned(f"{problem}{differs}; {remedy}"))
    unsafe = not_taken_over(profile, f"the node pool {name}")
    if unsafe:
        return unsafe
    write = ownership_write(pool, owner, profile)
    return _put(context, profile, write, f"taking the node pool {name} over{fields(write)}")


def _create(context: StepContext, name: str, write: PlannedWrite, reason: str) -> Outcome:
    put = AcceptedWrite(WriteKind.PUT, name, write.digest)
    creation = PutPool(context.cluster, name, write.body, etag=None, only_new=True)
    return send(context, f"the node pool {name}", put, creation, reason)


def _wrote_to(context: StepContext, *names: str) -> bool:
    last = context.job.step.last_write
    return last is not None and last.kind in _POOL_WRITES and last.target in names


def _updated(context: StepContext, live: Json, pool: NodePool, profile: Json) -> Outcome | None:
    name, plane = str(profile["name"]), control_plane(live)
    what = f"the node pool {name}"
    try:
        write = pool_write(pool, context.desired, context.owner, profile, control_plane=plane)
    except ImmutableChange as error:
        return Fail(Immutable(str(error)))
    if profile.get("provisioningState") in FAILED_STATES and _wrote_to(context, name):
        return failure(context, profile, what)
    back = rollback_of(context, live, pool, profile)
    if isinstance(back, Wait):
        return back
    if back is not None:
        return _put(context, profile, back, f"Azure is rolling back {what}{fields(back)}")
    if write is None:
        return _image(context, profile)
    return _put(context, profile, write, f"Azure is updating {what}{fields(write)}")


def _put(
    context: StepContext, profile: Json, write: PlannedWrite, reason: str, kind: WriteKind = WriteKind.PUT
) -> Outcome:
    """Write a pool over the version that was read; fail when that write was accepted without effect."""
    name = str(profile["name"])
    put = AcceptedWrite(kind, name, write.digest)
    if put == context.job.step.last_write:
        return reverted(f"the node pool {name}", write)
    again = without_version(context, profile, f"the node pool {name}")
    if again:
        return again
    written = context.azure(PutPool(context.cluster, name, write.body, etag=etag_of(profile)))
    return wait_for(context, reason, put, written)


def _retired(context: StepContext, live: Json, pool: NodePool, stage: Retire) -> Outcome | None:
    """Drain a pool that has been replaced, then remove it."""
    old, remaining = stage.old, stage.remaining
    if stage.misfit and _wrote_to(context, str(old["name"]), str(remaining["name"])):
        problem = f"Azure has created a second node pool for {pool.name} that still differs: {stage.misfit}"
        return Fail(InvalidManifest(f"{problem}; nothing is drained, and no third one is created"))
    # What a later commit changes in the pool that stays may be what lets the pods move there.
    outcome = None if stage.misfit else _updated(context, live, pool, remaining)
    reads_nodes = context.enters and not pool.stopped
    outcome = outcome or (drain.joined(context, remaining) if reads_nodes else None)
    return outcome or _removed(context, old, drain_minutes(remaining))


def _removed(context: StepContext, profile: Json, minutes: int) -> Outcome:
    """Drain a pool, which AKS itself does not do, then delete it; ``minutes`` limits the drain.

    A stopped pool has no nodes to drain. Where the app has no way into the cluster, nobody but an operator
    can drain it.
    """
    if pool_is_stopped(profile) and profile.get("provisioningState") == "Succeeded":
        return _delete(context, profile)
    if not context.enters:
        return _by_hand(str(profile["name"]))
    outcome = _autoscaler_off(context, profile)
    return outcome or drain.drained(context, str(profile["name"]), minutes) or _delete(context, profile)


def _by_hand(name: str) -> Wait:
    """Return the wait for an operator who drains a pool of a cluster that the app cannot enter."""
    reason = f"the node pool {name} is to be removed, and the app has no way into the cluster to drain it"
    remedy = f"Drain the nodes of {name}, then delete it with `az aks nodepool delete`, or stop it."
    return Wait.for_person(reason, remedy)


def _autoscaler_off(context: StepContext, old: Json) -> Outcome | None:
    """Switch off the autoscaler of a pool, which would create nodes for the pods that move."""
    unknown = sizes_not_shown(old)
    if unknown:
        sizes = f"how many nodes of {', '.join(unknown)} the node pool {old['name']} has"
        remedy = f"Set fixed numbers of nodes in the pool {old['name']}, or wait until Azure shows them."
        reason = f"Azure does not show {sizes}: it is not drained"
        return Wait(OBSERVE_SECONDS, reason, action_required=remedy)
    write = autoscaler_off_write(old)
    if write is None:
        return None
    pool = f"the node pool {old['name']}, which is about to be drained"
    return _put(context, old, write, f"Azure is switching off the autoscaler of {pool}", _AUTOSCALER)


def _delete(context: StepContext, profile: Json) -> Outcome:
    name = str(profile["name"])
    delete, what = AcceptedWrite(WriteKind.DELETE, name), f"the node pool {name}"
    if profile.get("provisioningState") in FAILED_STATES and was_accepted(context, delete):
        return failure(context, profile, what)
    write = DeletePool(context.cluster, name, etag=etag_of(profile))
    return send(context, what, delete, write, f"Azure is deleting {what}")


def _image(context: StepContext, profile: Json) -> Outcome | None:
    """Bring a pool to the newest node image when its own is older than the manifest allows."""
    oldest, image = context.desired.spec.min_node_image_version, str(profile.get("nodeImageVersion") or "")
    path = f"nodePools[{context.owner.pool_of(profile)}].minNodeImageVersion"
    if not oldest or not image_older(image, oldest) or path in context.desired.left:
        return None
    name = str(profile["name"])
    upgrade = AcceptedWrite(WriteKind.UPGRADE_NODE_IMAGE, name, image)
    if upgrade == context.job.step.last_write:
        message = f"spec.minNodeImageVersion {oldest}: the newest image that Azure has for the node pool"
        return Fail(InvalidManifest(f"{message} {name} is {image}"))
    written = context.azure(UpgradeNodeImage(context.cluster, name))
    return wait_for(context, f"Azure is replacing the node image {image} of {name}", upgrade, written)


def _next_hop(context: StepContext, live: Json) -> Outcome | None:
    """Send the job back to the control plane once every node runs its minor version and more follow."""
    if not upgrade_pending(context.desired, live):
        return None
    old = drain.behind(context, live) if context.enters else None
    if old:
        return old
    plane = control_plane(live)
    following = next_version(context.desired.spec.kubernetes_version, plane)
    return GoToStep(Step.CLUSTER, f"every node runs {minor(plane)}; on to {following}")


def _notes(context: StepContext, live: Json, unwanted: Sequence[Json]) -> list[str]:
    left = ", ".join(sorted(str(profile["name"]) for profile in unwanted))
    notes = [f"left alone: node pool {left}, not created by Roadstead"] if left else []
    return [*notes, *newer_than_requested(context.desired, context.owner, live)]


# The rollback of a node pool in its step: Azure's conditions are read right before the one write.
#
# A rollback whose conditions are not met holds this pool, says which ones fail, and reads them again later.


def rollback_of(
    context: StepContext, live: Json, pool: NodePool, profile: Json
) -> PlannedWrite | Wait | None:
    """Return the write that rolls a pool back, the wait while it may not, None where there is none."""
    target = asked_for(pool)
    if target is None or not is_pending(target, profile):
        return None
    if not runs(target, profile):
        hold = _hold(context, live, pool, profile, target)
        if hold:
            return hold
    return rollback_write(target, profile)


def _hold(context: StepContext, live: Json, pool: NodePool, profile: Json, target: Versions) -> Wait | None:
    name = str(profile["name"])
    listed = recently_used(context.azure(GetPoolUpgradeProfile(context.cluster, name)))
    found = unmet(
        pool.name,
        target,
        listed,
        live,
        profile,
        oldest_image=context.desired.spec.min_node_image_version or "",
        now=context.ports.clock(),
    )
    if not found:
        return None
    problems = "; ".join(requirement.problem for requirement in found)
    remedies = "; ".join(dict.fromkeys(requirement.remedy for requirement in found))
    return Wait.for_person(
        f"the node pool {name} is not rolled back: {problems}",
        f"Take rollback out of the pool {pool.name} in git, or: {remedies}.",
    )
