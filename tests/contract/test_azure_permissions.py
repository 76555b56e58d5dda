"""The role in a target subscription allows each request that the operations make, and no other change.

The name of a permission follows from the request: the resource types of its path, then ``read`` for GET,
``write`` for PUT and PATCH, ``delete`` for DELETE, and the last part of the path with ``action`` for POST.
The tables below are from Microsoft's pages "Azure permissions for Containers" and "AKS service permissions".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import astuple
from fnmatch import fnmatchcase
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from azure.core.pipeline.transport import HttpTransport
from azure.mgmt.containerservice import ContainerServiceClient
from azure.mgmt.resource.resources import ResourceManagementClient

from shared.ports.azure import AzureCall
from tests.support.azure_operations import OPERATIONS, example
from tests.support.azure_ports import SUBSCRIPTION, StaticCredential
from tests.support.bicep import Template

ROOT = Path(__file__).parent.parent.parent
CLIENTS = {"containerservice": ContainerServiceClient, "resource": ResourceManagementClient}
VERBS = {"GET": "read", "PUT": "write", "PATCH": "write", "DELETE": "delete"}
CONTAINERS = "Microsoft.ContainerService/managedClusters"
GROUPS = "Microsoft.Resources/subscriptions/resourceGroups"

CHANGES = frozenset(
    {
        *(f"{GROUPS}/{verb}" for verb in ("write", "delete")),
        *(f"{CONTAINERS}/{verb}" for verb in ("write", "delete", "listClusterUserCredential/action")),
        *(f"{CONTAINERS}/agentPools/{verb}" for verb in ("write", "delete")),
        f"{CONTAINERS}/agentPools/upgradeNodeImageVersion/action",
        *(f"{CONTAINERS}/maintenanceConfigurations/{verb}" for verb in ("write", "delete")),
    }
)
"""The changes that an operation may make, by the names of the pages for Containers and for Management."""

NETWORK = "Microsoft.Network"
LINKED: Mapping[str, tuple[str, ...]] = {
    "a public address": (f"{NETWORK}/publicIPAddresses/join/action",),
    "a public address prefix": (f"{NETWORK}/publicIPPrefixes/join/action",),
    "a subnet": (f"{NETWORK}/virtualNetworks/subnets/join/action",),
    "an application gateway": (
        f"{NETWORK}/applicationGateways/read",
        f"{NETWORK}/applicationGateways/write",
        f"{NETWORK}/virtualNetworks/subnets/join/action",
    ),
    "a user-assigned identity": ("Microsoft.ManagedIdentity/userAssignedIdentities/assign/action",),
    "a Log Analytics workspace": (
        "Microsoft.OperationalInsights/workspaces/read",
        "Microsoft.OperationalInsights/workspaces/sharedkeys/read",
        # Defender for Containers fetches the keys with a POST, in the name of whoever writes the cluster.
        "Microsoft.OperationalInsights/workspaces/sharedKeys/action",
        "Microsoft.OperationsManagement/solutions/read",
        "Microsoft.OperationsManagement/solutions/write",
    ),
    "a disk encryption set": ("Microsoft.Compute/diskEncryptionSets/read",),
    "a proximity placement group": ("Microsoft.Compute/proximityPlacementGroups/write",),
    "a load balancer whose backend pools have addresses": (
        f"{NETWORK}/virtualNetworks/joinLoadBalancer/action",
    ),
}
"""What whoever writes a cluster needs on the resources that it names, from "AKS service permissions"."""
BY_THE_CLUSTER = frozenset(
    {
        *("a private DNS zone", "a DNS zone", "a key vault", "a registry", "a node pool snapshot"),
        *("an application security group", "a dedicated host group", "a capacity reservation group"),
    }
)
"""What that page does not ask of whoever writes a cluster: the cluster's identities need roles on it."""


class Sent(Exception):
    """The request was recorded, and goes no further."""


