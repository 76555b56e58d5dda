"""The activity log, page by page: the world in memory, and the adapter over HTTPS."""

from __future__ import annotations

from datetime import timedelta

import pytest

from localcloud.azure.world import activity_log
from localcloud.azure.world.access.directory import FUNCTION_APP
from shared.azure.drift.activity import writes_in
from shared.cluster.failures.errors import Dependency, ReconcileError
from shared.ports.azure import DeletePool, PatchCluster, PutPool
from shared.ports.azure.clusters import ListActivity, events_between
from shared.resource_ids import SubscriptionId
from tests.support.azure_ports import CLUSTER, SUBSCRIPTION, Azure, pool

HERE = SubscriptionId(SUBSCRIPTION)
ANN = "ann@example.com"


def lately(azure: Azure, **passed: float) -> str:
    """Return the filter of what happened lately, an hour ago without another time."""
    now = azure.clock()
    return events_between(now - timedelta(**passed or {"hours": 1}), now)


def test_each_accepted_write_is_an_event_with_who_called_the_newest_first(azure: Azure) -> None:
    azure.with_cluster()
    azure.call(PutPool(CLUSTER, "apps", pool(), only_new=True, etag=None))
    azure.clock.advance(30)
    with azure.world.called_by(ANN):
        azure.world.delete_pool(CLUSTER, "apps")
    azure.clock.advance(30)
    page = azure.call(ListActivity(HERE, filter=lately(azure)))
    names = (event["operationName"]["value"].rpartition("managedClusters/")[2] for event in page.documents)
    shown = list(zip(names, (event["caller"] for event in page.documents), strict=True))
    app = FUNCTION_APP.id
    assert shown == [("agentPools/delete", ANN), ("agentPools/write", app), ("write", app)]
    assert page.next == ""
    newest = writes_in(page.documents)[0]
    assert (newest.caller, newest.resource) == (ANN, f"{CLUSTER.resource}/agentPools/apps".lower())


def test_what_azure_refuses_and_what_is_read_is_no_event(azure: Azure) -> None:
    azure.with_cluster()
    with pytest.raises(ReconcileError):
        azure.call(PatchCluster(CLUSTER, {"tags": {"a": "b"}}, etag="another"))
    azure.seen()
    azure.clock.advance(30)
    assert len(azure.call(ListActivity(HERE, filter=lately(azure))).documents) == 1


def test_the_times_and_the_provider_select(azure: Azure) -> None:
    azure.with_cluster()
    azure.clock.advance(7200)
    assert azure.call(ListActivity(HERE, filter=lately(azure))).documents == []
    whole = lately(azure, hours=3)
    assert len(azure.call(ListActivity(HERE, filter=whole)).documents) == 1
    other = whole.replace("Microsoft.ContainerService", "Microsoft.Network")
    assert azure.call(ListActivity(HERE, filter=other)).documents == []


@pytest.mark.parametrize(
    "wanted",
    ["", "eventTimestamp ge '2026-01-01T00:00:00Z'", "caller eq 'ann@example.com'"],
)
def test_another_form_of_a_filter_is_refused(azure: Azure, wanted: str) -> None:
    with pytest.raises(ReconcileError):
        azure.call(ListActivity(HERE, filter=wanted))


def test_a_filter_reaches_90_days_back_at_most(azure: Azure) -> None:
    with pytest.raises(ReconcileError):
        azure.call(ListActivity(HERE, filter=lately(azure, days=91)))


def test_a_long_log_has_pages_and_each_is_one_request(azure: Azure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity_log, "PAGE", 2)
    azure.with_cluster()
    for name in ("a", "b", "c"):
        azure.call(PutPool(CLUSTER, name, pool(), only_new=True, etag=None))
        azure.clock.advance(30)
    before, page, sizes = azure.world.limits.counts["read"], "", list[int]()
    while True:
        shown = azure.call(ListActivity(HERE, filter=lately(azure), page=page))
        sizes.append(len(shown.documents))
        page = shown.next
        if not page:
            break
    assert (sizes, azure.world.limits.counts["read"] - before) == ([2, 2], 2)


def test_the_log_of_a_subscription_that_does_not_exist_is_an_error(azure: Azure) -> None:
    nowhere = SubscriptionId("00000000-0000-0000-0000-0000000000ff")
    with pytest.raises(Dependency):
        azure.call(ListActivity(nowhere, filter=lately(azure)))


def test_a_delete_that_changes_nothing_is_no_event(azure: Azure) -> None:
    azure.with_cluster()
    azure.call(DeletePool(CLUSTER, "nothing", etag=None))
    azure.clock.advance(30)
    assert len(azure.call(ListActivity(HERE, filter=lately(azure))).documents) == 1
