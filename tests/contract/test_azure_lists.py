"""Lists of clusters, page by page: the world in memory, and the adapter over HTTPS."""

from __future__ import annotations

import pytest

from localcloud.azure.world.request_limits import LIST_SUBSCRIPTION
from shared.cluster.failures.errors import Dependency, Throttled
from shared.ports.azure import GetCluster, ListAlerts, ListClusters, PutCluster, PutGroup, every_document
from shared.resource_ids import ClusterId, SubscriptionId
from tests.support.azure_ports import CLUSTER, SUBSCRIPTION, Azure, body

HERE = SubscriptionId(SUBSCRIPTION)


def more(azure: Azure, *names: str) -> None:
    for name in names:
        cluster = ClusterId(SUBSCRIPTION, f"rg-{name}", name)
        azure.call(PutGroup(cluster.group, {"location": "westeurope", "tags": {}}))
        azure.call(PutCluster(cluster, body(dnsPrefix=name), etag=None))
    azure.clock.advance(4)


def names(azure: Azure) -> list[list[str]]:
    """Return the names on each page."""
    pages, page = [], ""
    while True:
        shown = azure.call(ListClusters(HERE, page=page))
        pages.append([str(cluster["name"]) for cluster in shown.documents])
        if not shown.next:
            return pages
        page = shown.next


def test_a_list_shows_each_cluster_as_a_read_of_it_does(azure: Azure) -> None:
    azure.with_cluster()
    page = azure.call(ListClusters(HERE))
    assert (list(page.documents), page.next) == ([azure.call(GetCluster(CLUSTER))], "")


def test_a_list_without_clusters_is_one_empty_page(azure: Azure) -> None:
    assert names(azure) == [[]]


def test_a_long_list_has_pages_and_each_is_one_request(azure: Azure) -> None:
    more(azure, "a", "b", "c", "d", "e")
    azure.world.engine.page_size = 2
    before = azure.world.limits.counts["read"]
    assert names(azure) == [["a", "b"], ["c", "d"], ["e"]]
    assert azure.world.limits.counts["read"] - before == 3


def test_a_cluster_that_is_deleted_between_two_pages_hides_no_other(azure: Azure) -> None:
    more(azure, "a", "b", "c")
    azure.world.engine.page_size = 1
    first = azure.call(ListClusters(HERE))
    azure.world.delete_cluster(ClusterId(SUBSCRIPTION, "rg-a", "a"))
    azure.clock.advance(4)
    second = azure.call(ListClusters(HERE, page=first.next))
    assert [cluster["name"] for cluster in second.documents] == ["b"]


def test_a_list_of_a_subscription_that_does_not_exist_is_an_error(azure: Azure) -> None:
    with pytest.raises(Dependency):
        azure.call(ListClusters(SubscriptionId("00000000-0000-0000-0000-0000000000ff")))


def test_lists_have_a_limit_of_their_own(azure: Azure) -> None:
    azure.world.limits.enabled = True
    for _ in range(LIST_SUBSCRIPTION.burst):
        azure.world.limits.take(LIST_SUBSCRIPTION, SUBSCRIPTION, azure.clock())
    with pytest.raises(Throttled):
        azure.call(ListClusters(HERE))


def test_the_alerts_of_a_group_are_those_that_fire_about_it(azure: Azure) -> None:
    shop = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/shop/providers/Microsoft.Web/sites/shop"
    latency = azure.world.offers.fire(shop, "latency")
    azure.world.offers.fire(shop.replace("/shop/", "/other/"), "elsewhere", "Sev3")

    def found(group: str) -> list[tuple[str, str]]:
        listed = every_document(azure, ListAlerts(HERE, group))
        about = [alert["properties"]["essentials"] for alert in listed]
        return sorted((alert["alertRule"].rpartition("/")[2], alert["severity"]) for alert in about)

    azure.world.engine.page_size = 1
    assert found("shop") == found("SHOP") == [("latency", "Sev1")]
    assert found("") == [("elsewhere", "Sev3"), ("latency", "Sev1")]
    azure.world.offers.resolve(latency)
    assert found("shop") == []