class Recorder(HttpTransport[Any, Any]):
    """The transport of a client library that records the one request."""

    def __init__(self) -> None:
        self.request = ("", "")

    def send(self, request: Any, **_: Any) -> Any:
        self.request = (request.method, urlsplit(request.url).path)
        raise Sent

    def open(self) -> None:
        """Nothing to open."""

    def close(self) -> None:
        """Nothing to close."""

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""


def permission(method: str, path: str) -> str:
    """Return the name of the permission that Azure checks for a request, in lower case: case is ignored."""
    provider, parts = "Microsoft.Resources/subscriptions", path.strip("/").split("/")[2:]
    if "providers" in parts:
        _, _, rest = path.rpartition("/providers/")
        provider, *parts = rest.split("/")
    name = "/".join([provider, *parts[0::2], VERBS.get(method, "action")])
    return name.lower()


def request_of(kind: type[AzureCall[Any]]) -> tuple[str, str]:
    operation, recorder = example(kind), Recorder()
    client: Any = CLIENTS[kind.service](StaticCredential(), SUBSCRIPTION, transport=recorder)
    with suppress(Sent):
        answer = attrgetter(kind.sdk)(client)(*astuple(operation.target)[1:], *operation.arguments)
        list(answer)  # a list sends its request when it is read
    return recorder.request


def allowed() -> list[str]:
    role = Template(ROOT / "infra" / "access.bicep").resource("Microsoft.Authorization/roleDefinitions")
    (permissions,) = role.value["properties"]["permissions"]
    assert set(permissions) == {"actions"}
    actions: list[str] = permissions["actions"]
    return actions


def allows(actions: list[str], name: str) -> bool:
    """Return whether a role allows an action, as Azure compares them: * stands for anything."""
    return any(fnmatchcase(name.lower(), each.lower()) for each in actions)


@pytest.mark.parametrize("kind", OPERATIONS)
def test_the_role_allows_each_operation(kind: type[AzureCall[Any]]) -> None:
    method, path = request_of(kind)
    name = permission(method, path)
    assert allows(allowed(), name)
    assert name.endswith("/read") or name in {each.lower() for each in CHANGES}, "not on Microsoft's pages"


def test_the_names_follow_from_the_requests() -> None:
    cluster = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/c"
    expected = {
        ("PUT", cluster): f"{CONTAINERS}/write",
        ("DELETE", f"{cluster}/agentPools/p"): f"{CONTAINERS}/agentPools/delete",
        ("POST", f"{cluster}/listClusterUserCredential"): f"{CONTAINERS}/listClusterUserCredential/action",
        ("DELETE", "/subscriptions/s/resourcegroups/g"): f"{GROUPS}/delete",
        ("GET", "/subscriptions/s/resourceGroups/g/resources"): f"{GROUPS}/resources/read",
    }
    assert {request: permission(*request) for request in expected} == {
        request: name.lower() for request, name in expected.items()
    }


def test_the_role_allows_whatever_azure_asks_for_a_resource_that_a_manifest_may_name() -> None:
    reference = (ROOT / "docs" / "reference.md").read_text()
    named = {kind.strip() for kind in re.findall(r"the resource id of (an? [^(;|]+)", reference)}
    assert len(named) > 10
    assert named - set(LINKED) - BY_THE_CLUSTER == set(), "see Microsoft's page on AKS service permissions"
    assert "backendPoolType" in reference
    needed = {name for names in LINKED.values() for name in names}
    assert {name for name in needed if not allows(allowed(), name)} == set()


def test_the_role_allows_no_change_that_nothing_needs() -> None:
    linked = {name.lower() for names in LINKED.values() for name in names}
    used = {permission(*request_of(kind)) for kind in OPERATIONS}
    changes = {name.lower() for name in allowed() if not name.endswith("/read")}
    assert changes - linked - used == set()
    assert not any("*" in name for name in changes)
