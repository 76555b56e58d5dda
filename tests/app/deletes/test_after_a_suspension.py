"""A delete, or a rebuild, that a suspension holds starts by itself at its end, with all its other guards."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.approval import approve
from shared.app.api.views.why import why_view
from shared.cluster.record_parts import Phase
from shared.plan.holds import HoldKind
from shared.plan.plan import Action, Item
from shared.ports import Message
from tests.support import fleet_files
from tests.support.pipeline_runs import accepted, cloud_with, phases, push, status, step_until
from tests.support.replaced_ports import around
from tests.support.staged_fleets import FREEZE

pytestmark = pytest.mark.lives

ASKED = '{roadstead.dev/rebuild: "2026-01-02T00:00:00Z"}'


def manifest(until: datetime | None = None, *, extra: str = "", rebuild: bool = False) -> bytes:
    """Return the manifest of the cluster "one", suspended ``until`` a time."""
    lines = extra
    if until is not None:
        lines += f"  suspend: {{owner: team-a, reason: an audit, until: '{until:%Y-%m-%dT%H:%M:%SZ}'}}\n"
    text = fleet_files.cluster("one", extra=lines).decode()
    if rebuild:
        text = text.replace("  name: one\n", f"  name: one\n  annotations: {ASKED}\n", 1)
    return text.encode()


def files(one: bytes | None, *others: str, budget: int = 3, rollout: str = "") -> dict[str, bytes]:
    found = fleet_files.fleet(*others, budget=budget)
    found["fleet.yaml"] += rollout.encode()
    return found | ({"clusters/one/cluster.yaml": one} if one is not None else {})


def in_suspension(*others: str, hours: float = 3, extra: str = "") -> tuple[MemoryCloud, datetime]:
    """Return a cloud whose cluster "one" is suspended, and until when; the others are Ready."""
    cloud = cloud_with(files(manifest(extra=extra), *others), throttle=False)
    until = (cloud.clock() + timedelta(hours=hours)).replace(microsecond=0)
    push(cloud, files(manifest(until, extra=extra), *others))
    cloud.run(seconds=600)
    assert phases(cloud)["one"] is Phase.SUSPENDED
    return cloud, until


def run_until(cloud: MemoryCloud, moment: datetime) -> None:
    cloud.run(seconds=(moment - cloud.clock()).total_seconds())


def item(cloud: MemoryCloud, name: str = "one") -> Item:
    newest = cloud.state.plan(cloud.state.fleet().commit)
    assert newest is not None
    return next(planned_item for planned_item in newest.plan.items if planned_item.cluster == name)


def kind(cloud: MemoryCloud) -> HoldKind | None:
    hold = item(cloud).hold
    return hold.kind if hold else None


def test_a_delete_starts_by_itself_when_the_suspension_ends_and_says_so_before() -> None:
    cloud, until = in_suspension()
    commit = push(cloud, files(None))
    run_until(cloud, until - timedelta(minutes=1))
    assert (item(cloud).action, kind(cloud)) == (Action.ON_HOLD, HoldKind.SUSPENSION)
    why = why_view("one", cloud.ports)
    assert why is not None
    assert "The delete starts by itself then" in why["suggestedAction"]
    step_until(cloud, lambda: phases(cloud).get("one") is not Phase.SUSPENDED)
    assert timedelta(0) <= cloud.clock() - until < timedelta(minutes=1)
    cloud.run()
    assert (phases(cloud), accepted(cloud)["delete", "one"]) == ({}, 1)
    assert status(cloud, commit)[0] == "success"


def test_a_rebuild_starts_by_itself_when_the_suspension_ends() -> None:
    cloud, until = in_suspension()
    push(cloud, files(manifest(until, rebuild=True)))
    run_until(cloud, until - timedelta(minutes=1))
    assert (kind(cloud), accepted(cloud)["delete", "one"]) == (HoldKind.SUSPENSION, 0)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert (accepted(cloud)["delete", "one"], accepted(cloud)["create", "one"]) == (1, 2)


@pytest.mark.parametrize("behind", [0, 2])
def test_the_timer_starts_it_where_the_message_is_lost_or_an_instance_takes_it_that_is_behind(
    behind: int,
) -> None:
    cloud, until = in_suspension()
    send, asked = cloud.ports.plans.send, list[str]()

    def lossy(*messages: Message) -> None:
        asked.extend(message.id for message in messages if message.id.startswith("rollout:at:"))
        send(*[message for message in messages if behind or message.id not in asked])

    around(cloud, "plans", send=lossy)
    push(cloud, files(None))
    cloud.run(seconds=600)
    assert asked
    cloud.with_ports(lambda ports: replace(ports, clock=lambda: cloud.clock() - timedelta(seconds=behind)))
    run_until(cloud, until + timedelta(seconds=behind - 5))
    assert kind(cloud) is HoldKind.SUSPENSION
    cloud.run(seconds=1800)
    assert "one" not in phases(cloud)


def test_an_instance_whose_clock_is_ahead_starts_it_no_earlier_than_its_clock_says() -> None:
    cloud, until = in_suspension()
    push(cloud, files(None))
    ahead = timedelta(seconds=2)
    cloud.with_ports(lambda ports: replace(ports, clock=lambda: cloud.clock() + ahead))
    run_until(cloud, until - timedelta(minutes=1))
    assert kind(cloud) is HoldKind.SUSPENSION
    cloud.run()
    assert "one" not in phases(cloud)


def test_a_budget_that_is_exceeded_then_holds_it() -> None:
    cloud, until = in_suspension("two", "three")
    push(cloud, files(None, "three", budget=1))
    run_until(cloud, until + timedelta(hours=1))
    assert kind(cloud) is HoldKind.DELETE_BUDGET
    assert "one" in phases(cloud)


def test_protection_holds_it_then() -> None:
    cloud, until = in_suspension(extra="  deletionProtection: true\n")
    push(cloud, files(None))
    run_until(cloud, until + timedelta(hours=1))
    assert kind(cloud) is HoldKind.DELETION_PROTECTION
    assert phases(cloud)["one"] is not Phase.DELETING


def test_a_freeze_holds_it_then_and_it_starts_when_that_ends() -> None:
    cloud, until = in_suspension()
    ends = until + timedelta(hours=5)
    freeze = FREEZE.format(starts=cloud.clock().isoformat(), ends=ends.isoformat())
    push(cloud, files(None, rollout=freeze.replace("select: {environments: [production]}", "select: {}")))
    run_until(cloud, until + timedelta(hours=1))
    assert kind(cloud) is HoldKind.FREEZE
    run_until(cloud, ends + timedelta(hours=1))
    assert "one" not in phases(cloud)


def test_an_approval_starts_it_before_the_end() -> None:
    cloud, until = in_suspension(hours=48)
    commit = push(cloud, files(None))
    cloud.run(seconds=600)
    approve(commit, frozenset({"one"}), "ops", cloud.ports)
    cloud.run(seconds=3600)
    assert ("one" in phases(cloud), cloud.clock() < until) == (False, True)


def test_a_commit_that_restores_the_folder_leaves_nothing_to_delete_at_the_end() -> None:
    cloud, until = in_suspension()
    push(cloud, files(None))
    cloud.run(seconds=600)
    push(cloud, files(manifest(until)))
    run_until(cloud, until + timedelta(hours=1))
    assert (phases(cloud), accepted(cloud)["delete", "one"]) == ({"one": Phase.READY}, 0)


def test_a_head_that_has_the_folder_again_and_no_webhook_is_seen_at_the_end() -> None:
    cloud, until = in_suspension()
    push(cloud, files(None))
    run_until(cloud, until - timedelta(seconds=20))
    cloud.repository.push(files(manifest(until)))
    cloud.run()
    assert (phases(cloud), accepted(cloud)["delete", "one"]) == ({"one": Phase.READY}, 0)


@pytest.mark.parametrize("rebuild", [False, True])
@pytest.mark.parametrize("hours", [1, 9])
def test_an_end_that_a_commit_moves_is_the_one_that_counts(hours: int, rebuild: bool) -> None:
    cloud, before = in_suspension()
    push(cloud, files(manifest(before, rebuild=True) if rebuild else None))
    cloud.run(seconds=600)
    until = (cloud.clock() + timedelta(hours=hours)).replace(microsecond=0)
    push(cloud, files(manifest(until)))
    cloud.run(seconds=600)
    push(cloud, files(manifest(until, rebuild=True) if rebuild else None))
    run_until(cloud, until - timedelta(minutes=1))
    assert (kind(cloud), accepted(cloud)["delete", "one"]) == (HoldKind.SUSPENSION, 0)
    run_until(cloud, until + timedelta(hours=1))
    assert accepted(cloud)["delete", "one"] == 1


@pytest.mark.parametrize("rebuild", [False, True])
def test_a_commit_that_lifts_the_suspension_leaves_nothing_to_wait_for(rebuild: bool) -> None:
    cloud, before = in_suspension()
    push(cloud, files(manifest(before, rebuild=True) if rebuild else None))
    cloud.run(seconds=600)
    push(cloud, files(manifest()))
    cloud.run(seconds=600)
    push(cloud, files(manifest(rebuild=True) if rebuild else None))
    cloud.run(seconds=1800)
    assert (accepted(cloud)["delete", "one"], cloud.clock() < before) == (1, True)


def test_a_commit_that_lifts_the_suspension_and_asks_for_the_rebuild_at_once_waits_for_the_old_end() -> None:
    cloud, until = in_suspension()
    push(cloud, files(manifest(rebuild=True)))
    run_until(cloud, until - timedelta(minutes=1))
    assert (kind(cloud), accepted(cloud)["delete", "one"]) == (HoldKind.SUSPENSION, 0)
    cloud.run()
    assert accepted(cloud)["delete", "one"] == 1


def test_a_rebuild_whose_manifest_has_a_later_end_starts_then() -> None:
    cloud, until = in_suspension()
    moved = until + timedelta(hours=5)
    push(cloud, files(manifest(moved, rebuild=True)))
    run_until(cloud, moved - timedelta(minutes=1))
    assert (kind(cloud), accepted(cloud)["delete", "one"]) == (HoldKind.SUSPENSION, 0)
    cloud.run()
    assert accepted(cloud)["delete", "one"] == 1
