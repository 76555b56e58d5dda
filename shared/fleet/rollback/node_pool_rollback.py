"""The rollback of a node pool to the versions that its last upgrade replaced, once.

A manifest names the image, and with ``lastUsed`` the upgrade that is undone: until then the pool ran these
versions. The PUT that starts the rollback writes that time as a tag of the pool, so a pool carries it out at
most once, whatever is read again later: see docs/decisions/0038. A new pool has the tag from the beginning.
Source: AgentPool.node_image_version and AgentPoolRecentlyUsedVersion in the models of the management library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.fleet.aks.comparison import overlay
from shared.fleet.aks.ownership import ROLLBACK_TAG, Owner, rollback_tag, tag
from shared.fleet.aks.read_only import writable_pool
from shared.fleet.aks.writes import Write, last_write_failed, running_version
from shared.fleet.json_tree import Json
from shared.fleet.manifests.node_pool.pool import NodePool

VERSION, IMAGE = "orchestratorVersion", "nodeImageVersion"
NOT_ENDED = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Versions:
    """What a pool ran, and until when in UTC; ``last_used`` is to the second, as a manifest has it."""

    kubernetes: str
    image: str
    last_used: datetime

    def same_as(self, other: Versions) -> bool:
        """Return whether both are the same versions, whenever they ran."""
        return (self.kubernetes, self.image) == (other.kubernetes, other.image)

    @property
    def moment(self) -> str:
        """The time as a manifest has it."""
        return f"{self.last_used:%Y-%m-%dT%H:%M:%SZ}"


def recently_used(upgrade_profile: Json) -> Sequence[Versions]:
    """Return what a pool ran before, as Azure lists it for rollbacks, the newest first."""
    listed = (upgrade_profile.get("properties") or {}).get("recentlyUsedVersions") or ()
    found = (
        Versions(str(each.get(VERSION) or ""), str(each.get(IMAGE) or ""), _moment(each["timestamp"]))
        for each in listed
        if each.get("timestamp")
    )
    return sorted(found, key=lambda each: each.last_used, reverse=True)


def versions_of(profile: Json) -> Versions:
    """Return what a pool in Azure runs now, which has no end yet."""
    return Versions(running_version(profile, VERSION), str(profile.get(IMAGE) or ""), NOT_ENDED)


def asked_for(pool: NodePool) -> Versions | None:
    """Return the rollback that a manifest asks for, None for none."""
    if pool.rollback is None or pool.orchestrator_version is None:
        return None
    return Versions(
        pool.orchestrator_version, pool.rollback.node_image_version, _moment(pool.rollback.last_used)
    )


def is_pending(target: Versions, profile: Json) -> bool:
    """Return whether a pool in Azure still has to carry a rollback out, or to be tagged with it."""
    done = (tag(profile, ROLLBACK_TAG) or "") >= rollback_tag(target.last_used)
    return not done or (last_write_failed(profile) and not runs(target, profile))


def runs(target: Versions, profile: Json) -> bool:
    """Return whether a pool runs the versions of a rollback."""
    return (running_version(profile, VERSION), profile.get(IMAGE)) == (target.kubernetes, target.image)


def rollback_write(target: Versions, owner: Owner, profile: Json) -> Write:
    """Return the PUT that rolls a pool back and notes that it did, and changes nothing else.

    A pool that runs these versions already is only tagged: somebody rolled it back by hand.
    """
    wanted = {"tags": {ROLLBACK_TAG: rollback_tag(target.last_used)}}
    versions = {} if runs(target, profile) else {VERSION: target.kubernetes, IMAGE: target.image}
    changes = overlay(profile, wanted | versions)[1]
    body, _ = overlay(writable_pool(profile), {"tags": {**wanted["tags"], **owner.job_tag}})
    known = {key: value for key, value in body.items() if value is not None}
    return Write({"properties": {**known, **versions}}, tuple(changes))


def _moment(value: str | datetime) -> datetime:
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).replace(microsecond=0)
