"""The Azure Resource Manager stand-in on the wire, and the adapter where Azure does not play along."""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from azure.core.credentials import AccessToken
from azure.identity import CredentialUnavailableError
from azure.mgmt.containerservice import ContainerServiceClient
from azure.mgmt.resource.resources import ResourceManagementClient

from localcloud.azure.wire.arm_server import ArmServer
from localcloud.azure.world.arm_resources import Timings
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.azure.world.catalog import NODE_IMAGES
from localcloud.azure.world.request_limits import TokenBucket
from localcloud.common.certificates import Authority
from localcloud.common.clock import ManualClock, system_clock
from localcloud.common.control_plane import NullPlane
from localcloud.common.front_door import ScriptedFault
from shared.adapters.arm import ArmAzure
from shared.cluster.failures.errors import (
    Conflict,
    Dependency,
    ReconcileError,
    Throttled,
    Unauthenticated,
    Unavailable,
)
from shared.ports.azure import GetCluster, GetGroup, PutCluster
from shared.resource_ids import ClusterId

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
CLUSTER = ClusterId(SUBSCRIPTION, "rg", "aks")
GROUP_PATH = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg"
BODY: dict[str, Any] = {
    "location": "westeurope",
    "identity": {"type": "SystemAssigned"},
    "properties": {
        "dnsPrefix": "aks",
        "agentPoolProfiles": [{"name": "system", "mode": "System", "vmSize": "Standard_D2s_v5"}],
    },
}


class Credential:
    """A credential whose token is good."""

    def get_token(self, *_scopes: str, **_: Any) -> AccessToken:
        return AccessToken("good", int(time.time()) + 3600)


class NoCredential(Credential):
    """A credential that finds no identity."""

    def get_token(self, *_scopes: str, **_: Any) -> AccessToken:
        raise CredentialUnavailableError("no managed identity here\nsecond line")


@dataclass
class Served:
    """A served world, and how to speak to it."""

    server: ArmServer
    world: AzureWorld
    http: httpx.Client

    def adapter(self, credential: Credential | None = None) -> ArmAzure:
        return ArmAzure(credential or Credential(), base_url=self.server.url)


@pytest.fixture
def served(authority: tuple[Authority, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority[1]))
    quick = Timings(create_cluster=0.1, update_cluster=0.1, delete_cluster=0.1, delete_group=0.1)
    world = AzureWorld(system_clock, plane=NullPlane(), timings=quick)
    trust = ssl.create_default_context(cafile=str(authority[1]))
    with (
        ArmServer(world, authority[0], accepts=lambda token: token == "good") as server,
        httpx.Client(base_url=server.url, verify=trust, headers={"Authorization": "Bearer good"}) as http,
    ):
        world.put_group(SUBSCRIPTION, "rg", {"location": "westeurope"})
        yield Served(server, world, http)


def code_of(reply: httpx.Response) -> str:
    body = reply.json()
    return str(body.get("error", body)["code"])


def test_every_request_needs_a_token_and_an_api_version(served: Served) -> None:
    without = served.http.get(GROUP_PATH, headers={"Authorization": ""})
    wrong = served.http.get(GROUP_PATH, headers={"Authorization": "Bearer bad"})
    assert (without.status_code, code_of(without)) == (401, "AuthenticationFailed")
    assert (wrong.status_code, code_of(wrong)) == (401, "InvalidAuthenticationToken")
    assert wrong.headers["WWW-Authenticate"].startswith("Bearer")
    assert code_of(served.http.get(GROUP_PATH)) == "MissingApiVersionParameter"
    found = served.http.get(GROUP_PATH.lower(), params={"api-version": "2025-04-01"})
    assert found.json()["name"] == "rg"
    assert found.headers["x-ms-request-id"]
    assert found.headers["x-ms-correlation-request-id"]
    stray = served.http.get("/subscriptions/shop/resourceGroups/rg", params={"api-version": "2025-04-01"})
    assert code_of(stray) == "InvalidSubscriptionId"


def test_a_body_that_is_not_json_is_refused(served: Served) -> None:
    reply = served.http.put(GROUP_PATH, params={"api-version": "2025-04-01"}, content=b"{")
    assert (reply.status_code, code_of(reply)) == (400, "InvalidRequestContent")


def test_the_pollers_of_the_libraries_find_the_end_of_every_operation(served: Served) -> None:
    options: dict[str, Any] = {"base_url": served.server.url, "polling_interval": 0.05}
    with (
        ContainerServiceClient(Credential(), SUBSCRIPTION, **options) as aks,
        ResourceManagementClient(Credential(), SUBSCRIPTION, **options) as resources,
    ):
        body: Any = BODY
        created = aks.managed_clusters.begin_create_or_update("rg", "aks", body).result()
        assert created.properties is not None
        assert created.properties.provisioning_state == "Succeeded"
        assert resources.resource_groups.check_existence("rg")
        aks.managed_clusters.begin_delete("rg", "aks").result()
        resources.resource_groups.begin_delete("rg").result()
        assert not resources.resource_groups.check_existence("rg")


