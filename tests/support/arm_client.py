"""A client of the local Resource Manager with the rights of the function app, for what people do by hand."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from localcloud.common.plain_http import NO_TLS
from tests.support.fleet_operator import Operator

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"


def path(name: str, action: str = "") -> str:
    """Return the path of a cluster in a group of its own, or of an action on it such as "/stop"."""
    cluster = f"Microsoft.ContainerService/managedClusters/{name}{action}?api-version=2025-08-01"
    return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-{name}/providers/{cluster}"


@contextmanager
def arm(operator: Operator, account: str = "") -> Iterator[httpx.Client]:
    """Yield a client of Resource Manager with the rights of the function app, or of an account by its id."""
    cloud = operator.cloud
    query = {"api-version": "2019-08-01", "resource": cloud.urls.arm}
    query |= {"client_id": account} if account else {}
    headers = {"X-IDENTITY-HEADER": cloud.settings["IDENTITY_HEADER"]}
    endpoint = cloud.settings["IDENTITY_ENDPOINT"]
    answer = httpx.get(endpoint, params=query, headers=headers, trust_env=False, verify=NO_TLS).json()
    trust = ssl.create_default_context(cafile=str(cloud.state / "ca.pem"))
    signed = {"Authorization": f"Bearer {answer['access_token']}"}
    with httpx.Client(base_url=cloud.urls.arm, headers=signed, verify=trust, trust_env=False) as client:
        yield client
