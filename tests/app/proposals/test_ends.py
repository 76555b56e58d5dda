"""The lifetime of a cluster: warnings, the pull request that removes it, and what puts its end off."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from localcloud.memory.crashes import Crash
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.fleet import pause, resume
from shared.app.api.views.clusters import cluster_detail
from shared.app.intake.accept import accept
from shared.app.intake.webhook import PullChange
from shared.app.proposals import ends
from shared.cluster.failures.errors import Unreadable
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.language.model.notification_kinds import NotificationKind
from shared.plan.holds import HoldKind
from shared.ports import Message
from tests.support import fleet_files
from tests.support.lifetimes import LIFETIME, ended, later, put_off, run_until
from tests.support.notifications import notifying
from tests.support.notified import OPS
from tests.support.one_cluster import files, ready, record
from tests.support.pipeline_runs import accepted, phases, push, pushed
from tests.support.replaced_ports import around
from tests.support.rollbacks import open_pulls

pytestmark = pytest.mark.lives


def end_of(cloud: MemoryCloud) -> datetime:
    first = record(cloud).azure.lifetime.first_ready
    assert first is not None
    return first + timedelta(hours=72)


def waits(cloud: MemoryCloud) -> str:
    view = cluster_detail("one", cloud.ports)
    assert view is not None
    assert "generation" in view
    assert view["lifetime"] is not None
    return view["lifetime"]["waits"]


def warnings(cloud: MemoryCloud) -> list[str]:
    """Return what the owner of the cluster was notified of."""
    messages = cloud.routes.delivered.get("ops", [])
    notifications = [
        notification
        for message in messages
        for group in message.groups
        for notification in group.notifications
    ]
    return [
        notification.detail for notification in notifications if notification.kind is NotificationKind.ENDING
    ]


def merge(cloud: MemoryCloud) -> None:
    (pull,) = open_pulls(cloud)
    merged = cloud.repository.pulls.merged_into_base(pull.number)
    accept(pushed(cloud, merged.merge_commit), cloud.ports)
    cloud.run()


def test_a_lifetime_counts_from_the_first_ready_and_no_later_one() -> None:
    cloud = ready(LIFETIME)
    first = record(cloud).azure.lifetime.first_ready
    later(cloud, 5)
    push(cloud, files("  tags: {cost: b}\n" + LIFETIME))
    cloud.run()
    assert (record(cloud).generation, record(cloud).azure.lifetime.first_ready) == (2, first)


def test_at_the_end_a_pull_request_removes_the_folder_and_nothing_else() -> None:
    cloud = ended()
    (pull,) = open_pulls(cloud)
    before = cloud.repository.files(cloud.repository.head("main"))
    after = cloud.repository.files(cloud.repository.head(pull.head))
    assert before.keys() - after.keys() == {"clusters/one/cluster.yaml"}
    assert {path: before[path] for path in after} == after
    assert (pull.title, phases(cloud)) == ("Remove one: its lifetime is over", {"one": Phase.READY})
    assert waits(cloud) == "its pull request is not merged yet"


def test_a_merge_deletes_the_cluster() -> None:
    cloud = ended()
    merge(cloud)
    assert (phases(cloud), accepted(cloud)["delete", "one"]) == ({}, 1)


def test_nothing_is_proposed_before_the_end() -> None:
    cloud = ended(hours=71.9)
    assert open_pulls(cloud) == []


def test_the_owner_is_warned_at_a_quarter_left_a_day_before_and_at_the_end_each_once() -> None:
    cloud = ready("  lifetime: 8d\n", fleet=lambda extra: notifying(files(extra), OPS))
    later(cloud, 5.9 * 24)
    assert warnings(cloud) == []
    for hours in (3, 1):
        later(cloud, hours)
    assert len(warnings(cloud)) == 1
    for hours in (24, 1):
        later(cloud, hours)
    assert len(warnings(cloud)) == 2
    for hours in (25, 1):
        later(cloud, hours)
    assert len(warnings(cloud)) == 3
    assert "removes it" in warnings(cloud)[-1]
    assert len(open_pulls(cloud)) == 1


def test_an_extension_puts_the_end_off_once_for_each_end_in_git() -> None:
    cloud = ended(hours=70)
    assert put_off(cloud).body["ends"] == (end_of(cloud) + timedelta(hours=24)).isoformat()
    refused = put_off(cloud)
    assert (refused.status, "once for each end" in str(refused.body["error"])) == (409, True)
    later(cloud, 25)
    assert open_pulls(cloud) == []
    later(cloud, 2)
    assert len(open_pulls(cloud)) == 1
    push(cloud, files("  lifetime: 96h\n"))
    cloud.run()
    assert put_off(cloud).status == 202


def test_an_extension_closes_the_pull_request_that_is_open_and_the_next_end_has_another() -> None:
    cloud = ended()
    (first,) = open_pulls(cloud)
    put_off(cloud)
    assert open_pulls(cloud) == []
    assert cloud.ports.git_host.tip(first.head) is None
    assert record(cloud).azure.lifetime.pull is None
    later(cloud, 25)
    (second,) = open_pulls(cloud)
    assert second.number != first.number


def test_a_later_end_in_git_closes_the_pull_request_and_so_does_none() -> None:
    for extra in ("  lifetime: 100d\n", ""):
        cloud = ended()
        push(cloud, files(extra))
        cloud.run()
        later(cloud, 1)
        assert open_pulls(cloud) == []


def test_who_closes_the_pull_request_keeps_the_cluster() -> None:
    cloud = ended()
    (pull,) = open_pulls(cloud)
    cloud.repository.pulls.change(pull.number, state="closed")
    accept(PullChange("d", "x", pull.number, "c" * 40, "closed", proposal=True), cloud.ports)
    cloud.run(seconds=600)
    later(cloud, 48)
    assert open_pulls(cloud) == []
    assert waits(cloud).startswith("its pull request was closed")


def test_a_hold_after_that_does_not_have_the_end_proposed_again() -> None:
    cloud = ended()
    (pull,) = open_pulls(cloud)
    cloud.repository.pulls.change(pull.number, state="closed")
    accept(PullChange("d", "x", pull.number, "c" * 40, "closed", proposal=True), cloud.ports)
    cloud.run(seconds=600)
    put_off(cloud, hours=8, hold=True)
    later(cloud, 9)
    assert open_pulls(cloud) == []
    put_off(cloud)
    later(cloud, 25)
    assert len(open_pulls(cloud)) == 1


@pytest.mark.parametrize(
    ("guard", "reported"),
    [
        ("  deletionProtection: true\n", "deletionProtection is on"),
        (
            '  suspend: {owner: a, reason: b, until: "2099-01-01T00:00:00Z"}\n',
            "it is suspended by a until 2099-01-01 00:00 UTC",
        ),
    ],
)
def test_a_guard_keeps_the_cluster_and_says_so(guard: str, reported: str) -> None:
    cloud = ready(LIFETIME)
    push(cloud, files(LIFETIME + guard))
    cloud.run(seconds=600)
    later(cloud, 80)
    assert open_pulls(cloud) == []
    assert waits(cloud).startswith(reported)
    push(cloud, files(LIFETIME))
    cloud.run(seconds=600)
    later(cloud, 1)
    assert len(open_pulls(cloud)) == 1


def test_a_later_end_that_is_not_planned_yet_counts() -> None:
    cloud = ready(LIFETIME)
    send = cloud.ports.plans.send

    def no_plan(*messages: Message) -> None:
        send(*[message for message in messages if '"kind":"plan"' not in message.body])

    around(cloud, "plans", send=no_plan)
    cloud.repository.push(files("  lifetime: 100d\n"))
    later(cloud, 73)
    assert record(cloud).generation == 1
    assert open_pulls(cloud) == []


def test_a_hold_keeps_the_cluster_from_its_end_and_from_a_commit_until_it_is_over() -> None:
    cloud = ended(hours=70)
    assert put_off(cloud, hold=True).body["heldUntil"] is not None
    later(cloud, 4)
    assert open_pulls(cloud) == []
    assert waits(cloud).startswith("ops holds it until")
    removed = push(cloud, {path: text for path, text in files().items() if "clusters" not in path})
    cloud.run(seconds=3600)
    newest = cloud.state.plan(removed)
    assert newest is not None
    (item,) = newest.plan.items
    assert item.hold is not None
    assert (item.hold.kind, phases(cloud)) == (HoldKind.LIFETIME_HOLD, {"one": Phase.READY})
    assert "ops holds the cluster until" in item.hold.cause
    later(cloud, 24)
    assert (phases(cloud), accepted(cloud)["delete", "one"]) == ({}, 1)


def test_the_last_day_is_whole() -> None:
    cloud = ready()
    day = (cloud.clock() + timedelta(days=3)).date()
    push(cloud, files(f"  expires: {day}\n"))
    cloud.run(seconds=600)
    last = datetime.combine(day, datetime.max.time(), cloud.clock().tzinfo)
    run_until(cloud, last - timedelta(minutes=20))
    later(cloud, 0.1)
    assert open_pulls(cloud) == []
    later(cloud, 1)
    assert len(open_pulls(cloud)) == 1


def test_clusters_that_a_guard_keeps_keep_no_other_one_from_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends, "AT_ONCE", 2)
    cloud, kept = MemoryCloud(), "  lifetime: 72h\n  deletionProtection: true\n"
    wanted = {f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra=kept) for name in "abc"}
    last = {"clusters/last/cluster.yaml": fleet_files.cluster("last", extra=LIFETIME)}
    push(cloud, fleet_files.fleet() | wanted | last)
    cloud.run()
    later(cloud, 73)
    for _ in range(20):
        later(cloud, 0.1)
    assert [pull.title for pull in open_pulls(cloud)] == ["Remove last: its lifetime is over"]


def test_a_record_that_cannot_be_read_keeps_no_other_cluster_from_its_end() -> None:
    cloud = MemoryCloud()
    wanted = {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra=LIFETIME) for name in ("one", "two")
    }
    push(cloud, fleet_files.fleet() | wanted)
    cloud.run()
    real = cloud.ports.state.cluster

    def damaged(name: str) -> ClusterRecord | None:
        if name == "one":
            raise Unreadable("the record of one is damaged")
        return real(name)

    around(cloud, "state", cluster=damaged)
    later(cloud, 73)
    assert [pull.title for pull in open_pulls(cloud)] == ["Remove two: its lifetime is over"]


@pytest.mark.parametrize("call", ["add_commit", "move_branch", "open_pull"])
@pytest.mark.parametrize("before", [True, False])
def test_a_crash_at_any_call_leaves_one_pull_request(call: str, before: bool) -> None:
    cloud = ready(LIFETIME)
    real, crashed = getattr(cloud.ports.git_host, call), list[str]()

    def crash(*given: object) -> object:
        if crashed:
            return real(*given)
        crashed.append(call)
        if not before:
            real(*given)
        raise Crash

    around(cloud, "git_host", **{call: crash})
    later(cloud, 73)
    assert (len(open_pulls(cloud)), crashed) == (1, [call])


def test_what_puts_an_end_off_and_the_end_are_events_of_their_own_times() -> None:
    cloud, times = ready(LIFETIME), {}
    for reason, hold in (("Extended", False), ("Held", True)):
        later(cloud, 5)
        times[reason] = cloud.clock()
        assert put_off(cloud, hours=1, hold=hold).ok
    later(cloud, 73)
    (pull,) = open_pulls(cloud)
    found = {event.reason: event for event in cloud.state.events("one", 50)}
    assert {reason: found[reason].at for reason in times} == times
    assert found["Ends"].message.endswith(f"/pull/{pull.number}")
    assert found["Ends"].at > end_of(cloud)


def test_a_cluster_that_was_never_ready_has_no_end_to_extend() -> None:
    cloud = ready()
    result = put_off(cloud)
    assert (result.status, "no end that is known" in str(result.body["error"])) == (409, True)


def test_nothing_is_proposed_in_a_freeze_or_a_pause_and_all_of_it_afterwards() -> None:
    cloud = ready(LIFETIME)
    ends = end_of(cloud) + timedelta(hours=5)
    freeze = (
        f'  rollout: {{freezes: [{{name: sale, starts: "2026-01-01T00:00:00Z", '
        f'ends: "{ends:%Y-%m-%dT%H:%M:%SZ}", owner: shop, reason: a sale}}]}}\n'
    )
    frozen = files(LIFETIME)
    frozen["fleet.yaml"] = frozen["fleet.yaml"].replace(b"spec:\n", b"spec:\n" + freeze.encode(), 1)
    push(cloud, frozen)
    cloud.run(seconds=600)
    later(cloud, 73)
    assert open_pulls(cloud) == []
    assert pause("an incident", None, "ops", cloud.ports).status == 200
    later(cloud, 6)
    assert open_pulls(cloud) == []
    assert resume("ops", cloud.ports).status == 200
    later(cloud, 1)
    assert len(open_pulls(cloud)) == 1
