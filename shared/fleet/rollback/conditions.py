"""What Azure demands of the rollback of a node pool, as values; only this module describes them in sentences.

Source: learn.microsoft.com/azure/aks/roll-back-node-pool-version, "Node pool rollback limitations".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from shared.fleet.aks.cluster_body import control_plane
from shared.fleet.aks.writes import is_final, is_stopped, pool_is_stopped
from shared.fleet.json_tree import Json
from shared.fleet.kubernetes_versions import image_older, lags, runs_newer
from shared.fleet.rollback.node_pool_rollback import Versions

WITHIN = timedelta(days=7)


class Condition(StrEnum):
    """A condition of Azure, or of the manifest, that a rollback needs."""

    LISTED = "listed"
    NEWEST = "newest"
    WITHIN_SEVEN_DAYS = "within-seven-days"
    AUTO_UPGRADE_OFF = "auto-upgrade-off"
    NODE_OS_UPGRADE_OFF = "node-os-upgrade-off"
    IDLE = "idle"
    RUNNING = "running"
    CONTROL_PLANE = "control-plane"
    OLDEST_IMAGE = "oldest-image"


_SENTENCES: Mapping[Condition, tuple[str, str]] = {
    Condition.LISTED: (
        "Azure lists no earlier version of the pool {pool} to roll back to{asked}",
        "upgrade forward, or add a pool with the version that you want",
    ),
    Condition.NEWEST: (
        "the pool {pool} was upgraded again at {newest}, and Azure goes back one step only",
        "run roadstead rollback again, which proposes the step before the last upgrade",
    ),
    Condition.WITHIN_SEVEN_DAYS: (
        "the pool {pool} ran these versions until {last_used}, and Azure rolls back within seven days",
        "upgrade forward, or add a pool with the version that you want",
    ),
    Condition.AUTO_UPGRADE_OFF: (
        "autoUpgradeProfile.upgradeChannel is {channel}, which would upgrade the pool again",
        "commit autoUpgradeProfile.upgradeChannel: none first",
    ),
    Condition.NODE_OS_UPGRADE_OFF: (
        "autoUpgradeProfile.nodeOSUpgradeChannel is {channel}, so Azure may not restore the node image",
        "commit autoUpgradeProfile.nodeOSUpgradeChannel: None first",
    ),
    Condition.IDLE: ("Azure is at work on {what}", "try again when that has ended"),
    Condition.RUNNING: ("{what} is stopped", "start it first"),
    Condition.CONTROL_PLANE: (
        "Kubernetes {version} of the pool {pool} does not fit the control plane's {plane}",
        "upgrade forward, or add a pool with the version that you want",
    ),
    Condition.OLDEST_IMAGE: (
        "spec.minNodeImageVersion {oldest} is newer than the image {image}, and would upgrade it again",
        "lower or remove minNodeImageVersion first",
    ),
}


@dataclass(frozen=True)
class Unmet:
    """A condition that is not met, with the values that its sentence names."""

    condition: Condition
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def problem(self) -> str:
        """What is wrong, as a sentence without its full stop."""
        return _SENTENCES[self.condition][0].format(**self.values)

    @property
    def remedy(self) -> str:
        """What to do, as a sentence without its full stop."""
        return _SENTENCES[self.condition][1]


def nothing_listed(pool: str) -> Unmet:
    """Return what is wrong where Azure lists nothing at all."""
    return Unmet(Condition.LISTED, {"pool": pool, "asked": ""})


def unmet(
    pool: str,
    target: Versions,
    listed: Sequence[Versions],
    cluster: Json,
    profile: Json,
    *,
    oldest_image: str,
    now: datetime,
) -> tuple[Unmet, ...]:
    """Return every condition that the rollback of a pool does not meet now.

    ``listed`` is what Azure lists, the newest first; ``cluster`` and ``profile`` are the cluster and the pool
    as Azure shows them; ``oldest_image`` is the manifest's ``minNodeImageVersion``, "" for none.
    """
    return (
        *_of_versions(pool, target, listed, now),
        *_of_cluster(cluster, profile),
        *_of_manifest(pool, target, cluster, oldest_image),
    )


def _of_versions(pool: str, target: Versions, listed: Sequence[Versions], now: datetime) -> Iterator[Unmet]:
    if not any(target.same_as(each) for each in listed):
        asked = f", and not Kubernetes {target.kubernetes} with {target.image}" if listed else ""
        yield Unmet(Condition.LISTED, {"pool": pool, "asked": asked})
    elif listed[0] != target:
        yield Unmet(Condition.NEWEST, {"pool": pool, "newest": listed[0].moment})
    if now - target.last_used > WITHIN:
        yield Unmet(Condition.WITHIN_SEVEN_DAYS, {"pool": pool, "last_used": target.moment})


def _of_cluster(cluster: Json, profile: Json) -> Iterator[Unmet]:
    properties = cluster["properties"]
    upgrades = properties.get("autoUpgradeProfile") or {}
    channel = str(upgrades.get("upgradeChannel") or "none")
    if channel.lower() != "none":
        yield Unmet(Condition.AUTO_UPGRADE_OFF, {"channel": channel})
    of_nodes = str(upgrades.get("nodeOSUpgradeChannel") or "NodeImage")  # Azure's default
    if of_nodes.lower() != "none":
        yield Unmet(Condition.NODE_OS_UPGRADE_OFF, {"channel": of_nodes})
    name = f"the pool {profile['name']}"
    for what, holder in (("the cluster", properties), (name, profile)):
        if not is_final(str(holder.get("provisioningState") or "")):
            yield Unmet(Condition.IDLE, {"what": what})
    if is_stopped(cluster) or pool_is_stopped(profile):
        yield Unmet(Condition.RUNNING, {"what": "the cluster" if is_stopped(cluster) else name})


def _of_manifest(pool: str, target: Versions, cluster: Json, oldest_image: str) -> Iterator[Unmet]:
    plane = control_plane(cluster)
    if runs_newer(plane, target.kubernetes) or lags(target.kubernetes, plane):
        values = {"version": target.kubernetes, "pool": pool, "plane": plane}
        yield Unmet(Condition.CONTROL_PLANE, values)
    if oldest_image and image_older(target.image, oldest_image):
        yield Unmet(Condition.OLDEST_IMAGE, {"oldest": oldest_image, "image": target.image})
