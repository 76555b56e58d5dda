"""Proposals and crashes: whatever call is the last one, one pull request says what differs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localcloud.memory.crashes import Counter, Crash, Tripwire
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.outbox import request_whole_sweep
from shared.app.proposals.proposals import handle
from shared.cluster.queues.messages import ProposeRequest
from shared.ports import Ports
from tests.support.crash_points import Interrupted, points_of_one_run
from tests.support.drift_proposals import (
    BRANCH,
    PROPOSE,
    bring_up_to_date,
    changed_lines,
    drifting,
    proposal,
    pull_requests,
)
from tests.support.one_cluster import ONE, ready
from tests.support.replaced_ports import around
from tests.support.sample import sample
from tests.support.sweeps import sweep, tag_by_hand

pytestmark = pytest.mark.lives

PORTS = ("state", "plans", "git_host", "azure")


def tripwired(ports: Ports, counter: Counter) -> Ports:
    wires: dict[str, Any] = {name: Tripwire(getattr(ports, name), counter) for name in PORTS}
    return replace(ports, **wires)


def before_opening() -> MemoryCloud:
    """Return a cloud whose drift is known, and no pull request was opened."""
    cloud = ready("  tags: {cost: a}\n" + PROPOSE)
    tag_by_hand(cloud, ONE, cost="b")
    without_proposals(cloud)
    return cloud


def before_update() -> MemoryCloud:
    cloud = drifting()
    tag_by_hand(cloud, ONE, cost="c")
    without_proposals(cloud)
    return cloud


def before_the_end() -> MemoryCloud:
    cloud = drifting()
    tag_by_hand(cloud, ONE, cost="a")
    without_proposals(cloud)
    return cloud


def without_proposals(cloud: MemoryCloud) -> None:
    """Let a sweep run of which no message about proposals arrives."""
    send = cloud.ports.plans.send

    def others(*messages: Any) -> None:
        send(*(message for message in messages if not message.id.startswith("propose:")))

    around(cloud, "plans", send=others)
    sweep(cloud)
    around(cloud, "plans", send=send)


def is_open(cloud: MemoryCloud) -> None:
    (pull,) = pull_requests(cloud, state="all")
    assert pull.state == "open"
    assert changed_lines(cloud) == ["-tags: {cost: a}", "+tags: {cost: b}"]
    assert proposal(cloud).number == pull.number


def is_updated(cloud: MemoryCloud) -> None:
    (pull,) = pull_requests(cloud, state="all")
    assert (pull.state, pull.number) == ("open", 1)
    assert changed_lines(cloud) == ["-tags: {cost: a}", "+tags: {cost: c}"]
    assert '`"c"`' in pull.body


def is_over(cloud: MemoryCloud) -> None:
    (pull,) = pull_requests(cloud, state="all")
    assert (pull.state, cloud.ports.git_host.tip(BRANCH)) == ("closed", None)
    assert cloud.state.proposals() == []


CASES = {
    "opens": (before_opening, is_open),
    "updates": (before_update, is_updated),
    "ends": (before_the_end, is_over),
}


@pytest.mark.parametrize("case", CASES)
def test_a_crash_at_any_call_loses_nothing_and_does_nothing_twice(case: str) -> None:
    before, after = CASES[case]
    counted = Counter()
    cloud = before()
    handle(ProposeRequest(), tripwired(cloud.ports, counted))
    after(cloud)
    assert counted.calls > 5
    for point in sample(f"proposals {case}", points_of_one_run(counted.calls), 8):
        cloud = before()
        with pytest.raises(Crash):
            handle(ProposeRequest(), tripwired(cloud.ports, Counter(point)))
        bring_up_to_date(cloud)
        after(cloud)
        assert len(cloud.repository.pulls.comments(1)) == (1 if case == "ends" else 0)


def test_a_crash_of_the_sweep_before_it_asks_for_proposals_delays_them_to_the_next_sweep() -> None:
    cloud = before_opening()
    assert pull_requests(cloud) == []
    sweep(cloud)
    is_open(cloud)


@pytest.mark.parametrize("case", CASES)
def test_two_at_once_open_update_or_close_one(case: str) -> None:
    before, after = CASES[case]
    counted = Counter()
    cloud = before()
    handle(ProposeRequest(), tripwired(cloud.ports, counted))
    for call in sample(f"two proposals {case}", range(counted.calls), 8):
        cloud = before()
        other = Interrupted(call, lambda cloud=cloud: bring_up_to_date(cloud))  # type: ignore[misc]
        handle(ProposeRequest(), tripwired(cloud.ports, other))
        request_whole_sweep(cloud.ports)
        cloud.run()
        after(cloud)