def test_an_upgrade_of_the_node_image_is_an_operation_or_not_modified(served: Served) -> None:
    served.world.put_cluster(CLUSTER, BODY)
    pool = f"{GROUP_PATH}/providers/Microsoft.ContainerService/managedClusters/aks/agentPools/system"
    url, version = f"{pool}/upgradeNodeImageVersion", {"api-version": "2025-04-01"}
    while served.http.get(pool, params=version).json()["properties"]["provisioningState"] == "Creating":
        time.sleep(0.02)
    newest = served.http.post(url, params=version)
    assert (newest.status_code, newest.content) == (304, b"")
    served.world.interventions.set_node_image(CLUSTER, "system", NODE_IMAGES[0])
    accepted = served.http.post(url, params=version)
    assert accepted.status_code == 202
    status = served.http.get(accepted.headers["Azure-AsyncOperation"]).json()
    assert status["status"] == "InProgress"
    assert accepted.json()["properties"]["provisioningState"] == "UpgradingNodeImageVersion"
    with ContainerServiceClient(Credential(), SUBSCRIPTION, base_url=served.server.url) as aks:
        while aks.agent_pools.get("rg", "aks", "system").node_image_version != NODE_IMAGES[-1]:
            time.sleep(0.05)


def test_maintenance_is_written_at_once_and_its_names_do_not_lead_elsewhere(served: Served) -> None:
    served.world.put_cluster(CLUSTER, BODY)
    base = f"{GROUP_PATH}/providers/Microsoft.ContainerService/managedClusters/aks/maintenanceConfigurations"
    version = {"api-version": "2025-04-01"}
    slots = {"properties": {"timeInWeek": [{"day": "Monday", "hourSlots": [1]}]}}
    statuses = [served.http.put(f"{base}/default", params=version, json=slots).status_code for _ in range(2)]
    assert statuses == [201, 200]
    assert served.http.get(f"{base}/default", params=version).json()["properties"] == slots["properties"]
    refused = served.http.put(f"{base}/other", params=version, json=slots)
    assert (refused.status_code, code_of(refused)) == (400, "InvalidParameter")
    assert code_of(served.http.get(f"{base}/other", params=version)) == "ResourceNotFound"
    statuses = [served.http.delete(f"{base}/default", params=version).status_code for _ in range(2)]
    assert statuses == [200, 204]


def test_the_local_azure_takes_faults(served: Served) -> None:
    def control_status(control: str, **values: Any) -> int:
        reply = served.http.post(
            f"/_local/clusters/AKS/{control}", json=values, headers={"Authorization": ""}
        )
        return reply.status_code

    def state() -> str:
        return str(served.world.get_cluster(CLUSTER)["properties"]["provisioningState"])

    assert control_status("stop") == 404
    assert control_status("fail", code="AllocationFailed", message="No capacity.") == 204
    served.world.put_cluster(CLUSTER, BODY)
    while state() == "Creating":
        time.sleep(0.02)
    assert state() == "Failed"
    assert control_status("stick") == 204
    served.world.put_cluster(CLUSTER, BODY)
    assert control_status("abort") == 204
    assert state() == "Canceled"
    assert [
        control_status("stop"),
        control_status("start"),
        control_status("scale", pool="system", count=3),
    ] == [204] * 3
    assert served.world.get_pool(CLUSTER, "system")["properties"]["count"] == 3
    assert control_status("tag", name="owner", value="ann") == 204
    assert served.world.get_cluster(CLUSTER)["tags"]["owner"] == "ann"
    assert [
        control_status("lag"),
        control_status("scale", pool="none", count=1),
        control_status("explode"),
    ] == [400, 400, 404]
    wrong = served.http.post("/_local/clusters/AKS/scale", json={"count": 1}, headers={"Authorization": ""})
    assert wrong.json()["message"].startswith("scale takes pool and count; TypeError:")
    assert control_status("delete") == 204
    assert state() == "Deleting"


