"""What people change in a cluster over the wire, and what the API then says of its drift."""

from __future__ import annotations

from typing import Any

import httpx

from tests.support.arm_client import path
from tests.support.fleet_operator import Operator

ARM_SECONDS = 1.0
"""Between two reads of Azure, which limits them for each cluster."""


def changed(operator: Operator, azure: httpx.Client, name: str) -> None:
    """Scale a pool, and change and add a tag, as the portal does; return when that has ended."""
    tags = {**azure.get(path(name)).json()["tags"], "cost": "b", "own": "x"}
    azure.patch(path(name), json={"tags": tags}).raise_for_status()
    settle(operator, azure, name)
    pool = azure.get(path(name, "/agentPools/apps")).json()["properties"]
    scaled = {key: pool[key] for key in ("vmSize", "mode", "type", "tags", "osType")} | {"count": 3}
    azure.put(path(name, "/agentPools/apps"), json={"properties": scaled}).raise_for_status()
    settle(operator, azure, name)


def settle(operator: Operator, azure: httpx.Client, name: str) -> None:
    """Wait until the operation on a cluster has ended; Azure limits the reads of a cluster."""

    def ended() -> bool:
        return bool(azure.get(path(name)).json()["properties"]["provisioningState"] == "Succeeded")

    operator.wait(ended, f"the operation on {name} has ended", every=ARM_SECONDS)


def drifted(operator: Operator, name: str) -> dict[str, tuple[str, str]]:
    """Return both values of each field that differs, as the API has them."""
    found = operator.api.drift(name)["clusters"]
    return {field["path"]: (field["git"], field["live"]) for each in found for field in each["fields"]}


def in_sync(operator: Operator, name: str) -> str:
    """Return the status of the condition InSync."""
    view: dict[str, Any] = operator.api.get(f"clusters/{name}")
    return next(str(each["status"]) for each in view["conditions"] if each["type"] == "InSync")
