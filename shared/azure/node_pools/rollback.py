"""The rollback of a node pool to the versions that its last upgrade replaced, once.

A manifest names the image, and with ``lastUsed`` the upgrade that is undone: until then the pool ran these
versions. The PUT that starts the rollback writes that time as a tag of the pool, so a pool carries it out at
most once, whatever is read again later: see docs/decisions/0038. A new pool has the tag from the beginning.
Source: AgentPool.node_image_version and AgentPoolRecentlyUsedVersion in the models of the management library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from shared.azure.changes.comparison import overlay, writable_pool
from shared.azure.changes.writes import (
    PlannedWrite,
    is_final,
    is_stopped,
    last_write_failed,
    pool_is_stopped,
    running_version,
)
from shared.azure.cluster_body import control_plane
from shared.azure.ownership import ROLLBACK_TAG, rollback_tag, tag
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.kubernetes_versions import image_older, lags, runs_newer
from shared.language.model.node_pool import NodePool

VERSION, IMAGE = "orchestratorVersion", "nodeImageVersion"
NOT_ENDED = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class RecentVersions:
    """What a pool ran, and until when in UTC; ``last_used`` is to the second, as a manifest has it."""

    kubernetes: str
    image: str
    last_used: datetime

    def same_as(self, other: RecentVersions) -> bool:
        """Return whether both are the same versions, whenever they ran."""
        return (self.kubernetes, self.image) == (other.kubernetes, other.image)

    @property
    def moment(self) -> str:
        """The time as a manifest has it."""
        return f"{self.last_used:%Y-%m-%dT%H:%M:%SZ}"


def recently_used(upgrade_profile: Json) -> Sequence[RecentVersions]:
    """Return what a pool ran before, as Azure lists it for rollbacks, the newest first."""
    listed = (upgrade_profile.get("properties") or {}).get("recentlyUsedVersions") or ()
    found = (
        RecentVersions(
            str(document.get(VERSION) or ""), str(document.get(IMAGE) or ""), _moment(document["timestamp"])
        )
        for document in listed
        if document.get("timestamp")
    )
    return sorted(found, key=lambda versions: versions.last_used, reverse=True)


def versions_of(profile: Json) -> RecentVersions:
    """Return what a pool in Azure runs now, which has no end yet."""
    return RecentVersions(running_version(profile, VERSION), str(profile.get(IMAGE) or ""), NOT_ENDED)


def asked_for(pool: NodePool) -> RecentVersions | None:
    """Return the rollback that a manifest asks for, None for none."""
    if pool.rollback is None or pool.orchestrator_version is None:
        return None
    return RecentVersions(
        pool.orchestrator_version, pool.rollback.node_image_version, _moment(pool.rollback.last_used)
    )


def is_pending(target: RecentVersions, profile: Json) -> bool:
    """Return whether a pool in Azure still has to carry a rollback out, or to be tagged with it."""
    done = (tag(profile, ROLLBACK_TAG) or "") >= rollback_tag(target.last_used)
    return not done or (last_write_failed(profile) and not runs(target, profile))


def runs(target: RecentVersions, profile: Json) -> bool:
    """Return whether a pool runs the versions of a rollback."""
    return (running_version(profile, VERSION), profile.get(IMAGE)) == (target.kubernetes, target.image)


def rollback_write(target: RecentVersions, profile: Json) -> PlannedWrite:
    """Return the PUT that rolls a pool back and notes that it did, and changes nothing else.

    A pool that runs these versions already is only tagged: somebody rolled it back by hand.
    """
    wanted = {"tags": {ROLLBACK_TAG: rollback_tag(target.last_used)}}
    versions = {} if runs(target, profile) else {VERSION: target.kubernetes, IMAGE: target.image}
    changes = overlay(profile, wanted | versions)[1]
    body, _ = overlay(writable_pool(profile), wanted)
    known = {key: value for key, value in body.items() if value is not None}
    return PlannedWrite({"properties": {**known, **versions}}, tuple(changes))


def _moment(value: str | datetime) -> datetime:
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).replace(microsecond=0)


# What Azure demands of the rollback of a node pool.
#
# Source: learn.microsoft.com/azure/aks/roll-back-node-pool-version, "Node pool rollback limitations".

WITHIN = timedelta(days=7)
_FORWARD = "upgrade forward, or add a pool with the version that you want"


class UnmetCondition(NamedTuple):
    """A condition that is not met: what is wrong and what to do, as sentences without their full stops."""

    problem: str
    remedy: str


def nothing_listed(pool: str, asked: str = "") -> UnmetCondition:
    """Return what is wrong where Azure lists nothing at all, or not what is ``asked``."""
    return UnmetCondition(
        f"Azure lists no earlier version of the pool {pool} to roll back to{asked}", _FORWARD
    )


def unmet(
    pool: str,
    target: RecentVersions,
    listed: Sequence[RecentVersions],
    cluster: Json,
    profile: Json,
    *,
    oldest_image: str,
    now: datetime,
) -> tuple[UnmetCondition, ...]:
    """Return every condition that the rollback of a pool does not meet now.

    ``listed`` is what Azure lists, the newest first; ``cluster`` and ``profile`` are the cluster and the pool
    as Azure shows them; ``oldest_image`` is the manifest's ``minNodeImageVersion``, "" for none.
    """
    return (
        *_of_versions(pool, target, listed, now),
        *_of_cluster(cluster, profile),
        *_of_manifest(pool, target, cluster, oldest_image),
    )


def _of_versions(
    pool: str, target: RecentVersions, listed: Sequence[RecentVersions], now: datetime
) -> Iterator[UnmetCondition]:
    if not any(target.same_as(versions) for versions in listed):
        asked = f", and not Kubernetes {target.kubernetes} with {target.image}" if listed else ""
        yield nothing_listed(pool, asked)
    elif listed[0] != target:
        yield UnmetCondition(
            f"the pool {pool} was upgraded again at {listed[0].moment}, and Azure goes back one step only",
            "run roadstead rollback again, which proposes the step before the last upgrade",
        )
    if now - target.last_used > WITHIN:
        ran = f"the pool {pool} ran these versions until {target.moment}"
        yield UnmetCondition(f"{ran}, and Azure rolls back within seven days", _FORWARD)


def _of_cluster(cluster: Json, profile: Json) -> Iterator[UnmetCondition]:
    properties = cluster["properties"]
    upgrades = properties.get("autoUpgradeProfile") or {}
    channel = str(upgrades.get("upgradeChannel") or "none")
    if channel.lower() != "none":
        yield UnmetCondition(
            f"autoUpgradeProfile.upgradeChannel is {channel}, which would upgrade the pool again",
            "commit autoUpgradeProfile.upgradeChannel: none first",
        )
    of_nodes = str(upgrades.get("nodeOSUpgradeChannel") or "NodeImage")  # Azure's default
    if of_nodes.lower() != "none":
        yield UnmetCondition(
            f"autoUpgradeProfile.nodeOSUpgradeChannel is {of_nodes}, so Azure may not restore the node image",
            "commit autoUpgradeProfile.nodeOSUpgradeChannel: None first",
        )
    name = f"the pool {profile['name']}"
    for what, holder in (("the cluster", properties), (name, profile)):
        if not is_final(str(holder.get("provisioningState") or "")):
            yield UnmetCondition(f"Azure is at work on {what}", "try again when that has ended")
    if is_stopped(cluster) or pool_is_stopped(profile):
        yield UnmetCondition(f"{'the cluster' if is_stopped(cluster) else name} is stopped", "start it first")


def _of_manifest(
    pool: str, target: RecentVersions, cluster: Json, oldest_image: str
) -> Iterator[UnmetCondition]:
    plane = control_plane(cluster)
    if runs_newer(plane, target.kubernetes) or lags(target.kubernetes, plane):
        own = f"Kubernetes {target.kubernetes} of the pool {pool}"
        yield UnmetCondition(f"{own} does not fit the control plane's {plane}", _FORWARD)
    if oldest_image and image_older(target.image, oldest_image):
        newer = f"spec.minNodeImageVersion {oldest_image} is newer than the image {target.image}"
        yield UnmetCondition(
            f"{newer}, and would upgrade it again", "lower or remove minNodeImageVersion first"
        )
