"""The wire of Azure Resource Manager beyond Roadstead's own requests: what azure-cli and operators use."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from localcloud.azure.wire.arm_server import ArmServer
from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.azure.world.catalog import NODE_IMAGES, TENANT
from localcloud.common.certificates import Authority
from localcloud.common.clock import ManualClock
from localcloud.common.control_plane import NullPlane
from shared.resource_ids import ClusterId

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
AT = f"/subscriptions/{SUBSCRIPTION}"
CLUSTERS = "/providers/Microsoft.ContainerService/managedClusters"
ONE = f"{AT}/resourceGroups/rg{CLUSTERS}/one"
CLUSTER = ClusterId(SUBSCRIPTION, "rg", "one")
BODY: dict[str, Any] = {
    "location": "westeurope",
    "tags": {"a": "b"},
    "identity": {"type": "SystemAssigned"},
    "properties": {
        "dnsPrefix": "one",
        "agentPoolProfiles": [
            {"name": "system", "mode": "System", "count": 1},
            {"name": "web", "mode": "User", "count": 1},
        ],
    },
}


class Served:
    """A served world on a clock that the test moves."""

    def __init__(self, world: AzureWorld, clock: ManualClock, http: httpx.Client) -> None:
        self.world, self.clock, self.http = world, clock, http

    def send(
        self, method: str, path: str, body: Any = None, version: str = "2025-04-01", **headers: str
    ) -> httpx.Response:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        return self.http.request(method, path, params={"api-version": version}, json=body, headers=named)

    def json(self, path: str) -> Any:
        reply = self.send("GET", path)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def created(self) -> Served:
        assert self.send("PUT", ONE, BODY).status_code == 201
        self.clock.advance(10)
        return self


@pytest.fixture
def served(authority: tuple[Authority, Path]) -> Iterator[Served]:
    clock = ManualClock()
    world = AzureWorld(clock, plane=NullPlane())
    trust = ssl.create_default_context(cafile=str(authority[1]))
    with (
        ArmServer(world, authority[0], accepts=lambda token: token == "good") as server,
        httpx.Client(base_url=server.url, verify=trust, headers={"Authorization": "Bearer good"}) as http,
    ):
        world.put_group(SUBSCRIPTION, "rg", {"location": "westeurope"})
        yield Served(world, clock, http)


def code(reply: httpx.Response) -> tuple[int, str]:
    body = reply.json()
    return reply.status_code, body.get("error", body)["code"]


def test_groups_and_clusters_are_listed_by_subscription_and_by_group(served: Served) -> None:
    served.created()
    served.send("PUT", f"{AT}/resourceGroups/other", {"location": "eastus"})
    assert [group["name"] for group in served.json(f"{AT}/resourcegroups")["value"]] == ["rg", "other"]
    assert [document["name"] for document in served.json(f"{AT}{CLUSTERS}")["value"]] == ["one"]
    (listed,) = served.json(f"{AT}/resourceGroups/RG{CLUSTERS}")["value"]
    assert listed == served.json(ONE)
    assert served.json(f"{AT}/resourceGroups/other{CLUSTERS}")["value"] == []
    assert code(served.send("GET", f"{AT}/resourceGroups/none{CLUSTERS}")) == (404, "ResourceGroupNotFound")


def test_a_patch_sets_the_tags_of_a_group_or_a_cluster_and_nothing_else(served: Served) -> None:
    before = served.created().json(ONE)
    patched = served.send("PATCH", ONE, {"tags": {"x": "y"}})
    assert patched.status_code == 200
    served.clock.advance(10)
    after = served.json(ONE)
    assert after["tags"] == {"x": "y"}
    assert after["properties"]["networkProfile"] == before["properties"]["networkProfile"]
    assert code(served.send("PATCH", ONE, {"properties": {}})) == (400, "UnmarshalError")
    group = f"{AT}/resourceGroups/rg"
    assert served.send("PATCH", group, {"tags": {"team": "a"}}).json()["tags"] == {"team": "a"}
    assert served.json(group)["tags"] == {"team": "a"}
    assert code(served.send("PATCH", f"{AT}/resourceGroups/none", {})) == (404, "ResourceGroupNotFound")


def test_a_cluster_stops_and_starts_as_an_operation(served: Served) -> None:
    served.created()
    stopped = served.send("POST", f"{ONE}/stop")
    assert stopped.status_code == 202
    assert served.json(ONE)["properties"]["provisioningState"] == "Stopping"
    assert code(served.send("POST", f"{ONE}/start")) == (409, "OperationNotAllowed")
    served.clock.advance(10)
    properties = served.json(ONE)["properties"]
    assert (properties["provisioningState"], properties["powerState"]) == ("Succeeded", {"code": "Stopped"})
    assert code(served.send("PUT", ONE, BODY)) == (400, "OperationNotAllowed")
    assert served.send("POST", f"{ONE}/start").status_code == 202
    served.clock.advance(10)
    assert served.json(ONE)["properties"]["powerState"] == {"code": "Running"}
    assert served.http.get(stopped.headers["Azure-AsyncOperation"]).json()["status"] == "Succeeded"


def test_an_operation_is_aborted_and_without_one_nothing_can_be(served: Served) -> None:
    served.created()
    assert code(served.send("POST", f"{ONE}/abort")) == (409, "OperationNotAllowed")
    update = served.send("PATCH", ONE, {"tags": {}})
    aborted = served.send("POST", f"{ONE}/abort")
    assert (aborted.status_code, aborted.json()["name"]) == (202, "one")
    assert served.json(ONE)["properties"]["provisioningState"] == "Canceling"
    served.clock.advance(10)
    assert served.json(ONE)["properties"]["provisioningState"] == "Canceled"
    assert served.http.get(update.headers["Azure-AsyncOperation"]).json()["status"] == "Canceled"
    web = f"{ONE}/agentPools/web"
    served.send("PUT", web, {"properties": {"count": 2}})
    assert code(served.send("POST", f"{ONE}/abort")) == (409, "OperationNotAllowed")
    assert served.send("POST", f"{web}/abort").status_code == 202
    served.clock.advance(10)
    assert served.json(web)["properties"]["provisioningState"] == "Canceled"


def test_a_pool_shows_its_upgrades_and_a_cluster_the_versions_of_new_pools(served: Served) -> None:
    older = {**BODY, "properties": {**BODY["properties"], "kubernetesVersion": "1.35"}}
    served.send("PUT", ONE, older)
    served.clock.advance(10)
    served.send("PUT", ONE, {"location": "westeurope", "properties": {"kubernetesVersion": "1.36.2"}})
    served.clock.advance(10)
    profile = served.json(f"{ONE}/agentPools/web/upgradeProfiles/default")["properties"]
    assert profile["kubernetesVersion"] == "1.35.7"
    assert [upgrade["kubernetesVersion"] for upgrade in profile["upgrades"]] == ["1.36.2"]
    assert profile["latestNodeImageVersion"] == NODE_IMAGES[-1]
    versions = served.json(f"{ONE}/availableAgentPoolVersions")["properties"]["agentPoolVersions"]
    assert [version["kubernetesVersion"] for version in versions if version["default"]] == ["1.36.2"]
    missing = served.send("GET", f"{ONE}/agentPools/none/upgradeProfiles/default")
    assert code(missing) == (404, "NotFound")


def test_an_unknown_version_or_subscription_is_refused_in_the_words_of_resource_manager(
    served: Served,
) -> None:
    served.created()
    unknown = served.send("GET", ONE, version="2023-01-01")
    assert code(unknown) == (400, "NoRegisteredProviderFound")
    assert unknown.json()["error"]["message"].startswith(
        "No registered resource provider found for location 'westeurope' and API version '2023-01-01' for "
        "type 'managedClusters'. The supported api-versions are '2024-01-01, "
    )
    for draft in ("2024-03-01", "2025-06-01"):
        assert code(served.send("GET", ONE, version=draft)) == (400, "NoRegisteredProviderFound")
    pools = served.send("GET", f"{ONE}/agentPools", version="2099-01-01")
    assert "for type 'managedClusters/agentPools'" in pools.json()["error"]["message"]
    group = served.send("GET", f"{AT}/resourceGroups/rg", version="2099-01-01")
    assert code(group) == (400, "InvalidApiVersionParameter")
    assert "The supported versions are '2025-04-01," in group.json()["error"]["message"]
    elsewhere = served.send("GET", f"/subscriptions/{TENANT}/resourceGroups/rg")
    assert code(elsewhere) == (404, "SubscriptionNotFound")
    assert elsewhere.json()["error"]["message"] == f"The subscription '{TENANT}' could not be found."
    assert elsewhere.headers["x-ms-failure-cause"] == "gateway"


def test_a_cloud_has_the_subscriptions_that_it_is_given() -> None:
    second = "00000000-0000-0000-0000-00000000000B"
    world = AzureWorld(ManualClock(), plane=NullPlane(), subscriptions=(second,))
    assert world.subscriptions == (second.lower(),)
    world.put_group(second, "rg", {"location": "westeurope"})
    with pytest.raises(ArmError, match="SubscriptionNotFound"):
        world.put_group(SUBSCRIPTION, "rg", {"location": "westeurope"})


@pytest.mark.parametrize("headers", [{"If_Match": '"x"', "If_None_Match": "*"}, {"If_None_Match": '"x"'}])
def test_both_conditions_at_once_and_the_tag_of_none_are_refused(
    served: Served, headers: dict[str, str]
) -> None:
    served.created()
    for path, body in ((ONE, BODY), (f"{ONE}/agentPools/web", {"properties": {}})):
        reply = served.send("PUT", path, body, **headers)
        assert code(reply) == (400, "BadRequest")


def test_aks_refuses_without_an_envelope_and_resource_manager_with_one(served: Served) -> None:
    refused = served.send("PUT", ONE, {**BODY, "property": {}})
    assert set(refused.json()) == {"code", "details", "message", "subcode"}
    assert "x-ms-failure-cause" not in refused.headers
    missing = served.send("GET", ONE)
    assert set(missing.json()) == {"error"}
    assert "under resource group 'rg' was not found" in missing.json()["error"]["message"]


def test_answers_say_how_many_requests_are_left_and_when_to_ask_again(served: Served) -> None:
    left = [
        int(
            served.send("GET", f"{AT}/resourceGroups/rg").headers[
                "x-ms-ratelimit-remaining-subscription-reads"
            ]
        )
    ]
    left.append(int(served.send("GET", ONE).headers["x-ms-ratelimit-remaining-subscription-reads"]))
    assert left == [249, 248]
    created = served.send("PUT", ONE, BODY)
    assert int(created.headers["x-ms-ratelimit-remaining-subscription-writes"]) in (198, 199)
    assert created.headers["Retry-After"] == "1"
    status = served.http.get(created.headers["Azure-AsyncOperation"])
    assert (status.json()["status"], status.headers["Retry-After"]) == ("InProgress", "4")
    served.clock.advance(10)
    ended = served.http.get(created.headers["Azure-AsyncOperation"])
    assert "Retry-After" not in ended.headers
    deleted = served.send("DELETE", ONE)
    assert deleted.headers["x-ms-ratelimit-remaining-subscription-deletes"] == "199"
    assert "api-version=2016-03-30" in deleted.headers["Location"]


def test_the_count_of_a_pool_is_taken_back_by_a_write_of_the_cluster_that_carries_its_pools(
    served: Served,
) -> None:
    read = served.created().json(ONE)
    served.send("PUT", f"{ONE}/agentPools/web", {"properties": {"count": 3}})
    served.clock.advance(10)
    assert served.json(ONE)["eTag"] == read["eTag"]
    without = {key: value for key, value in read["properties"].items() if key != "agentPoolProfiles"}
    kept = served.send("PUT", ONE, {**read, "properties": without}, If_Match=read["eTag"])
    assert kept.status_code == 200
    served.clock.advance(10)
    assert served.json(f"{ONE}/agentPools/web")["properties"]["count"] == 3
    taken = served.send("PUT", ONE, read, If_Match=served.json(ONE)["eTag"])
    assert taken.status_code == 200
    served.clock.advance(10)
    assert served.json(f"{ONE}/agentPools/web")["properties"]["count"] == 1


def test_a_client_finds_the_cloud_its_tenant_its_subscriptions_and_regions(served: Served) -> None:
    endpoints = served.send("GET", "/metadata/endpoints", version="2022-09-01", Authorization="")
    base = str(served.http.base_url).rstrip("/")
    assert endpoints.json()["resourceManager"] == base
    assert endpoints.json()["authentication"]["audiences"] == [base]
    assert [tenant["tenantId"] for tenant in served.json("/tenants")["value"]] == [TENANT]
    (subscription,) = served.json("/subscriptions")["value"]
    assert subscription == served.json(AT)
    assert (subscription["subscriptionId"], subscription["tenantId"]) == (SUBSCRIPTION, TENANT)
    assert "westeurope" in [region["name"] for region in served.json(f"{AT}/locations")["value"]]
