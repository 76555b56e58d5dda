"""Resource group and cluster, each brought to the manifest by at most one PUT a time.

Waiting reads the resource again: that is limited per cluster, while operation statuses are limited for a
whole subscription (learn.microsoft.com/azure/aks/quotas-skus-regions).
"""

from __future__ import annotations

from collections.abc import Sequence

from shared.fleet.aks.cluster_body import (
    all_differences,
    cluster_write,
    control_plane,
    group_body,
    left_too_old,
    pools_to_upgrade,
    upgrade_ahead,
)
from shared.fleet.aks.upgrades import next_version, not_offered, offered_upgrades, offered_versions
from shared.fleet.aks.writes import ImmutableChange, Write
from shared.fleet.desired import Desired
from shared.fleet.json_tree import Json
from shared.fleet.kubernetes_versions import POOL_LAG
from shared.jobs.errors import Immutable, InvalidManifest
from shared.jobs.outcomes import Done, Fail, Outcome, Wait
from shared.jobs.recipes import CONDITIONS, Step
from shared.jobs.record import ClusterRecord
from shared.pipeline.worker.steps.azure_state import (
    etag_of,
    fields,
    leaves,
    look_again,
    not_kept,
    not_ours,
    not_ready,
    others_in_group,
    owner_of,
    poll,
    state_of,
)
from shared.pipeline.worker.steps.flux import other_source
from shared.pipeline.worker.steps.maintenance_windows import differing_windows
from shared.pipeline.worker.steps.repeated_write import gone_again, once_more
from shared.ports import Ports

OBSERVE_SECONDS = 300.0
OTHERS_GROUP = "a group of others"
"""What the job notes when its write met a group that somebody had just made."""
SHOWN = 8
"""Differences that are named one by one."""


def ensure_resource_group(record: ClusterRecord, ports: Ports) -> Outcome:
    """Have the resource group; one that exists without our tags is used as it is, and never deleted."""
    desired = record.desired
    spec = desired.spec
    goes = "" if record.begun else leaves(record, ports)
    if goes:
        return Wait(
            poll(ports), f"{goes} is being deleted, maybe with the resource group {spec.resource_group}"
        )
    existing = ports.groups.get(spec.subscription_id, spec.resource_group)
    if existing is None and desired.adopt:
        return _nothing_to_adopt(desired)
    if existing is None:
        return _not_there(record, ports)
    if state_of(existing) == "Deleting":
        return Wait(poll(ports), f"the resource group {spec.resource_group} is still being deleted")
    if record.job.wrote == OTHERS_GROUP:
        return _give_back(existing, record, ports)
    return Done()


def _not_there(record: ClusterRecord, ports: Ports) -> Outcome:
    """Make the group that is not shown, after a second look if a try before may have made it, or met it."""
    place = f"the resource group {record.desired.spec.resource_group}"
    first = record.condition(CONDITIONS[Step.RESOURCE_GROUP]) is None and not record.job.lost
    if not (first or record.job.looked):
        return look_again(place)
    return _make_group(record, ports)


def _make_group(record: ClusterRecord, ports: Ports) -> Outcome:
    """Make the group; see by the answer if somebody else made it between our look and our write.

    What another cluster of the fleet made is ours.
    """
    spec, name = record.desired.spec, record.desired.spec.resource_group
    body = group_body(record.desired, owner_of(record, ports))
    written = ports.groups.put(spec.subscription_id, name, body)
    if written.created or others_in_group(record, ports):
        return Done(f"made the resource group {name}")
    return Wait(1, f"somebody else made the resource group {name} just now; giving it back", OTHERS_GROUP)


def _give_back(existing: Json, record: ClusterRecord, ports: Ports) -> Outcome:
    """Take our tags off a group that is not ours, so that nobody deletes it."""
    spec, name = record.desired.spec, record.desired.spec.resource_group
    if owner_of(record, ports).made_group(existing):
        ports.groups.put(spec.subscription_id, name, {"location": existing["location"], "tags": {}})
    lost = "the tags that it had are lost, so put them back"
    return Done(f"somebody else made the resource group {name}: it is used and never deleted; {lost}")


