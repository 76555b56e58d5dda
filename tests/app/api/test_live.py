"""Clusters as Azure shows them now: each is one request, within the limits, and hides no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.azure import read_live
from shared.app.api.audit import acts_on
from shared.app.api.schema import LIVE_CLUSTERS
from shared.cluster.failures.errors import Unavailable
from shared.cluster.history import LIVE, Act
from shared.ports.azure import GetCluster
from shared.ports.state.app import MOST_PAGES, RECENT
from tests.support import fleet_files
from tests.support.function_calls import call
from tests.support.one_cluster import ONE, cluster, ready
from tests.support.pipeline_runs import accepted, cloud_with
from tests.support.replaced_ports import around, on_azure
from tests.support.sweeps import delete_by_hand, reads_of, use_up_reads

pytestmark = pytest.mark.lives


def read(cloud: MemoryCloud, *names: str) -> dict[str, Any]:
    result = read_live(names, cloud.ports)
    assert result.status == 200
    return dict(result.body)


def test_a_cluster_is_the_document_of_azure_and_one_request() -> None:
    cloud = ready()
    written, reads = dict(accepted(cloud)), reads_of(cloud)
    (found,) = read(cloud, "one")["clusters"]
    assert (len(reads), dict(accepted(cloud))) == (1, written)
    assert (found["name"], found["resource"], found["problem"]) == ("one", ONE.resource, "")
    assert found["live"] == cluster(cloud)
    assert found["unmanaged"] == []


def test_a_cluster_that_no_longer_exists_is_none_and_no_problem() -> None:
    cloud = ready()
    delete_by_hand(cloud, ONE)
    (found,) = read(cloud, "one")["clusters"]
    assert (found["live"], found["problem"]) == (None, "")


def test_one_cluster_that_cannot_be_read_hides_no_other() -> None:
    cloud = cloud_with(fleet_files.fleet("one", "two"), throttle=False)
    azure = cloud.ports.azure

    def sometimes(operation: Any) -> Any:
        if operation.target.name == "one":
            raise Unavailable("no answer")
        return azure.call(operation)

    on_azure(cloud, GetCluster, sometimes)
    one, two = read(cloud, "one", "two")["clusters"]
    assert (one["live"], one["problem"]) == (None, "Unavailable: no answer")
    assert two["live"]["name"] == "two"


def test_without_a_token_of_the_read_limit_nothing_is_read() -> None:
    cloud = ready()
    use_up_reads(cloud, ONE, 600)
    reads = reads_of(cloud)
    (found,) = read(cloud, "one")["clusters"]
    assert reads == []
    assert found["problem"].startswith("waits for Azure's read limit of subscription")


def test_a_cluster_without_a_record_is_not_read() -> None:
    cloud = ready()
    reads = reads_of(cloud)
    assert read_live(["one", "two"], cloud.ports).status == 404
    assert reads == []


@pytest.mark.parametrize("names", ["", ",", ",".join(f"c{number}" for number in range(LIVE_CLUSTERS + 1))])
def test_other_numbers_of_names_are_refused(names: str) -> None:
    cloud = ready()
    status, body = call(cloud.ports, "live", query={"clusters": names})
    assert (status, body["error"]) == (
        400,
        f"clusters: give 1 to {LIVE_CLUSTERS} names, separated by commas; the fields are reason, clusters",
    )


def test_who_read_azure_is_in_the_audit() -> None:
    cloud = ready()
    assert call(cloud.ports, "live", query={"clusters": "one"})[0] == 200
    _, body = call(cloud.ports, "audit")
    assert [(act["action"], act["target"], act["result"]) for act in body["acts"]][:1] == [
        ("live", "one", "accepted")
    ]


def test_a_read_of_azure_is_no_act_on_the_cluster() -> None:
    cloud = ready()
    call(cloud.ports, "replay", name="one")
    assert call(cloud.ports, "live", query={"clusters": "one"})[0] == 200
    _, why = call(cloud.ports, "why", name="one")
    assert [act["action"] for act in why["acts"]] == ["replay"]


def test_no_number_of_reads_hides_an_act_on_a_cluster() -> None:
    cloud = ready()
    call(cloud.ports, "replay", name="one")
    for _ in range(3 * RECENT):
        cloud.clock.advance(1)
        read_act = Act(id=cloud.ports.unique(), at=cloud.clock(), action=LIVE, target="one", by="ann")
        cloud.state.save_act(replace(read_act, clusters=("one",)))
    _, why = call(cloud.ports, "why", name="one")
    assert [act["action"] for act in why["acts"]] == ["replay"]


def test_the_acts_of_a_cluster_cost_a_few_requests_however_many_reads_there_were() -> None:
    cloud = MemoryCloud()
    asked = list[int]()

    def all_read(limit: int, _: Any = None) -> list[Act]:
        asked.append(limit)
        return [Act(id=str(n), at=cloud.clock(), action=LIVE, target="one", by="ann") for n in range(limit)]

    around(cloud, "state", acts=all_read)
    assert acts_on("one", cloud.ports) == []
    assert asked == [RECENT] * MOST_PAGES
