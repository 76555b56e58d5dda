"""A refusal of AKS has the class of its cause, as the adapter reads it from the response."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError

from localcloud.azure.wire.arm_server import ArmServer
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.certificates import Authority
from localcloud.common.clock import ManualClock
from localcloud.common.control_plane import NullPlane
from localcloud.common.front_door import ScriptedFault
from shared.adapters.arm import ArmAzure
from shared.cluster.failures.errors import ReconcileError, Unauthenticated, Unavailable
from shared.ports.azure import AzureCall, GetCluster, ListRoleAssignments, PutPool
from shared.resource_ids import SubscriptionId
from tests.support.azure_ports import CLUSTER, StaticCredential, pool
from tests.support.receivers import answering

BUDGET = "Eviction failed. Cannot evict pod as it would violate the pod's disruption budget."
FULL = "retry failed: Code='SubnetIsFull' Message='nodes doesn't have enough capacity for IP addresses.'"


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, {"code": "AksCapacityHeavyUsage", "message": "heavy usage in westeurope"}, "OutOfCapacity"),
        (400, {"code": "UpgradeFailed", "message": BUDGET}, "Blocked"),
        (400, {"code": "ScaleVMSSAgentPoolFailed", "message": FULL}, "OutOfAddresses"),
        (
            400,
            {
                "code": "CreateVMSSAgentPoolFailed",
                "message": "it failed",
                "details": [{"code": "ZonalAllocationFailed", "message": "no room in zone 1"}],
            },
            "OutOfCapacity",
        ),
        (409, {"code": "EtagMismatch", "message": "another operation is in progress"}, "Conflict"),
        (400, {"code": "InvalidParameter", "message": "a wrong value"}, "InvalidManifest"),
    ],
)
def test_a_refusal_has_the_class_of_its_cause(
    status: int,
    error: dict[str, Any],
    kind: str,
    wrapped: bool,
    authority: tuple[Authority, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority[1]))
    world = AzureWorld(ManualClock(), plane=NullPlane())
    with ArmServer(world, authority[0], accepts=lambda token: token == "a-token") as server:
        server.door.faults = [ScriptedFault("^PUT ", status, {"error": error} if wrapped else error)]
        azure = ArmAzure(StaticCredential(), base_url=server.url)
        with pytest.raises(ReconcileError) as refused:
            azure.call(PutPool(CLUSTER, "apps", pool(), etag=None, only_new=True))
        azure.close()
    assert (refused.value.kind, refused.value.code) == (kind, error["code"])
    assert str(refused.value) == error["message"]


@pytest.mark.parametrize(
    "operation", [GetCluster(CLUSTER), ListRoleAssignments(SubscriptionId(CLUSTER.subscription))]
)
@pytest.mark.parametrize("kind", ["application/json", "text/html"])
def test_an_answer_that_is_no_json_is_unavailable(
    kind: str, operation: AzureCall[Any], authority: tuple[Authority, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a proxy, which the libraries read only where it is said to be JSON."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority[1]))
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n"
    with answering(f"{head}<html>".encode(), authority[0]) as url:
        azure = ArmAzure(StaticCredential(), base_url=url)
        with pytest.raises(Unavailable, match="cannot be read"):
            azure.call(operation)
        azure.close()


class NoCredential:
    """A credential of an app without an identity."""

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        assert scopes == ("https://management.azure.com/.default",)
        raise ClientAuthenticationError("no identity is assigned\nand more")


def test_a_probe_gets_a_token_and_names_a_missing_identity() -> None:
    ArmAzure(StaticCredential()).probe()
    with pytest.raises(Unauthenticated) as refused:
        ArmAzure(NoCredential()).probe()
    assert str(refused.value) == "There is no credential for Azure: no identity is assigned"
