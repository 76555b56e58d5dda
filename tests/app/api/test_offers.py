"""What Azure has for a plan: read by lists alone, so many for a subscription and region, and never late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.versions import NO_SPEC, offers_view
from shared.app.offers import SECONDS
from shared.cluster.failures.errors import Unavailable
from shared.ports.azure import AzureCall
from shared.ports.process import THREADS
from shared.resource_ids import RegionId
from tests.support.one_cluster import SUBSCRIPTION
from tests.support.replaced_ports import around, calls_of

SUBSCRIPTIONS = [f"{SUBSCRIPTION[:-1]}{number}" for number in range(1, 6)]
LOCATIONS = ("eastus", "westeurope")
READ = 4.0
"""Seconds after which a list that nobody answers has failed."""


def asked(number: int) -> dict[str, Any]:
    """Return one of many clusters, over all subscriptions and regions."""
    subscription, location = SUBSCRIPTIONS[number % 5], LOCATIONS[number % 2]
    network = f"/subscriptions/{subscription}/resourceGroups/net/providers/Microsoft.Network/virtualNetworks"
    pool: dict[str, Any] = {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 1}
    pool["enableEncryptionAtHost"] = True
    resources = f"/subscriptions/{subscription}/resourceGroups/rg-{number}/providers"
    identity = f"{resources}/Microsoft.ManagedIdentity/userAssignedIdentities/aks"
    zone = f"{resources}/Microsoft.Network/privateDnsZones/privatelink.{location}.azmk8s.io"
    spec = {
        "identity": {"type": "UserAssigned", "userAssignedIdentity": identity},
        "apiServerAccessProfile": {"enablePrivateCluster": True, "privateDNSZone": zone},
        "subscriptionId": subscription,
        "resourceGroup": f"rg-{number}",
        "location": location,
        "kubernetesVersion": "1.36",
        "nodePools": [{**pool, "vnetSubnetID": f"{network}/{location}/subnets/nodes"}],
        "flux": {"repository": "https://github.com/example/fleet", "path": "./platform"},
    }
    return {"name": f"c{number}", "spec": spec, "adopt": ""}


def short(cloud: MemoryCloud, clusters: list[dict[str, Any]]) -> list[str]:
    result = offers_view(clusters, cloud.ports)
    assert result.status == 200
    body: Mapping[str, Any] = result.body
    return list(body["short"])


def test_a_plan_of_200_clusters_in_5_subscriptions_reads_at_most_12_lists_of_each_and_region() -> None:
    cloud = MemoryCloud(throttle=False)
    config = replace(cloud.ports.config, identities={"worker": "00000000-0000-0000-0000-00000000000e"})
    cloud.with_ports(lambda ports: replace(ports, config=config))
    cloud.azure.engine.subscriptions = tuple(SUBSCRIPTIONS)
    for number in range(200):
        subscription = SUBSCRIPTIONS[number % 5]
        cloud.azure.put_group(subscription, f"rg-{number}", {"location": "eastus"})
        cloud.azure.identities.put_identity(subscription, f"rg-{number}", "aks", {"location": "eastus"})
    calls = calls_of(cloud, "azure", "call")
    found = short(cloud, [asked(number) for number in range(200)])
    assert [sentence for sentence in found if "Azure did not say" in sentence] == []
    assert all(call.name.startswith("list_") for call in calls)
    assert {"list_identities", "list_grants", "list_providers", "list_features", "list_networks"} <= {
        call.name for call in calls
    }
    of_regions = Counter[RegionId]()
    for call in calls:
        target = call.target
        places = [target] if isinstance(target, RegionId) else []
        places = places or [RegionId(target.subscription, location) for location in LOCATIONS]
        of_regions.update(places)
    assert {place.subscription for place in of_regions} == set(SUBSCRIPTIONS)
    assert max(of_regions.values()) <= 12
    assert len(calls) <= 12 * len(SUBSCRIPTIONS) * len(LOCATIONS)
    before = len(calls)
    assert short(cloud, [asked(number) for number in range(200)]) == found
    assert len(calls) == before, "the process keeps them"


def test_an_azure_that_is_down_is_said_to_be_unknown_and_the_answer_is_not_late() -> None:
    cloud = MemoryCloud(throttle=False)
    cloud.azure.engine.subscriptions = tuple(SUBSCRIPTIONS)
    tried = list[AzureCall[Any]]()

    def silent(operation: AzureCall[Any]) -> Any:
        tried.append(operation)
        cloud.clock.advance(READ)
        raise Unavailable("nobody answers")

    around(cloud, "azure", call=silent)
    one_after_the_other = replace(cloud.ports, together=lambda do, items: [do(item) for item in items])
    cloud.with_ports(lambda _: one_after_the_other)
    begun = cloud.ports.elapsed()
    found = short(cloud, [asked(number) for number in range(200)])
    assert cloud.ports.elapsed() - begun <= SECONDS
    assert len(tried) == 1, "who waits for nobody waits once"
    assert (
        "which versions of Kubernetes are offered in eastus, westeurope is unknown: Azure did not say"
        in found
    )


def in_lanes(cloud: MemoryCloud, seconds: float) -> None:
    """Let each list take so long, as many of them together as the app reads in threads, in virtual time."""
    now, answers = [0.0], cloud.ports.azure.call

    def slow(operation: AzureCall[Any]) -> Any:
        now[0] += seconds
        return answers(operation)

    def together(work: Callable[[Any], Any], values: Sequence[Any]) -> Sequence[Any]:
        lanes, results = [now[0]] * THREADS, list[Any]()
        for value in values:
            now[0] = lanes.pop(lanes.index(min(lanes)))
            results.append(work(value))
            lanes.append(now[0])
        now[0] = max(lanes)
        return results

    around(cloud, "azure", call=slow)
    cloud.with_ports(lambda ports: replace(ports, elapsed=lambda: now[0], together=together))


def test_lists_of_a_fifth_of_a_second_delay_a_plan_of_200_clusters_by_two_seconds_at_most() -> None:
    cloud = MemoryCloud(throttle=False)
    cloud.azure.engine.subscriptions = tuple(SUBSCRIPTIONS)
    in_lanes(cloud, 0.2)
    assert [
        sentence for sentence in short(cloud, [asked(n) for n in range(200)]) if "unknown" in sentence
    ] == []
    assert cloud.ports.elapsed() <= 2


def test_addresses_that_200_clusters_need_are_counted_for_each_subnet() -> None:
    cloud = MemoryCloud(throttle=False)
    cloud.azure.engine.subscriptions = tuple(SUBSCRIPTIONS)
    subnet = asked(0)["spec"]["nodePools"][0]["vnetSubnetID"]
    network = subnet.rpartition("/subnets/")[0]
    cloud.azure.offers.create_network(network, "eastus", {"nodes": ("10.0.0.0/26", 40)})
    found = [sentence for sentence in short(cloud, [asked(n) for n in range(200)]) if "addresses" in sentence]
    shown = "subnet eastus/nodes has 19 of 59 addresses left, this commit needs 20"
    assert found == [f"{shown} (c0, c10, c100, c110, c120 and 15 more)"]


@pytest.mark.parametrize(
    "cluster",
    [
        {"name": "one", "spec": {}, "adopt": ""},
        {"name": "", "spec": asked(1)["spec"], "adopt": ""},
        {"name": "one", "spec": {**asked(1)["spec"], "nodePools": "x"}, "adopt": ""},
        {"name": "one", "spec": {**asked(1)["spec"], "location": 7}, "adopt": ""},
    ],
)
def test_what_is_no_spec_is_refused_and_azure_is_not_asked(cluster: dict[str, Any]) -> None:
    cloud = MemoryCloud()
    calls = calls_of(cloud, "azure", "call")
    result = offers_view([cluster], cloud.ports)
    assert (result.status, result.body) == (400, {"error": NO_SPEC})
    assert calls == []
