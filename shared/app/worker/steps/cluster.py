"""Resource group and cluster, each brought to the manifest by one PUT at a time.

Waiting reads the resource again: Azure limits that per cluster, while it limits operation statuses for a
whole subscription (learn.microsoft.com/azure/aks/quotas-skus-regions).
"""

from __future__ import annotations

from collections.abc import Sequence

from shared.app.access.azure_state import (
    MISSING,
    etag_of,
    fields,
    not_taken_over,
    recheck,
    reverted,
    state_of,
    without_version,
)
from shared.app.access.contests import not_ours
from shared.app.access.context import StepContext
from shared.app.worker.steps.flux import extension, sync
from shared.app.worker.steps.recovering import SHOWN, differing_fields, missed_rebuild
from shared.app.worker.steps.still_removed import cluster_that_deletes_group, others_in_group
from shared.app.worker.steps.writable import not_ready, send, wait_for
from shared.azure.changes.upgrades import next_version, not_offered, offered_by_plan, offered_upgrades
from shared.azure.changes.writes import ImmutableChange, PlannedWrite
from shared.azure.cluster_body import (
    cluster_write,
    control_plane,
    group_body,
    outdated_foreign_pools,
    pools_to_upgrade,
    upgrade_pending,
)
from shared.azure.ownership import LIFE_TAG, tag
from shared.cluster.failures.errors import ClusterMissing, Immutable, InvalidManifest
from shared.cluster.findings.conditions import act_known, exemption_of, with_act
from shared.cluster.job import AcceptedWrite, WriteKind
from shared.cluster.outcomes import Done, Fail, Outcome, Wait
from shared.cluster.recipes import CONDITIONS, Step
from shared.json_tree import Json
from shared.kubernetes.inside import facts_of
from shared.kubernetes_versions import POOL_LAG
from shared.language.desired import Desired
from shared.ports.azure import GetCluster, GetGroup, GetUpgradeProfile, ListVersions, PutCluster, PutGroup
from shared.resource_ids import RegionId
from shared.sentences import some_of

FOREIGN_GROUP = AcceptedWrite(WriteKind.TAG_FOREIGN_GROUP)


def ensure_resource_group(context: StepContext) -> Outcome:
    """Ensure the resource group; one that exists without our tags is used unchanged and never deleted."""
    name = context.cluster.resource_group
    deleting = "" if context.record.azure.creation_requested else cluster_that_deletes_group(context)
    if deleting:
        reason = f"{deleting} is being deleted, maybe with the resource group {name}"
        return Wait(context.poll_seconds, reason)
    live = context.azure(GetGroup(context.cluster.group))
    if live is None:
        return _not_created(context) or _absent_group(context)
    if state_of(live) == "Deleting":
        return Wait(context.poll_seconds, f"the resource group {name} is still being deleted")
    if context.job.step.last_write == FOREIGN_GROUP:
        return _give_back(context, live)
    return Done()


def _absent_group(context: StepContext) -> Outcome:
    """Create the group; read it a second time before, if an earlier attempt may have created it."""
    step = context.job.step
    first = context.record.condition(CONDITIONS[Step.RESOURCE_GROUP]) is None and not step.abandoned_leases
    if not (first or step.rechecking):
        return recheck(context, f"the resource group {context.cluster.resource_group}")
    return _create_group(context)


def _create_group(context: StepContext) -> Outcome:
    """Create the group; Azure's answer shows if somebody else created it between our read and our write.

    A group that another cluster of the fleet created is ours.
    """
    group = context.cluster.group
    written = context.azure(PutGroup(group, group_body(context.desired, context.owner)))
    if written.created or others_in_group(context):
        return Done(f"created the resource group {group.name}")
    reason = f"somebody else created the resource group {group.name} just now; giving it back"
    return Wait(1, reason, FOREIGN_GROUP)


def _give_back(context: StepContext, live: Json) -> Outcome:
    """Remove our tags from a group that is not ours, so that no delete of ours removes the group."""
    group = context.cluster.group
    if context.owner.created_group(live):
        context.azure(PutGroup(group, {"location": live["location"], "tags": {}}))
    lost = "the tags that it had are lost, so put them back"
    return Done(
        f"somebody else created the resource group {group.name}: it is used and never deleted; {lost}"
    )


