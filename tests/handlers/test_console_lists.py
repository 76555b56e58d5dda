"""The lists of the console: their order, what an entry of the first page selects, and failures by class."""

from __future__ import annotations

import re

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.rollouts import rollout_view
from shared.cluster.failures.errors import Unavailable
from shared.ports import Ports
from shared.ports.state.clusters import Clusters
from tests.support import console_fleet
from tests.support.console_pages import browse, shown
from tests.support.pipeline_runs import cloud_with, push

pytestmark = pytest.mark.lives

HEADS = ("name", "phase", "environment", "location", "version", "since")


@pytest.fixture(scope="module")
def cloud() -> MemoryCloud:
    """Return a fleet in whose rollout clusters have failed for two reasons."""
    made = cloud_with(console_fleet.files(1))
    for name, code in (
        ("weu", "InvalidParameter"),
        ("neu", "Canceled"),
        ("eus", "InvalidParameter"),
    ):
        made.azure.interventions.fail_next(f"dev-{name}-1", code, "not in this region")
    push(made, console_fleet.files(1, "r2"))
    made.run(600)
    return made


def names_on(ports: Ports, address: str) -> list[str]:
    """Return the clusters of a list in its order."""
    body = browse(ports, address).get_body().decode()
    return re.findall(r'name="clusters" value="([^"]+)"', body)


@pytest.mark.parametrize("order", HEADS)
def test_a_head_sorts_the_list_and_once_more_turns_it_round(cloud: MemoryCloud, order: str) -> None:
    ascending, descending = f"/clusters?sort={order}", f"/clusters?sort=-{order}"
    assert names_on(cloud.ports, ascending) == names_on(cloud.ports, descending)[::-1]
    assert descending in shown(cloud.ports, ascending).links
    assert ascending in shown(cloud.ports, descending).links
    for address, direction in ((ascending, "ascending"), (descending, "descending")):
        (head,) = re.findall(r"<th[^>]*aria-sort[^>]*>", browse(cloud.ports, address).get_body().decode())
        assert direction in head


def test_a_list_is_sorted_by_what_its_columns_show(cloud: MemoryCloud) -> None:
    body = browse(cloud.ports, "/clusters?sort=since").get_body().decode()
    moments = re.findall(r'data-label="Since"><time class="age" datetime="([^"]+)"', body)
    assert len(moments) == len([*console_fleet.clusters(1)])
    assert moments == sorted(moments)
    names = names_on(cloud.ports, "/clusters?sort=environment")
    assert [name[:3] for name in names] == ["dev"] * 4 + ["sho"] * 4


def test_links_keep_filters_columns_and_order(cloud: MemoryCloud) -> None:
    links = shown(cloud.ports, "/clusters?environment=development&columns=nodes&sort=-name").links
    assert "/clusters?environment=development&sort=name&columns=nodes" in links


def test_an_entry_of_the_first_page_selects_its_clusters_and_no_others(cloud: MemoryCloud) -> None:
    assert len(names_on(cloud.ports, "/clusters?phase=Failed")) == 3
    (entry,) = {link for link in shown(cloud.ports, "/").links if "cause=" in link}
    assert sorted(names_on(cloud.ports, entry)) == ["dev-eus-1", "dev-weu-1"]
    assert "2 of 8 clusters that wait for a person for the same reason" in shown(cloud.ports, entry).text


def test_the_failures_of_a_rollout_are_counted_by_class_over_the_time(cloud: MemoryCloud) -> None:
    commit = cloud.state.fleet().commit
    view = rollout_view(commit, cloud.ports)
    assert view is not None
    classes = view["failureClasses"]
    assert [found["clusterCount"] for found in classes] == [2, 1]
    assert [sum(part["failed"] for part in found["pace"]) for found in classes] == [2, 1]
    text = shown(cloud.ports, f"/rollouts/{commit}").text
    assert re.search(r"Failures by class .* InvalidManifest 2 Aborted 1 1\. development", text)


def test_a_page_of_a_service_that_fails_says_what_to_do_and_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise Unavailable("Table Storage did not answer")

    monkeypatch.setattr(Clusters, "summaries", fails)
    reply = browse(MemoryCloud().ports, "/versions")
    body = reply.get_body().decode()
    assert reply.status_code == 503
    assert "Table Storage did not answer. Check the service&#39;s health page. The clusters go on" in body
    assert 'hx-get="/versions"' in body


def test_a_page_behind_the_last_cluster_does_not_say_that_the_fleet_has_none(cloud: MemoryCloud) -> None:
    page = shown(cloud.ports, "/clusters?sort=name&after=zzz")
    assert "No further cluster is like that." in page.text
    assert "/clusters?sort=name" in page.links


def test_only_who_may_do_something_to_many_clusters_selects_them(cloud: MemoryCloud) -> None:
    for role, selects in (("Reader", False), ("Approver", False), ("Operator", True)):
        body = browse(cloud.ports, "/clusters", role=role).get_body().decode()
        assert ("Select all on this page" in body, 'type="checkbox" name="clusters"' in body) == (
            selects,
            selects,
        )
