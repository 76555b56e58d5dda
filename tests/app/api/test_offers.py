"""What Azure has for a plan: read by lists alone, so many for a subscription and region, and never late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.offers import NO_SPEC, offers_view
from shared.app.offers import SECONDS
from shared.cluster.failures.errors import Unavailable
from shared.ports.azure import AzureCall
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
    spec = {
        "subscriptionId": subscription,
        "resourceGroup": f"rg-{number}",
        "location": location,
        "kubernetesVersion": "1.36",
        "nodePools": [{**pool, "vnetSubnetID": f"{network}/hub/subnets/nodes"}],
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
    config = replace(cloud.ports.config, worker="00000000-0000-0000-0000-00000000000e")
    cloud.with_ports(lambda ports: replace(ports, config=config))
    cloud.azure.engine.subscriptions = tuple(SUBSCRIPTIONS)
    calls = calls_of(cloud, "azure", "call")
    found = short(cloud, [asked(number) for number in range(200)])
    assert [sentence for sentence in found if "unknown" in sentence] == []
    assert all(call.name.startswith("list_") for call in calls)
    assert {"list_grants", "list_providers", "list_features", "list_networks"} <= {
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
    assert "which versions of Kubernetes are offered in eastus is unknown: Azure did not say" in found


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