def ensure_cluster(context: StepContext) -> Outcome:
    """Bring the managed cluster to the spec; its node pools come with its creation."""
    live = context.azure(GetCluster(context.cluster))
    hindrance = _not_created(context) if live is None else _hindrance(context, live)
    if hindrance:
        return hindrance
    try:
        write = cluster_write(context.desired, context.owner, live)
    except ImmutableChange as error:
        return Fail(Immutable(str(error)))
    if write is not None and live is None:
        return _create(context, write)
    live = live or {}
    if write is None:
        facts = facts_of(context.desired, live)
        return Done(life=tag(live, LIFE_TAG) or "", facts=facts)
    what, put = f"the cluster {context.record.name}", AcceptedWrite(WriteKind.PUT, digest=write.digest)
    if put == context.job.step.last_write:
        return reverted(what, write)
    again = without_version(context, live, what)
    if again:
        return again
    written = context.azure(PutCluster(context.cluster, write.body, etag=etag_of(live)))
    return wait_for(context, f"Azure is updating the cluster{fields(write)}", put, written)


def _create(context: StepContext, write: PlannedWrite) -> Outcome:
    put, what = AcceptedWrite(WriteKind.PUT, digest=write.digest), f"the cluster {context.record.name}"
    creation = PutCluster(context.cluster, write.body, etag=None, only_new=True)
    return send(context, what, put, creation, "Azure is creating the cluster")


def _hindrance(context: StepContext, live: Json) -> Outcome | None:
    owner = context.owner
    if context.desired.adopt and not owner.owns(live) and not owner.is_others(live):
        unsafe = not_taken_over(live, f"the cluster {context.record.name}")
        return not_ready(context, live) or unsafe or _observed(context, live)
    hindrance = not_ours(context, live) or not_ready(context, live)
    hindrance = hindrance or missed_rebuild(context, live)
    return hindrance or _impossible_upgrade(context, live)


def _observed(context: StepContext, live: Json) -> Outcome | None:
    """Return the wait of a cluster that differs before its adoption, None when it may be taken over."""
    if context.desired.adopt == "with-differences":
        return _impossible_upgrade(context, live)
    differences = differing_fields(context, live)
    other = extension.other_source if context.desired.has_extension else sync.other_source
    differences += other(context)
    if not differences:
        return _impossible_upgrade(context, live)
    shown = some_of(differences, SHOWN)
    return Wait.for_person(
        f"the cluster is observed, not written to: it differs from the manifest in {shown}; change the "
        "manifest to what exists, or accept it with the annotation roadstead.dev/adopt: with-differences",
        "Change the manifest to what exists, or set its annotation to with-differences.",
    )


def _not_created(context: StepContext) -> Outcome | None:
    record = context.record
    exempt = record.was_ready and exemption_of(record, ClusterMissing, context.ports.clock())
    if exempt or not record.may_create:
        what = f"the cluster {record.name}"
        missing = ClusterMissing(MISSING)
        found = Fail(with_act(missing, act_known(record, missing)))
        return found if context.job.step.rechecking else recheck(context, what)
    return _nothing_to_adopt(context.desired) if context.desired.adopt else None


def _nothing_to_adopt(desired: Desired) -> Fail:
    place = f"the resource group {desired.spec.resource_group}"
    problem = f"there is no cluster {desired.name} to adopt in {place}"
    remedy = (
        "correct the name or the place, or remove the annotation roadstead.dev/adopt to create the cluster"
    )
    return Fail(InvalidManifest(f"{problem}; {remedy}"))


def _impossible_upgrade(context: StepContext, live: Json) -> Fail | None:
    """Refuse versions that Azure does not offer, or not with these pools, before any upgrade starts."""
    desired = context.desired
    spec, upgrades = desired.spec, upgrade_pending(desired, live)
    pools = pools_to_upgrade(desired, context.owner, live)
    if not upgrades and not pools:
        return None
    region = RegionId(spec.subscription_id, spec.location)
    offered = [*offered_by_plan(context.azure(ListVersions(region)))]
    obstacle = _obstacle(context, live, offered) if upgrades else ""
    if obstacle:
        return Fail(InvalidManifest(f"spec.kubernetesVersion {spec.kubernetes_version}: {obstacle}"))
    for name, (wanted, current) in pools.items():
        obstacle = not_offered(wanted, current, offered)
        if obstacle:
            return Fail(InvalidManifest(f"spec.nodePools[{name}].orchestratorVersion {wanted}: {obstacle}"))
    return None


def _obstacle(context: StepContext, live: Json, offered: Sequence[str]) -> str:
    wanted, current = context.desired.spec.kubernetes_version, control_plane(live)
    old = outdated_foreign_pools(context.desired, context.owner, live)
    if old:
        return (
            f"AKS lets no node pool lag by more than {POOL_LAG} minor versions, and the manifest lacks "
            f"{', '.join(old)}: upgrade or remove them by hand, or add them to the manifest"
        )
    obstacle = not_offered(wanted, current, offered)
    if obstacle:
        return obstacle
    upgrades = offered_upgrades(context.azure(GetUpgradeProfile(context.cluster)))
    return not_offered(next_version(wanted, current), current, upgrades)
