"""The question of Cost Management, in memory and over the wire with the production adapter."""

from __future__ import annotations

import pytest

from shared.azure.costs import Places, costs_in
from shared.cluster.failures.errors import ReconcileError
from shared.language.desired import Desired
from shared.ports.azure import GetCosts, PutPool
from shared.ports.azure.costs import following
from shared.resource_ids import SubscriptionId
from tests.support.azure_ports import CLUSTER, SUBSCRIPTION, Azure, pool

HERE = SubscriptionId(SUBSCRIPTION)
NOWHERE = SubscriptionId("99999999-1111-1111-1111-111111111111")
DAY = {"since": "2026-10-01", "until": "2026-10-01"}


def test_a_day_of_a_cluster_has_its_nodes_and_its_tier(azure: Azure) -> None:
    azure.with_cluster()
    document = azure.call(GetCosts(HERE, **DAY))

    assert [column["name"] for column in document["properties"]["columns"]] == [
        *("Cost", "ResourceId", "Currency"),
    ]
    assert following(document) == ""
    spec = {
        **{"subscriptionId": CLUSTER.subscription, "resourceGroup": CLUSTER.resource_group},
        **{"location": "westeurope", "kubernetesVersion": "1.36"},
        "flux": {"repository": "https://github.com/example/fleet", "path": "./platform"},
    }
    places = Places.of([Desired({"name": CLUSTER.name, "spec": spec, "components": ""})])
    costs, currency = costs_in([document], places)
    assert (set(costs), currency) == ({CLUSTER.name}, "USD")


def test_each_page_leads_to_the_next(azure: Azure) -> None:
    azure.with_cluster()
    azure.call(PutPool(CLUSTER, "apps", pool(), only_new=True, etag=None))
    azure.world.engine.page_size = 1
    first = azure.call(GetCosts(HERE, **DAY))
    second = azure.call(GetCosts(HERE, **DAY, skip=following(first)))

    lines = [*first["properties"]["rows"], *second["properties"]["rows"]]
    assert len({resource for _, resource, _ in lines}) == 2


def test_a_subscription_that_does_not_exist_is_refused(azure: Azure) -> None:
    with pytest.raises(ReconcileError):
        azure.call(GetCosts(NOWHERE, **DAY))
