"""The next clusters of a rollout are planned by themselves, with what the whole plan says of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.counting import Counted
from localcloud.memory.crashes import Counter as Tripwires
from localcloud.memory.crashes import Crash
from localcloud.memory.memory_cloud import MemoryCloud, tripwired
from shared.app.planner.compute import WHOLE_AFTER
from shared.app.planner.planner import handle
from shared.azure.running_versions import RunningVersions
from shared.cluster.job import Contest, ContestKind
from shared.cluster.queues.message_parts import RolloutAct
from shared.cluster.queues.messages import ActRequest, PlanRequest, RolloutRequest
from shared.cluster.record import READY, ClusterRecord
from shared.cluster.record_parts import Condition, Phase
from shared.ports.state.fleet import ClosedTimes
from tests.support import team_systems
from tests.support.crash_points import points_of_one_run
from tests.support.replaced_ports import frozen, plan_at_once
from tests.support.sample import examples
from tests.support.staged_fleets import DEV, PROD, staged, tags

pytestmark = pytest.mark.lives

NAMES = (*DEV, *PROD)
STAGES = """\
  rollout:
    stages:
      - name: all
        groups: [{maxConcurrency: "2", failureBudget: "3"}]
"""
NEXT = RolloutRequest()


def team(name: str, clusters: Sequence[str], **more: str) -> dict[str, bytes]:
    return {f"systems/{name}.yaml": team_systems.system(name, ", ".join(clusters), **more)}


def quiet_fleet(files: dict[str, bytes]) -> MemoryCloud:
    """Return a fleet whose clusters have the commit, as far as the state knows."""
    cloud = MemoryCloud()
    plan_at_once(cloud, cloud.repository.push(files))
    for name in NAMES:
        end(cloud, name)
    cloud.clock.advance(600)
    return cloud


def end(cloud: MemoryCloud, name: str, phase: Phase = Phase.READY) -> None:
    record, now = cloud.state.cluster(name), cloud.clock()
    assert record is not None
    ready = Condition(READY, phase is Phase.READY, "Done", "", now, record.generation, now)
    seen = record.generation if phase is Phase.READY else record.observed_generation
    job = replace(record.job, active=False)
    ended = replace(record, phase=phase, observed_generation=seen, job=job, conditions=(ready,))
    cloud.state.save(ended)


def changing(cloud: MemoryCloud) -> list[ClusterRecord]:
    return [cluster for cluster in cloud.state.clusters() if cluster.phase is Phase.UPDATING]


def go_on(cloud: MemoryCloud, *, whole: bool = False) -> bool:
    """Let the rollout go on, and return whether that read the records of the whole fleet."""
    cloud.clock.advance(10)
    state: Any = Counted(cloud.state)
    handle(NEXT.model_copy(update={"again": whole}), replace(cloud.ports, state=state))
    return bool(state.calls["clusters"])


def begun(change: dict[str, bytes], before: dict[str, bytes] | None = None) -> MemoryCloud:
    """Return a fleet of which a commit changes the first clusters."""
    cloud = quiet_fleet(staged(STAGES) | (before or {}))
    plan_at_once(cloud, cloud.repository.push(change))
    assert len(changing(cloud)) == 2
    return cloud


def begun_with_tags() -> MemoryCloud:
    return begun(staged(STAGES, tags("one")))


def facts(cloud: MemoryCloud) -> Any:
    """Return what a plan decides: of each record, of the rollout, and of the fleet.

    Since when a group is watched is left out: whoever decides once more after it has passed drops that.
    """
    fleet = cloud.state.fleet()
    rollout = cloud.state.rollout(fleet.commit)
    records = [
        (
            *(
                cluster.name,
                cluster.phase,
                cluster.generation,
                cluster.digest,
                cluster.document,
                cluster.commit,
                cluster.rollout,
            ),
            *(
                cluster.job.small_change,
                cluster.job.queue,
                cluster.job.recipe,
                cluster.job.active,
                cluster.observed_generation,
            ),
        )
        for cluster in cloud.state.clusters()
    ]
    return (
        records,
        replace(rollout, watched=()) if rollout else None,
        fleet.rollout,
        fleet.planning,
        cloud.state.fingerprints(),
    )


def test_the_end_of_a_cluster_of_a_small_rollout_does_not_read_the_fleet() -> None:
    cloud = begun_with_tags()
    end(cloud, changing(cloud)[0].name)
    state: Any = Counted(cloud.state)
    cloud.clock.advance(10)
    handle(NEXT, replace(cloud.ports, state=state))
    assert len(changing(cloud)) == 2
    assert (state.calls["clusters"], state.calls["summaries"]) == (0, 0)
    assert state.calls["save_plan"] == state.calls["save_fingerprints"] == 0
    assert cloud.state.fleet().planning == ""


def test_a_newer_commit_is_planned_as_a_whole_by_the_next_request() -> None:
    cloud = begun_with_tags()
    end(cloud, changing(cloud)[0].name)
    cloud.clock.advance(60)
    head = cloud.repository.push(staged(STAGES, tags("two")))
    while cloud.state.fleet().commit != head:
        assert not go_on(cloud) or cloud.state.fleet().commit == head
        cloud.clock.advance(60)
    assert {
        record.commit for record in changing(cloud) if record.document["spec"]["tags"]["change"] == "two"
    } == {head}


def test_what_a_partial_plan_does_not_look_at_is_planned_again_after_an_hour() -> None:
    cloud = begun_with_tags()
    cloud.clock.advance((WHOLE_AFTER + timedelta(minutes=1)).total_seconds())
    end(cloud, changing(cloud)[0].name)
    assert go_on(cloud)
    end(cloud, changing(cloud)[0].name)
    assert not go_on(cloud)


def test_another_plan_or_one_of_a_superseded_planner_has_the_whole_planned() -> None:
    for spoil in (_other_changes, _other_planner, _closed_status, _freeze_that_ends):
        cloud = begun_with_tags()
        spoil(cloud)
        end(cloud, changing(cloud)[0].name)
        assert go_on(cloud), spoil.__name__
        assert len(changing(cloud)) == 2


def _other_changes(cloud: MemoryCloud) -> None:
    found = cloud.state.plan(cloud.state.fleet().commit)
    assert found is not None
    items = tuple(replace(item, changes=item.changes[1:]) for item in found.plan.items)
    cloud.state.save_plan(replace(found, plan=replace(found.plan, items=items)))


def _other_planner(cloud: MemoryCloud) -> None:
    found = cloud.state.plan(cloud.state.fleet().commit)
    assert found is not None
    cloud.state.save_plan(replace(found, at=found.at + timedelta(seconds=1)))


def _closed_status(cloud: MemoryCloud) -> None:
    found = cloud.state.plan(cloud.state.fleet().commit)
    assert found is not None
    cloud.state.save_report(replace(found, open=False))


def _freeze_that_ends(cloud: MemoryCloud) -> None:
    cloud.state.save_fleet(replace(cloud.state.fleet(), closed=ClosedTimes(cloud.clock())))


def test_what_a_person_decides_has_the_whole_planned() -> None:
    cloud = begun_with_tags()
    end(cloud, changing(cloud)[0].name)
    commit = cloud.state.fleet().commit
    act = RolloutAct(kind="skip", commit=commit, by="ops", at=cloud.clock(), reason="broken", subject="b4")
    cloud.clock.advance(10)
    state: Any = Counted(cloud.state)
    handle(ActRequest(act=act), replace(cloud.ports, state=state))
    assert state.calls["clusters"] > 0
    assert len(changing(cloud)) == 2


def test_namespaces_that_a_guard_counts_have_the_whole_planned() -> None:
    before = team("shop", NAMES, namespaces="shop, cart")
    cloud = quiet_fleet(_with_budget(staged(STAGES) | before))
    after = team("shop", NAMES, namespaces="shop")
    plan_at_once(cloud, cloud.repository.push(_with_budget(staged(STAGES, tags("one")) | after)))
    assert len(changing(cloud)) == 2
    end(cloud, changing(cloud)[0].name)
    assert go_on(cloud)
    assert len(changing(cloud)) == 2


def _with_budget(files: dict[str, bytes]) -> dict[str, bytes]:
    guard = b"  guards:\n    namespaceBudget: 99\n"
    return files | {"fleet.yaml": files["fleet.yaml"].replace(b"  guards:\n", guard, 1)}


def _commit(kind: str) -> dict[str, bytes]:
    """Return a commit that changes several clusters, and something else."""
    files = staged(STAGES, tags("one"))
    match kind:
        case "system":
            files |= team("shop", NAMES[:4])
        case "clash":  # the second one is invalid on every cluster, because of one that both are on
            files |= team("shop", NAMES[:2], namespaces="one") | team("till", NAMES[1:], namespaces="one")
        case "invalid":
            files["clusters/b4/cluster.yaml"] += b"  unknown: true\n"
        case "removed":
            del files["clusters/b4/cluster.yaml"]
        case "new":
            files["clusters/new/cluster.yaml"] = files["clusters/b4/cluster.yaml"].replace(b"b4", b"new")
        case "few":
            files = staged(STAGES, tags("one"), only=NAMES[2:5])
        case _:
            pass
    return files


KINDS = ("tags", "system", "clash", "invalid", "removed", "new", "few")
EVENTS = ("ready", "ready", "ready", "failed", "contested", "runs")


def _happen(cloud: MemoryCloud, event: str, which: int) -> None:
    """Let something happen to a cluster."""
    flying = changing(cloud)
    others = [cluster for cluster in cloud.state.clusters() if cluster.phase is Phase.READY]
    if event in ("ready", "failed"):
        if flying:
            end(cloud, flying[which % len(flying)].name, Phase(event.capitalize()))
    elif others and event == "contested":
        record = others[which % len(others)]
        next_run = replace(record.job.next_run, contest=Contest(ContestKind.INSTALLATION))
        cloud.state.save(replace(record, job=replace(record.job, next_run=next_run)))
    elif others:
        record = others[which % len(others)]
        observation = replace(record.observation, running=RunningVersions("1.99.1"))
        cloud.state.save(replace(record, observation=observation))


@settings(max_examples=examples(25), deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    events=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 6)), min_size=1, max_size=8),
)
def test_a_partial_plan_starts_what_the_whole_plan_would_start_and_as_that_would(
    kind: str, events: list[tuple[str, int]]
) -> None:
    ours, other = (quiet_fleet(staged(STAGES)) for _ in range(2))
    for cloud in (ours, other):
        plan_at_once(cloud, cloud.repository.push(_commit(kind)))
    for event, which in events:
        for cloud in (ours, other):
            _happen(cloud, event, which)
        go_on(ours)
        go_on(other, whole=True)
        assert facts(ours) == facts(other)


@pytest.mark.parametrize("kind", KINDS)
def test_what_only_the_whole_fleet_shows_has_the_whole_planned_and_nothing_else_has(kind: str) -> None:
    cloud = begun(_commit(kind))
    end(cloud, changing(cloud)[0].name)
    assert go_on(cloud) is (kind == "clash")  # alone, the next cluster would get the system that is refused
    assert len(changing(cloud)) == 2


def test_a_crash_at_any_call_of_a_partial_plan_starts_each_cluster_once_and_none_beyond_the_bound() -> None:
    def run(tripwires: Tripwires) -> int:
        cloud = begun_with_tags()
        end(cloud, changing(cloud)[0].name)
        cloud.clock.advance(10)
        with suppress(Crash):
            handle(NEXT, tripwired(cloud.ports, tripwires))
        assert len(changing(cloud)) <= 2
        calls = tripwires.calls
        for request in (NEXT, PlanRequest(again=True)):  # delivered again, and what the timer asks for
            cloud.clock.advance(60)
            handle(request, cloud.ports)
        flying = [record.name for record in changing(cloud)]
        assert len(flying) == 2
        sent = {message.draft.session for message in cloud.broker.peek("changes")}
        assert sent >= {*flying}
        assert cloud.state.fleet().planning == ""
        return calls

    for point in points_of_one_run(run(Tripwires())):
        run(Tripwires(point))


@pytest.mark.parametrize("method", ["save_fleet", "rollout", "clusters_named", "plan", "save"])
def test_a_planner_that_stands_still_in_a_partial_plan_starts_nothing_after_another_one_has(
    method: str,
) -> None:
    cloud = begun_with_tags()
    end(cloud, changing(cloud)[0].name)
    cloud.clock.advance(10)
    stood = list[bool]()

    def another() -> None:
        stood.append(True)
        handle(PlanRequest(again=True), replace(cloud.ports, state=cloud.state))

    frozen(cloud, "state", method, another)
    handle(NEXT, cloud.ports)
    assert stood
    assert len(changing(cloud)) == 2
    handle(PlanRequest(again=True), cloud.ports)
    assert len(changing(cloud)) == 2
