"""Rollbacks of agent pools: which versions a pool ran lately, and the PUT that brings the last ones back.

Source of the properties: AgentPoolRecentlyUsedVersion and AgentPool.node_image_version in the models of the
management library: a value of nodeImageVersion triggers a rollback, and has to be a recently used one.
Source of the conditions: learn.microsoft.com/azure/aks/roll-back-node-pool-version: the auto-upgrade channel
is off, seven days after the upgrade, no consecutive rollbacks.
Neither documents the codes and texts of the refusals, nor the order of the list: these are assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from localcloud.azure.world.arm_errors import invalid
from localcloud.azure.world.catalog import check_lag, parse
from shared.json_tree import Json

WITHIN = timedelta(days=7)
_RECENT, _TARGET = "recentlyUsedVersions", "rollsBackTo"
NOT_SHOWN = (_RECENT, _TARGET)
"""What a pool has here, and its own document in Azure does not show."""


def recently_used(pool: Json) -> Sequence[Json]:
    """Return the versions that a pool ran before, as its upgrade profile shows them: the oldest first."""
    return [dict(document) for document in pool.get(_RECENT) or ()]


def remember(pool: dict[str, Any], now: datetime) -> None:
    """Add what a pool runs to what it ran: an upgrade ends."""
    entry = {
        "orchestratorVersion": pool["currentOrchestratorVersion"],
        "nodeImageVersion": pool["nodeImageVersion"],
        "timestamp": now.isoformat(),
    }
    pool[_RECENT] = [*recently_used(pool), entry]


def age_last(pool: dict[str, Any], by: timedelta) -> None:
    """Let the last upgrade of a pool be so much longer ago."""
    for entry in (pool.get(_RECENT) or [])[-1:]:
        entry["timestamp"] = (datetime.fromisoformat(entry["timestamp"]) - by).isoformat()


def asked_in(given: Json, before: Json | None, cluster: Json, now: datetime) -> Json | None:
    """Return the versions that a PUT of a pool brings back, None for another PUT, or refuse.

    ``cluster`` has the properties of the cluster.
    """
    image = given.get("nodeImageVersion")
    if before is None or image is None:
        return None
    current = before["currentOrchestratorVersion"]
    version = given.get("orchestratorVersion") or current
    if image == before["nodeImageVersion"] and parse(version) >= parse(current):
        return None  # what the pool runs, sent back with the rest of it
    recent = recently_used(before)
    same = [e for e in recent if (e["orchestratorVersion"], e["nodeImageVersion"]) == (version, image)]
    found = same[-1] if same else None  # a pool may have run them twice
    if found is None:
        raise _refused(f"'{image}' with Kubernetes {version} is not among the recently used versions")
    if found != recent[-1]:
        raise _refused(
            "only the last upgrade can be rolled back, and consecutive rollbacks are not supported"
        )
    if now - datetime.fromisoformat(found["timestamp"]) > WITHIN:
        raise _refused("a rollback is only available for 7 days after the upgrade")
    channel = (cluster.get("autoUpgradeProfile") or {}).get("upgradeChannel") or "none"
    if channel != "none":
        raise _refused(f"the auto-upgrade channel is '{channel}', and must be disabled")
    check_lag(version, cluster["currentKubernetesVersion"])
    return found


def without_versions(given: Json, before: Json) -> Json:
    """Return the PUT of a rollback as one that keeps what the pool runs."""
    kept = {k: v for k, v in given.items() if k != "nodeImageVersion"}
    return {**kept, "orchestratorVersion": before["currentOrchestratorVersion"]}


def begin(pool: dict[str, Any], target: Json) -> None:
    """Start to bring versions back."""
    pool |= {"orchestratorVersion": target["orchestratorVersion"], _TARGET: target}


def is_complete(pool: dict[str, Any]) -> bool:
    """Bring a pool to the versions of its rollback; return whether there was one. The list is then empty."""
    target = pool.pop(_TARGET, None)
    if target is None:
        return False
    version = target["orchestratorVersion"]
    pool |= {
        "currentOrchestratorVersion": version,
        "nodeImageVersion": target["nodeImageVersion"],
        _RECENT: [],
    }
    return True


def cancel(pool: dict[str, Any]) -> None:
    """Drop a rollback that failed, or that somebody aborted."""
    pool.pop(_TARGET, None)


def _refused(why: str) -> Exception:
    return invalid(
        f"The rollback of the agent pool is not allowed: {why}.", "agentPoolProfile.nodeImageVersion"
    )
