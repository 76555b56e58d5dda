"""What freezes and change windows hold besides the changes of a rollout: deletes, creations and retries."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.rollout import act_on_rollout
from shared.app.api.views.why import why_view
from shared.cluster.failures.errors import Unavailable
from shared.cluster.record_parts import Phase
from shared.plan.holds import HoldKind
from shared.plan.plan import Action, Item
from shared.ports.azure import GetCluster
from shared.rollouts.calendar import SPREAD
from shared.rollouts.rollout_acts import ActKind
from tests.support.function_calls import call
from tests.support.pipeline_runs import phases, push, status
from tests.support.replaced_ports import on_azure
from tests.support.staged_fleets import DEFAULT, FREEZE, ready_fleet, staged

pytestmark = pytest.mark.lives

WINDOW = """\
  rollout:
    changeWindows:
      - name: nights
        select: {{environments: [production]}}
        timeZone: UTC
        recurrence: FREQ=DAILY
        start: "{start}"
        duration: 2h
"""


def frozen(now: datetime, hours: int = 3, extra: str = "") -> str:
    """Return a strategy that freezes production from now on."""
    text = FREEZE.format(starts=now.isoformat(), ends=(now + timedelta(hours=hours)).isoformat())
    return text + (f"        {extra}\n" if extra else "")


def without(name: str, rollout: str) -> dict[str, bytes]:
    files = staged(rollout)
    del files[f"clusters/{name}/cluster.yaml"]
    return files


def with_new(name: str, rollout: str) -> dict[str, bytes]:
    files = staged(rollout)
    files[f"clusters/{name}/cluster.yaml"] = files["clusters/b1/cluster.yaml"].replace(b"b1", name.encode())
    return files


def item_of(cloud: MemoryCloud, name: str) -> Item:
    found = cloud.state.plan(cloud.state.fleet().commit)
    assert found is not None
    return next(item for item in found.plan.items if item.cluster == name)


def test_a_freeze_holds_a_delete_says_so_and_the_delete_starts_when_it_ends() -> None:
    cloud = ready_fleet()
    now = cloud.clock().replace(microsecond=0)
    commit = push(cloud, without("b1", frozen(now)))
    cloud.run(seconds=2 * 3600)
    assert phases(cloud)["b1"] is Phase.READY
    item = item_of(cloud, "b1")
    assert item.hold is not None
    assert (item.action, item.hold.kind) == (Action.ON_HOLD, HoldKind.FREEZE)
    ends = now + timedelta(hours=3)
    assert dict(item.hold.details) == {
        "start": "delete",
        "name": "holidays",
        "owner": "platform",
        "reason": "nobody is here",
        "since": now.isoformat(),
        "until": ends.isoformat(),
    }
    state, description = status(cloud, commit)
    assert (state, "the delete waits until" in description) == ("pending", True)
    why = why_view("b1", cloud.ports)
    assert why is not None
    assert "the freeze holidays of platform (nobody is here)" in why["doing"]
    assert "roadstead rollout override" in why["suggestedAction"]
    cloud.run(seconds=2 * 3600)
    assert "b1" not in phases(cloud)
    cloud.run()
    assert status(cloud, commit)[0] == "success"


def test_a_delete_outside_the_window_waits_until_it_opens() -> None:
    cloud = ready_fleet()
    opens = (cloud.clock() + timedelta(hours=5)).replace(minute=0, second=0, microsecond=0)
    push(cloud, without("b1", WINDOW.format(start=f"{opens:%H:%M}")))
    cloud.run(seconds=(opens - cloud.clock()).total_seconds() - 60)
    assert phases(cloud)["b1"] is Phase.READY
    cloud.run(seconds=SPREAD.total_seconds() + 3600)
    assert "b1" not in phases(cloud)


def test_a_freeze_holds_a_creation_only_where_it_says_so() -> None:
    cloud = ready_fleet()
    push(cloud, with_new("b9", frozen(cloud.clock())))
    cloud.run(seconds=3600)
    assert phases(cloud)["b9"] is Phase.READY

    cloud = ready_fleet()
    commit = push(cloud, with_new("b9", frozen(cloud.clock(), extra="appliesTo: [creations]")))
    cloud.run(seconds=3600)
    assert "b9" not in phases(cloud)
    why = why_view("b9", cloud.ports)
    assert why is not None
    assert "the creation waits until" in why["doing"]
    cloud.run(seconds=3 * 3600)
    assert phases(cloud)["b9"] is Phase.READY
    cloud.run()
    assert status(cloud, commit)[0] == "success"


def test_a_freeze_of_deletes_alone_holds_no_change() -> None:
    cloud = ready_fleet()
    push(cloud, staged(frozen(cloud.clock(), extra="appliesTo: [deletes]"), "  tags: {change: one}\n"))
    cloud.run()
    records = cloud.state.clusters()
    assert {record.document["spec"]["tags"].get("change") for record in records} == {"one"}


def test_an_override_starts_the_delete_of_a_commit_without_a_rollout() -> None:
    cloud = ready_fleet()
    commit = push(cloud, without("b1", frozen(cloud.clock(), hours=48)))
    cloud.run(seconds=3600)
    assert cloud.state.rollout(commit) is None
    assert call(cloud.ports, "rollout_override", commit=commit)[0] == 400
    given = act_on_rollout(commit, ActKind.OVERRIDE, "", "ops", cloud.ports, reason="a leak")
    assert given.status == 202, given.body
    cloud.run(seconds=3600)
    assert "b1" not in phases(cloud)
    override = cloud.state.fleet().closed.override
    assert override is not None
    assert (override.commit, override.by, override.reason) == (commit, "ops", "a leak")


def test_an_override_is_of_one_commit() -> None:
    cloud = ready_fleet()
    rollout = frozen(cloud.clock(), hours=48)
    commit = push(cloud, without("b1", rollout))
    cloud.run(seconds=3600)
    act_on_rollout(commit, ActKind.OVERRIDE, "", "ops", cloud.ports, reason="a leak")
    cloud.run(seconds=3600)
    files = without("b1", rollout)
    del files["clusters/b2/cluster.yaml"]
    push(cloud, files)
    cloud.run(seconds=3600)
    assert phases(cloud)["b2"] is Phase.READY


def test_a_commit_that_restores_the_folder_lets_nothing_be_deleted_when_the_freeze_ends() -> None:
    cloud = ready_fleet()
    rollout = frozen(cloud.clock())
    push(cloud, without("b1", rollout))
    cloud.run(seconds=3600)
    commit = push(cloud, staged(rollout))
    cloud.run()
    assert phases(cloud)["b1"] is Phase.READY
    assert status(cloud, commit)[0] == "success"


def with_a_failed_delete_in_a_freeze() -> MemoryCloud:
    """Return a fleet in which the delete of a cluster has failed, and would be tried again."""
    cloud = ready_fleet()
    azure = cloud.ports.azure

    def down(_: GetCluster) -> None:
        raise Unavailable("Azure is down")

    on_azure(cloud, GetCluster, down)
    push(cloud, without("b1", DEFAULT))
    cloud.run()
    assert phases(cloud)["b1"] is Phase.FAILED
    on_azure(cloud, GetCluster, azure.call)
    push(cloud, without("b1", frozen(cloud.clock(), hours=48)))
    cloud.run(seconds=3600)
    return cloud


def test_a_freeze_holds_the_retry_that_a_commit_makes_until_it_ends() -> None:
    cloud = with_a_failed_delete_in_a_freeze()
    assert phases(cloud)["b1"] is Phase.FAILED
    item = item_of(cloud, "b1")
    assert item.hold is not None
    assert (item.action, item.hold.kind, item.hold.is_of_retry) == (Action.ON_HOLD, HoldKind.FREEZE, True)
    cloud.run(seconds=49 * 3600)
    assert "b1" not in phases(cloud)


def test_an_invalid_fleet_file_ends_no_freeze() -> None:
    cloud = ready_fleet()
    rollout = frozen(cloud.clock(), hours=48, extra="appliesTo: [creations]")
    push(cloud, staged(rollout))
    cloud.run(seconds=3600)
    assert cloud.state.fleet().rules.calendar.freezes
    files = staged(rollout)
    files["fleet.yaml"] = files["fleet.yaml"].replace(b"holidays", b"Holi days")
    push(cloud, files)
    cloud.run(seconds=3600)
    assert cloud.state.fleet().rules.calendar.freezes


def test_a_delete_that_waited_leaves_no_commit_without_an_end_when_a_newer_one_restores_it() -> None:
    cloud = ready_fleet()
    rollout = frozen(cloud.clock())
    older = push(cloud, without("b1", rollout))
    cloud.run(seconds=3600)
    push(cloud, staged(rollout))
    cloud.run()
    state, description = status(cloud, older)
    assert (state, description[:13]) == ("error", "superseded by")
