"""Agent pools that stop and start through their PUT.

Source: azure-cli's recording test_aks_nodepool_stop_and_start. A pool that stops shows a count of 0 at once.
Started with a body that still says 0, it has as many nodes as before. What a count does that is written while
the pool is stopped is not recorded; here nothing.
"""

from __future__ import annotations

from typing import Any

from localcloud.azure.world.pools.rollbacks import NOT_SHOWN
from shared.json_tree import Json

_COUNT = "countWhileRunning"
"""Where a stopped pool has the count that it starts with again; Azure does not show it."""


def power_of(pool: Json) -> str:
    """Return "Running" or "Stopped"; a new pool runs."""
    return str((pool.get("powerState") or {}).get("code") or "Running")


def set_count_of_power(pool: dict[str, Any], before: Json | None) -> None:
    """Set the count of a pool that a PUT stops, starts, or leaves stopped."""
    if before is None:
        return
    if power_of(pool) == "Running" and is_stopped_alone(pool):
        pool["count"] = pool.pop(_COUNT)
    elif power_of(pool) == "Stopped":
        pool |= {_COUNT: before.get(_COUNT, before["count"]), "count": 0}


def is_stopped_alone(pool: Json) -> bool:
    """Return whether a pool was stopped by itself, not with its cluster."""
    return _COUNT in pool


def shown_pool(pool: Json) -> dict[str, Any]:
    """Return a pool without what Azure does not show."""
    return {key: value for key, value in pool.items() if key not in (_COUNT, *NOT_SHOWN)}


def state_of_put(before: Json | None, after: Json) -> str:
    """Return the provisioning state while Azure carries out the PUT of a pool."""
    if before is None:
        return "Creating"
    if power_of(before) == power_of(after):
        return "Updating"
    return "Stopping" if power_of(after) == "Stopped" else "Starting"
