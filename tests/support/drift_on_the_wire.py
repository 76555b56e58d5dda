"""What people change in a cluster over the wire, and what the API then says of its drift."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import httpx

from tests.support.arm_client import path
from tests.support.fleet_operator import Operator

ARM_SECONDS = 1.0
"""Between two reads of Azure, which limits them for each cluster."""


def changed(operator: Operator, azure: httpx.Client, *names: str) -> None:
    """Change and add a tag, and scale a pool, of each cluster; return when that has ended."""
    for change in (_tag, _scale):
        _each(change, operator, azure, names)


def deleted(operator: Operator, azure: httpx.Client, *names: str) -> None:
    """Delete the pool "spare" of each cluster; return when that has ended."""
    _each(_delete, operator, azure, names)


def without_own(operator: Operator, azure: httpx.Client, *names: str) -> None:
    """Remove the tag that was added to each cluster; return when that has ended."""
    _each(_untag, operator, azure, names)


def _each(
    change: Callable[[httpx.Client, str], None], operator: Operator, azure: httpx.Client, names: Iterable[str]
) -> None:
    """Make a change in all clusters at once, and wait for all of them."""
    some = tuple(names)
    for name in some:
        change(azure, name)
    for name in some:
        settle(operator, azure, name)


def _tag(azure: httpx.Client, name: str) -> None:
    tags = {**azure.get(path(name)).json()["tags"], "cost": "b", "own": "x"}
    azure.patch(path(name), json={"tags": tags}).raise_for_status()


def _scale(azure: httpx.Client, name: str) -> None:
    pool = azure.get(path(name, "/agentPools/apps")).json()["properties"]
    scaled = {key: pool[key] for key in ("vmSize", "mode", "type", "tags", "osType")} | {"count": 3}
    azure.put(path(name, "/agentPools/apps"), json={"properties": scaled}).raise_for_status()


def _delete(azure: httpx.Client, name: str) -> None:
    azure.delete(path(name, "/agentPools/spare")).raise_for_status()


def _untag(azure: httpx.Client, name: str) -> None:
    tags = {key: value for key, value in azure.get(path(name)).json()["tags"].items() if key != "own"}
    azure.patch(path(name), json={"tags": tags}).raise_for_status()


def settle(operator: Operator, azure: httpx.Client, name: str) -> None:
    """Wait until the operation on a cluster has ended; Azure limits the reads of a cluster."""

    def ended() -> bool:
        properties = azure.get(path(name)).json()["properties"]
        parts = [properties, *properties["agentPoolProfiles"]]
        return all(part["provisioningState"] == "Succeeded" for part in parts)

    operator.wait(ended, f"the operation on {name} has ended", every=ARM_SECONDS)


def drifted(operator: Operator, name: str) -> dict[str, tuple[str, str]]:
    """Return both values of each field that differs, as the API has them."""
    found = operator.api.drift(name)["clusters"]
    return {field["path"]: (field["git"], field["live"]) for cluster in found for field in cluster["fields"]}