def test_accepted_writes_are_in_the_request_log(served: Served) -> None:
    azure = served.adapter()
    request = azure.call(PutCluster(CLUSTER, BODY, etag=None))
    with pytest.raises(Conflict) as refused:
        azure.call(PutCluster(CLUSTER, BODY, etag=None, only_new=True))
    azure.close()
    assert request
    assert refused.value.request_id not in ("", request)
    puts = [entry for entry in served.server.door.requests if entry["method"] == "PUT"]
    assert [(entry["status"], entry.get("accepted")) for entry in puts] == [(201, "create"), (412, None)]
    assert puts[0]["resource"] == CLUSTER.resource


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (ScriptedFault("GET", 429, {"error": {"code": "Throttled"}}, {"Retry-After": "7"}), Throttled),
        (ScriptedFault("GET", 503, {"error": {"code": "ServerBusy"}}, {"Retry-After": "3"}), Unavailable),
        (ScriptedFault("GET", 401, {"error": {"code": "ExpiredAuthenticationToken"}}), Unauthenticated),
        (ScriptedFault("GET", 404, {"error": {"code": "SubscriptionNotFound"}}), Dependency),
        (ScriptedFault("GET", 404, {"error": {"code": "InvalidResourceType"}}), Dependency),
    ],
)
def test_a_request_with_an_error_answer_is_sent_once(
    served: Served, fault: ScriptedFault, expected: type[ReconcileError]
) -> None:
    served.server.door.faults = [fault]
    azure = served.adapter()
    with pytest.raises(expected) as raised:
        azure.call(GetCluster(CLUSTER))
    azure.close()
    assert len(served.server.door.requests) == 1
    assert raised.value.code == fault.body["error"]["code"]
    if "Retry-After" in fault.headers:
        assert getattr(raised.value, "retry_after", None) == float(fault.headers["Retry-After"])


def test_a_refusal_may_give_its_retry_time_as_a_date_and_only_the_services_request_id(served: Served) -> None:
    headers = {
        "Retry-After": "Thu, 01 Jan 2026 12:02:00 GMT",
        "Date": "Thu, 01 Jan 2026 12:00:00 GMT",
        "x-ms-correlation-request-id": "",
        "x-ms-request-id": "r-1",
    }
    served.server.door.faults = [ScriptedFault("GET", 429, {"error": {"code": "Throttled"}}, headers)]
    azure = served.adapter()
    with pytest.raises(Throttled) as refused:
        azure.call(GetCluster(CLUSTER))
    azure.close()
    assert (refused.value.retry_after, refused.value.request_id) == (120, "r-1")


def test_a_provider_that_is_not_registered_is_an_error_and_not_a_wait(served: Served) -> None:
    message = "The subscription is not registered to use namespace 'Microsoft.ContainerService'."
    refusal = {"error": {"code": "MissingSubscriptionRegistration", "message": message}}
    served.server.door.faults = [ScriptedFault("PUT", 409, refusal)]
    azure = served.adapter()
    with pytest.raises(ReconcileError, match="not registered"):
        azure.call(PutCluster(CLUSTER, BODY, etag=None))
    azure.close()


def test_without_a_credential_no_request_is_sent(served: Served) -> None:
    azure = served.adapter(NoCredential())
    with pytest.raises(Unauthenticated, match="no managed identity here") as raised:
        azure.call(GetCluster(CLUSTER))
    azure.close()
    assert "second line" not in str(raised.value)
    assert served.server.door.requests == []


def test_a_server_that_has_stopped_is_unavailable(
    authority: tuple[Authority, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority[1]))
    azure = ArmAzure(Credential(), base_url="https://127.0.0.1:9")
    with pytest.raises(Unavailable):
        azure.call(GetGroup(CLUSTER.group))
    azure.close()


def test_no_token_and_no_body_is_logged(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    azure = served.adapter()
    azure.call(GetCluster(CLUSTER))
    azure.close()
    assert "good" not in caplog.text
    assert not [record for record in caplog.records if record.name.startswith("azure")]


def test_the_adapter_returns_a_document_as_it_is_stored(served: Served) -> None:
    azure = served.adapter()
    azure.call(PutCluster(CLUSTER, BODY, etag=None))
    deadline = time.monotonic() + 60
    while served.world.get_cluster(CLUSTER)["properties"]["provisioningState"] != "Succeeded":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    stored = served.world.engine.cluster(CLUSTER).properties
    stored["profileOfALaterVersion"] = {"someField": [1, {"a": None}]}
    assert azure.call(GetCluster(CLUSTER)) == served.world.get_cluster(CLUSTER)
    azure.close()


def test_a_bucket_refills_with_time_and_never_over_its_burst() -> None:
    clock = ManualClock()
    bucket = TokenBucket(2, 0.5, now=clock())
    assert [bucket.take(clock()) for _ in range(2)] == [0, 0]
    assert bucket.take(clock()) == 2.0
    clock.advance(1)
    assert bucket.take(clock()) == 1.0
    clock.advance(3600)
    assert [bucket.take(clock()) == 0 for _ in range(3)] == [True, True, False]
