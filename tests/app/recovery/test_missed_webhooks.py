"""Webhooks that never come: the heads are planned all the same, and each gap is counted once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from shared.app.recovery.missed_work import WEBHOOK_SECONDS, plan_missed_head
from shared.cluster.failures.errors import Unavailable
from shared.cluster.history import FoundBy, Gap
from shared.cluster.record_parts import Phase
from shared.ports import Capability
from tests.support import fleet_files
from tests.support.pipeline_runs import phases, push, pushed, ready, record_of, without_timers
from tests.support.replaced_ports import around
from tests.support.sample import sample

pytestmark = pytest.mark.lives


def files(tag: str = "lost", names: Sequence[str] = ("one", "two")) -> dict[str, bytes]:
    """Return the files of a commit, which gives each cluster a tag."""
    tags = f"  tags: {{commit: c{tag}}}"
    return fleet_files.fleet(*names) | {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra=tags) for name in names
    }


def drop(cloud: MemoryCloud, tag: str = "lost", names: Sequence[str] = ("one", "two")) -> str:
    """Push a commit whose webhook is lost."""
    return cloud.repository.push(files(tag, names))


def tick(cloud: MemoryCloud) -> None:
    """Run the timer, and all that follows."""
    plan_missed_head(cloud.ports)
    cloud.run()


def gaps(cloud: MemoryCloud) -> int:
    return cloud.state.fleet().gaps.count


def test_where_there_are_no_webhooks_none_was_lost() -> None:
    cloud = ready("one")
    cloud.git_host.lacks = frozenset({Capability.WEBHOOKS})
    commit = drop(cloud, names=["one"])
    cloud.clock.advance(WEBHOOK_SECONDS)
    tick(cloud)
    assert cloud.state.fleet().commit == commit
    assert gaps(cloud) == 0


@pytest.mark.parametrize("seed", sample("missed webhooks", range(2), 1))
def test_webhooks_are_dropped_while_200_commits_are_pushed_and_the_count_is_exact(seed: int) -> None:
    chance, cloud = random.Random(seed), ready("one")
    expected, number, commit, late = 0, 0, "", list[str]()
    while number < 200:
        burst = [f"{number + offset}" for offset in range(chance.choice((1, 1, 1, 2, 5)))]
        number += len(burst)
        delivered = set[str]()
        for tag in burst:
            commit = drop(cloud, tag, ["one"])
            if chance.random() < 0.6:
                accept(pushed(cloud, commit), cloud.ports)
                delivered.add(commit)
            elif chance.random() < 0.3:
                late.append(commit)
            cloud.clock.advance(chance.uniform(0, 2))
        expected += not delivered
        if delivered and commit not in delivered:
            without_timers(cloud, 60)  # the webhook of an earlier commit has the head planned
        for _ in range(chance.choice((1, 1, 2, 3))):
            plan_missed_head(cloud.ports)
        cloud.run(chance.choice((20, 200, 400)), until=lambda: False)
        cloud.run()
        while late and chance.random() < 0.5:
            accept(pushed(cloud, late.pop(0)), cloud.ports)
        tick(cloud)
        assert cloud.state.fleet().commit == commit
        assert gaps(cloud) == expected
    assert phases(cloud) == {"one": Phase.READY}
    record = record_of(cloud, "one")
    assert (record.document["spec"]["tags"]["commit"], record.commit) == (f"c{number - 1}", commit)
    assert 20 < expected < 180


def test_a_gap_says_which_commit_was_found_when_and_by_what() -> None:
    cloud = ready("one", "two")
    commit = drop(cloud)
    now = cloud.clock()
    tick(cloud)
    assert cloud.state.fleet().gaps.last == Gap(commit, now, FoundBy.TIMER)


def test_a_webhook_that_comes_while_the_timer_waits_for_it_leaves_no_gap() -> None:
    cloud = ready("one", "two")
    cloud.clock.advance(100)
    commit = drop(cloud)
    assert plan_missed_head(cloud.ports)
    without_timers(cloud, int(WEBHOOK_SECONDS) - 1)
    accept(pushed(cloud, commit), cloud.ports)
    cloud.run()
    assert (cloud.state.fleet().commit, gaps(cloud)) == (commit, 0)


def test_a_webhook_that_comes_after_the_gap_was_repaired_counts_nothing_and_takes_nothing_back() -> None:
    cloud = ready("one", "two")
    commit = drop(cloud)
    tick(cloud)
    accept(pushed(cloud, commit), cloud.ports)
    cloud.run()
    tick(cloud)
    assert gaps(cloud) == 1


def test_the_first_head_of_a_fleet_is_no_gap() -> None:
    cloud = MemoryCloud()
    commit = drop(cloud)
    tick(cloud)
    assert (cloud.state.fleet().commit, gaps(cloud)) == (commit, 0)


def test_a_head_that_is_planned_after_a_failure_is_no_gap() -> None:
    cloud = ready("one", "two")
    around(cloud, "git_host", tree=_fails)
    commit = push(cloud, files("announced"))
    cloud.run(30, until=lambda: False)
    assert cloud.state.fleet().problem is not None
    cloud.ports = replace(cloud.ports, git_host=cloud.git_host)
    tick(cloud)
    assert (cloud.state.fleet().commit, gaps(cloud)) == (commit, 0)


def test_a_gap_whose_plan_is_cut_off_and_repeated_counts_once() -> None:
    cloud = ready("one", "two")
    around(cloud, "state", save_plan=_fails)
    commit = drop(cloud)
    plan_missed_head(cloud.ports)
    cloud.run(100, until=lambda: False)
    assert (cloud.state.fleet().planning, gaps(cloud)) == (commit, 1)
    cloud.ports = replace(cloud.ports, state=cloud.state)
    tick(cloud)
    assert (cloud.state.fleet().commit, gaps(cloud)) == (commit, 1)


def test_a_branch_that_goes_back_to_an_announced_commit_unannounced_is_a_gap() -> None:
    cloud = ready("one", "two")
    first = cloud.repository.head("main")
    cloud.clock.advance(100)
    push(cloud, files("announced"))
    cloud.run()
    cloud.clock.advance(100)
    cloud.repository.reset(first)
    tick(cloud)
    assert (cloud.state.fleet().commit, gaps(cloud)) == (first, 1)


def test_a_webhook_of_an_earlier_push_that_is_delivered_now_announces_no_later_one() -> None:
    cloud = ready("one", "two")
    first = drop(cloud, "first")
    earlier = pushed(cloud, first)
    tick(cloud)
    push(cloud, files("announced"))
    cloud.run()
    cloud.clock.advance(timedelta(days=1).total_seconds())
    accept(earlier, cloud.ports)
    cloud.run()
    cloud.repository.reset(first)
    tick(cloud)
    assert (cloud.state.fleet().commit, gaps(cloud)) == (first, 2)


def _fails(_: object) -> object:
    raise Unavailable("no answer")
