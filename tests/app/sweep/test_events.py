"""Azure's events: one has just its cluster compared, says who wrote, and what the app did costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bench.sweep import fleet_of
from localcloud.azure.world.access.directory import FUNCTION_APP
from localcloud.memory.memory_cloud import EVENTS, MemoryCloud
from localcloud.servicebus.world.broker_values import Draft
from shared.app.sweep.events import handle
from shared.azure.companions.identity_access import credential_name
from shared.azure.ownership import correlation_id
from shared.cluster.failures.errors import Unavailable
from shared.cluster.queues.messages import QueueRequest, SweepRequest, message_of
from shared.language.model.notification_kinds import NotificationKind
from shared.ports.azure import GetCluster
from tests.support.activity import ANN, BOB, asked, changes
from tests.support.azure_events import GROUP, SUBSCRIPTION, counted_state, event, heard, hearing, tagged
from tests.support.collected_telemetry import Collected, watched
from tests.support.notified import kinds, notified_fleet
from tests.support.one_cluster import ONE, files, pool, pools, ready, record
from tests.support.pipeline_runs import cloud_with, phases, push, record_of, status
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import change_pool_by_hand, drifted, in_sync, reads_of, sweep

pytestmark = pytest.mark.lives


@pytest.fixture
def cloud() -> MemoryCloud:
    return hearing()


def test_an_edit_by_hand_is_shown_within_a_minute_with_who_at_the_price_of_one_read(
    cloud: MemoryCloud,
) -> None:
    reads, log = reads_of(cloud), asked(cloud)
    with cloud.azure.called_by(ANN):
        change_pool_by_hand(cloud, ONE, "apps", count=5)
    heard(cloud)
    assert changes(cloud) == {"nodePools[apps].count": ANN}
    assert (len(reads), log) == (1, [])
    assert in_sync(record(cloud)) == (False, "Drifted")
    assert status(cloud, cloud.state.fleet().commit)[0] == "success"
    assert "0 of 1 clusters in sync, 1 with drift" in status(cloud, cloud.state.fleet().commit)[1]


def test_a_tag_that_is_set_by_the_tags_api_is_shown_with_who(cloud: MemoryCloud) -> None:
    with cloud.azure.called_by(BOB):
        tagged(cloud, owner="bob")
    heard(cloud)
    assert changes(cloud) == {"tags.owner": BOB}


def test_two_people_are_both_named_for_what_they_wrote(cloud: MemoryCloud) -> None:
    with cloud.azure.called_by(BOB):
        tagged(cloud, owner="bob")
    with cloud.azure.called_by(ANN):
        change_pool_by_hand(cloud, ONE, "apps", count=5)
    heard(cloud)
    assert changes(cloud) == {"nodePools[apps].count": f"{ANN} or {BOB}", "tags.owner": BOB}


@pytest.mark.lives
def test_a_storm_of_events_of_one_cluster_costs_one_comparison(cloud: MemoryCloud) -> None:
    reads = reads_of(cloud)
    with cloud.azure.called_by(ANN):
        for number in range(1000):
            tagged(cloud, owner=f"ann{number}")
    heard(cloud)
    assert len(reads) == 1
    assert drifted(record(cloud)) == {"tags.owner": ("", '"ann999"')}
    assert len(cloud.state.changes_of("one").changes) == 1


def test_a_storm_that_does_not_end_costs_a_comparison_each_half_minute_and_the_last_change_is_shown(
    cloud: MemoryCloud,
) -> None:
    reads = reads_of(cloud)
    for second in range(120):
        with cloud.azure.called_by(ANN):
            tagged(cloud, owner=f"ann{second}")
        heard(cloud, 1)
    heard(cloud)
    assert len(reads) <= 6
    assert drifted(record(cloud)) == {"tags.owner": ("", '"ann119"')}


def test_a_storm_of_what_the_app_itself_writes_costs_no_read_of_anything(cloud: MemoryCloud) -> None:
    body = event(claims={"appid": next(iter(cloud.ports.config.principals)).upper()})
    reads, rows = reads_of(cloud), counted_state(cloud)
    for _ in range(5000):
        handle(body, cloud.ports)
    assert rows == []
    heard(cloud)
    assert reads == []


def test_a_rollout_with_events_costs_no_comparison() -> None:
    cloud = ready(pool(count=2))
    cloud.hear_events()
    push(cloud, files(pool(count=3) + "  tags: {cost: a}\n"))
    asked_for = list[SweepRequest]()
    while not cloud.idle():
        cloud.run(5, until=lambda: False)
        requests = [message_of(message.draft.body, QueueRequest) for message in cloud.broker.peek("plans")]
        asked_for += [request for request in requests if isinstance(request, SweepRequest)]
    assert (asked_for, [*cloud.state.changes()]) == ([], [])
    assert pools(cloud)["apps"]["count"] == 3


@pytest.mark.parametrize(
    ("claims", "correlation", "own"),
    [
        ({"appid": "7319c514-987d-4e9b-ac3d-d38c4f427f4c"}, "marked", True),
        ({}, "marked", True),
        ({"http://schemas.xmlsoap.org/ws/2005/05/identity/claims/upn": ANN}, "marked", False),
        ({"appid": "7319c514-987d-4e9b-ac3d-d38c4f427f4c"}, "another", False),
        ({"appid": "7319c514-987d-4e9b-ac3d-d38c4f427f4c"}, "", False),
        ({"http://schemas.microsoft.com/identity/claims/objectidentifier": "mine"}, "", True),
    ],
)
def test_what_azure_does_in_consequence_of_the_app_is_the_apps_and_what_a_person_does_never(
    cloud: MemoryCloud, claims: dict[str, str], correlation: str, own: bool
) -> None:
    mine = next(iter(cloud.ports.config.principals))
    given = {name: mine if value == "mine" else value for name, value in claims.items()}
    mark = cloud.ports.config.mark if correlation == "marked" else "another|app"
    identifier = correlation_id("0123456789abcdef", mark) if correlation else ""
    handle(event(claims=given, correlationId=identifier), cloud.ports)
    assert (cloud.state.changes_of("one").asked is None) == own


def test_an_event_comes_again_while_the_tables_do_not_answer_however_often(cloud: MemoryCloud) -> None:
    calls = list[str]()

    class Down:
        def __getattr__(self, name: str) -> Any:
            if len(calls) < 50:
                calls.append(name)
                raise Unavailable("the tables do not answer")
            return getattr(cloud.state, name)

    real, cloud.ports = cloud.ports, replace(cloud.ports, state=Down())  # type: ignore[arg-type]
    cloud.broker.send(EVENTS, Draft(event()))
    heard(cloud, 5)
    cloud.ports = real
    heard(cloud, 3600)
    assert cloud.state.changes_of("one").asked is not None


def test_a_change_that_azure_shows_late_is_read_once_more(cloud: MemoryCloud) -> None:
    live, shown = cloud.azure.peek(ONE), list[bool]()
    azure = cloud.ports.azure

    def read(operation: Any) -> Any:
        shown.append(bool(shown))
        return azure.call(operation) if len(shown) > 1 else live

    on_azure(cloud, GetCluster, read)
    with cloud.azure.called_by(ANN):
        tagged(cloud, owner="ann")
    heard(cloud)
    assert changes(cloud) == {"tags.owner": ANN}
    assert len(shown) == 2


def test_an_event_of_a_change_that_is_known_is_read_twice_at_most(cloud: MemoryCloud) -> None:
    reads = reads_of(cloud)
    handle(event(), cloud.ports)
    heard(cloud, 600)
    assert len(reads) == 2
    assert phases(cloud) == {"one": record(cloud).phase}


@pytest.mark.parametrize("fate", [(0, 0.5, 2), (40,), (7200,)])
def test_events_that_come_twice_or_late_change_no_more_than_when_it_is_shown(
    cloud: MemoryCloud, fate: Sequence[float]
) -> None:
    cloud.azure.engine.grid.fate = lambda _: fate
    with cloud.azure.called_by(ANN):
        tagged(cloud, owner="ann")
    heard(cloud, fate[0] + 60)
    assert changes(cloud) == {"tags.owner": ANN}
    heard(cloud, 600)
    assert [event.reason for event in cloud.state.events("one", 1)] == ["Drifted"]


def test_a_cluster_that_somebody_deletes_or_stops_is_found_with_who(cloud: MemoryCloud) -> None:
    with cloud.azure.called_by(ANN):
        cloud.azure.stop_cluster(ONE)
    heard(cloud, 600)
    assert record(cloud).finding == "ClusterStopped"
    assert f"by {ANN}" in record(cloud).job.reason


def test_an_event_while_a_job_runs_asks_for_nothing_and_its_end_knows_who(cloud: MemoryCloud) -> None:
    push(cloud, files(pool(count=3)))
    cloud.run(until=lambda: record(cloud).job.active)
    handle(event(), cloud.ports)
    known = cloud.state.changes_of("one")
    assert (known.asked, len(known.changes)) == (None, 1)


def test_the_events_are_counted_by_what_they_are_to_the_app(cloud: MemoryCloud) -> None:
    collected = watched(cloud)
    ports = cloud.ports
    for body in (event(), event("/x"), b"no", event(claims={"appid": next(iter(ports.config.principals))})):
        handle(body, ports)
    cloud.clock.advance(timedelta(days=8).total_seconds())
    handle(event(), ports)
    found = {point.attributes["result"]: point.value for point in collected.metrics["roadstead.azure_events"]}
    assert found == {"taken": 1, "elsewhere": 1, "unreadable": 1, "own": 1, "old": 1}


def test_an_edit_is_in_the_chat_within_a_minute() -> None:
    cloud = cloud_with(notified_fleet("one"))
    cloud.clock.advance(3600)
    cloud.hear_events()
    with cloud.azure.called_by(ANN):
        tagged(cloud, owner="ann")
    heard(cloud)
    assert kinds(cloud) == [(NotificationKind.DRIFT, "one", False)]


def missed(collected: Collected) -> int:
    points = collected.metrics.get("roadstead.azure_events", [])
    return sum(point.value for point in points if point.attributes["result"] == "missed")


def test_what_a_sweep_finds_that_no_event_announced_is_counted(
    cloud: MemoryCloud, caplog: pytest.LogCaptureFixture
) -> None:
    collected = watched(cloud)
    with cloud.azure.called_by(ANN):
        tagged(cloud, owner="ann")
    heard(cloud)
    sweep(cloud)
    assert missed(collected) == 0, "an event announced it"
    with cloud.azure.called_by(ANN):
        cloud.azure.patch_tags(
            ONE.subscription,
            ONE.resource_group,
            {"operation": "Delete", "properties": {"tags": {"owner": ""}}},
            ONE.name,
        )
    heard(cloud, 7 * 3600)
    cloud.azure.engine.grid.fate = lambda _: ()
    with cloud.azure.called_by(ANN):
        tagged(cloud, lost="x")
    sweep(cloud)
    assert missed(collected) == 1
    assert "no event of Azure announced what was found of one" in caplog.text
    sweep(cloud)
    assert missed(collected) == 1, "it is no news any more"


def test_without_any_event_of_a_subscription_none_is_missed(cloud: MemoryCloud) -> None:
    collected = watched(cloud)
    cloud.azure.engine.grid.fate = lambda _: ()
    with cloud.azure.called_by(ANN):
        tagged(cloud, owner="ann")
    sweep(cloud)
    assert [*drifted(record(cloud))] == ["tags.owner"]
    assert missed(collected) == 0


@pytest.mark.lives
def test_of_a_thousand_clusters_the_edited_one_is_read_and_no_other() -> None:
    cloud = fleet_of(1000, 3)
    cloud.ports = replace(
        cloud.ports, config=replace(cloud.ports.config, principals=frozenset((FUNCTION_APP.id,)))
    )
    cloud.hear_events()
    cloud.clock.advance(3600)
    reads, edited = reads_of(cloud), cloud.state.clusters()[500]
    with cloud.azure.called_by(ANN):
        cluster = edited.desired.id
        body = {"operation": "Merge", "properties": {"tags": {"owner": "ann"}}}
        cloud.azure.patch_tags(cluster.subscription, cluster.resource_group, body, cluster.name)
    heard(cloud)
    after = record_of(cloud, edited.name)
    assert drifted(after) == {"tags.owner": ("", '"ann"')}
    assert [read.target for read in reads] == [cluster]


def test_a_federated_credential_of_ours_has_its_cluster_checked_wherever_the_identity_is(
    cloud: MemoryCloud,
) -> None:
    identity = (
        f"{SUBSCRIPTION}/resourceGroups/ids/providers/Microsoft.ManagedIdentity/userAssignedIdentities/a"
    )
    for name in (credential_name(ONE, "dns"), "somebody-elses"):
        handle(event(f"{identity}/federatedIdentityCredentials/{name}"), cloud.ports)
    assert cloud.broker.counts("jobs").scheduled == 1


def test_the_events_of_a_group_read_no_cluster_of_another_one() -> None:
    cloud = fleet_of(1000, 1)
    called = counted_state(cloud)
    handle(event(GROUP.replace("rg-one", "rg-other")), cloud.ports)
    assert called == ["group_members"]
