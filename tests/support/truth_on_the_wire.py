"""What the API and GitHub say of a cluster over the wire: its five conditions, and the status of a commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import httpx

from tests.support.fleet_operator import Operator


class Truth(NamedTuple):
    """The five conditions of a whole cluster, "" for one that it does not have."""

    Ready: str = "True"
    InSync: str = "True"
    FluxHealthy: str = "True"
    PlatformHealthy: str = "True"
    Stalled: str = "False"


HEALTHY = Truth()
DRIFTED = Truth(InSync="False")
UPDATING = Truth(Ready="False", InSync="False")
LOST = Truth(Ready="False", InSync="False", FluxHealthy="Unknown", PlatformHealthy="Unknown", Stalled="True")
"""Somebody deleted or stopped the cluster, and no job runs."""
REPAIRED = LOST._replace(Stalled="False")
"""A job creates or starts it again."""
FLUX_FAILS = Truth(Ready="False", FluxHealthy="False", Stalled="True")


def truths(operator: Operator) -> dict[str, Truth]:
    """Return the conditions of each cluster."""
    found = {}
    for cluster in operator.api.get("clusters")["clusters"]:
        known = {condition["type"]: condition["status"] for condition in cluster["conditions"]}
        found[cluster["name"]] = Truth(*(known.get(kind, "") for kind in Truth._fields))
    return found


def wait_for(operator: Operator, expected: Mapping[str, Truth], what: str, *, refresh: bool = False) -> None:
    """Wait until clusters have these conditions; ``refresh`` has them compared and checked before."""
    if refresh:
        operator.api.refresh([*expected])
    operator.wait(lambda: _shown(operator, expected) == dict(expected), what)


def _shown(operator: Operator, expected: Mapping[str, Truth]) -> dict[str, Truth]:
    return {name: truth for name, truth in truths(operator).items() if name in expected}


def hold(operator: Operator, *requests: str) -> None:
    """Have Azure refuse these requests with 429, so that what they do is seen before it is done.

    It names the limit of writes: without a name, the tokens for everything else would be gone too.
    """
    error = {"code": "SubscriptionRequestsThrottled", "message": "a test holds this"}
    refused = {"status": 429, "headers": {"Retry-After": "1"}, "times": None, "body": {"error": error}}
    operator.faults(operator.cloud.urls.arm, [{"match": request, **refused} for request in requests])


def release(operator: Operator) -> None:
    """Have Azure take every request again."""
    operator.faults(operator.cloud.urls.arm, [])


def exists(azure: httpx.Client, path: str) -> bool:
    """Return whether Azure has a resource."""
    return azure.get(path).status_code != httpx.codes.NOT_FOUND