def ensure_cluster(record: ClusterRecord, ports: Ports) -> Outcome:
    """Bring the managed cluster to the spec; its node pools come with its creation."""
    desired, owner = record.desired, owner_of(record, ports)
    existing = ports.aks.get(desired.id)
    if existing is None and desired.adopt:
        return _nothing_to_adopt(desired)
    hindered = _hindrance(existing, record, ports) if existing is not None else None
    if hindered:
        return hindered
    try:
        write = cluster_write(desired, owner, existing)
    except ImmutableChange as error:
        return Fail(Immutable(str(error)))
    if write is None:
        return Done()
    if existing is None:
        return _create(write, record, ports)
    wrote = write.digest
    if wrote == record.job.wrote:
        return not_kept(f"the cluster {record.name}", write)
    request = ports.aks.put(desired.id, write.body, etag=etag_of(existing))
    return Wait(poll(ports), f"Azure is updating the cluster{fields(write)}", wrote, request)


def _create(write: Write, record: ClusterRecord, ports: Ports) -> Outcome:
    wrote = once_more(write.digest, record)
    if not wrote:
        return gone_again(f"the cluster {record.name}")
    request = ports.aks.put(record.desired.id, write.body, etag=None)
    return Wait(poll(ports), "Azure is creating the cluster", wrote, request)


def _hindrance(existing: Json, record: ClusterRecord, ports: Ports) -> Outcome | None:
    """Return what keeps us from writing to the cluster now, None when nothing does."""
    desired, owner = record.desired, owner_of(record, ports)
    if desired.adopt and not owner.owns(existing) and not owner.is_others(existing):
        return not_ready(existing, record, ports) or _observed(existing, record, ports)
    hindered = not_ours(existing, record, ports) or not_ready(existing, record, ports)
    return hindered or _no_way_up(existing, record, ports)


def _observed(existing: Json, record: ClusterRecord, ports: Ports) -> Outcome | None:
    """Return the differences of a cluster that is to be adopted, None when it may be taken over."""
    if record.desired.adopt == "with-differences":
        return _no_way_up(existing, record, ports)
    found = all_differences(record.desired, owner_of(record, ports), existing)
    found += [f"maintenanceWindows[{name}]" for name in differing_windows(record.desired, ports)]
    found += other_source(record, ports)
    if not found:
        return _no_way_up(existing, record, ports)
    shown = ", ".join(found[:SHOWN]) + (f" and {len(found) - SHOWN} more" if len(found) > SHOWN else "")
    return Wait(
        OBSERVE_SECONDS,
        f"the cluster is observed, not written to: it differs from the manifest in {shown}; let the manifest "
        "say what is there, or accept it with the annotation roadstead.dev/adopt: with-differences",
        person="Change the manifest to what is there, or set its annotation to with-differences.",
        open_ended=True,
    )


def _nothing_to_adopt(desired: Desired) -> Fail:
    place = f"the resource group {desired.spec.resource_group}"
    what = f"there is no cluster {desired.name} to adopt in {place}; correct the name or the place, or take"
    return Fail(
        InvalidManifest(f"{what} the annotation roadstead.dev/adopt away to have the cluster created")
    )


def _no_way_up(existing: Json, record: ClusterRecord, ports: Ports) -> Fail | None:
    """Refuse versions that Azure does not offer, or not over these pools, before anything is moved."""
    desired, owner = record.desired, owner_of(record, ports)
    rises = upgrade_ahead(desired, existing)
    pools = pools_to_upgrade(desired, owner, existing)
    if not rises and not pools:
        return None
    spec = desired.spec
    offered = offered_versions(ports.aks.versions(spec.subscription_id, spec.location))
    why = _cannot_rise(existing, record, offered, ports) if rises else ""
    if why:
        return Fail(InvalidManifest(f"spec.kubernetesVersion {spec.kubernetes_version}: {why}"))
    for name, (asked, runs) in pools.items():
        why = not_offered(asked, runs, offered)
        if why:
            return Fail(InvalidManifest(f"spec.nodePools[{name}].orchestratorVersion {asked}: {why}"))
    return None


def _cannot_rise(existing: Json, record: ClusterRecord, offered: Sequence[str], ports: Ports) -> str:
    """Return why the control plane cannot reach its version, "" when it can."""
    wanted, current = record.desired.spec.kubernetes_version, control_plane(existing)
    old = left_too_old(record.desired, owner_of(record, ports), existing)
    if old:
        return (
            f"AKS lets no node pool follow by more than {POOL_LAG} minors, and the manifest does not have "
            f"{', '.join(old)}: upgrade or remove them by hand, or take them into the manifest"
        )
    why = not_offered(wanted, current, offered)
    if why:
        return why
    upgrades = offered_upgrades(ports.aks.upgrade_profile(record.desired.id))
    return not_offered(next_version(wanted, current), current, upgrades)
