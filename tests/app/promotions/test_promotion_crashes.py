"""Promotions and crashes: whatever call is the last one, one pull request has what is proven."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any

import pytest

from localcloud.memory.crashes import Counter, Crash, Tripwire
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.proposals.promote import handle
from shared.cluster.queues.messages import PromoteRequest
from tests.support.channel_proposals import BRANCH as BRANCH_OF_CHANNEL
from tests.support.channel_proposals import in_git, proposed
from tests.support.channel_proposals import stored as in_channel
from tests.support.channel_proposals import tree as with_channels
from tests.support.crash_points import Interrupted, points_of_one_run
from tests.support.promotions import BRANCH, RULE, change, files, production, pulls, stored
from tests.support.replaced_ports import around
from tests.support.sample import sample

pytestmark = pytest.mark.lives

PORTS = ("state", "plans", "git_host")
SOAKED = 7200
BASE = files(extra=RULE)
PROVEN = files(test="1.36", extra=RULE)
TREES: Mapping[str, Sequence[dict[str, bytes]]] = {
    "opens": (BASE, PROVEN),
    "updates": (BASE, PROVEN, files(test="1.37", extra=RULE)),
    "ends": (BASE, PROVEN, files(test="1.36", prod="1.36", extra=RULE)),
    "follows a channel": (with_channels("1.35.7"),),
    "ends a channel's": (with_channels("1.35.7"), with_channels("1.36.3")),
}


def without_promotions(cloud: MemoryCloud, tree: dict[str, bytes]) -> None:
    """Push files of which no message about promotions arrives, and let the soak pass."""
    send = cloud.ports.plans.send

    def others(*messages: Any) -> None:
        send(*(message for message in messages if not message.id.startswith("promote:")))

    around(cloud, "plans", send=others)
    change(cloud, tree)
    around(cloud, "plans", send=send)
    cloud.clock.advance(SOAKED)


@cache
def lived(case: str) -> Sequence[tuple[datetime, Mapping[str, Any]]]:
    """Return what the tables hold after each commit of a case, and when."""
    cloud, found = MemoryCloud(), []
    for number, tree in enumerate(TREES[case]):
        without_promotions(cloud, tree)
        found.append((cloud.clock(), cloud.state.backup()))
        if number < len(TREES[case]) - 1:
            handle(PromoteRequest(), cloud.ports)
    return found


def prepared(case: str) -> MemoryCloud:
    """Return the fleet of a case in which the message about its last commit is still to come."""
    cloud, last = MemoryCloud(), len(TREES[case]) - 1
    for number, (tree, (at, tables)) in enumerate(zip(TREES[case], lived(case), strict=True)):
        cloud.repository.push(tree)
        cloud.clock.advance((at - cloud.clock()).total_seconds())
        cloud.state.restore(tables)
        if number < last:
            handle(PromoteRequest(), cloud.ports)
    return cloud


def handle_with(cloud: MemoryCloud, counter: Counter) -> None:
    wires: dict[str, Any] = {name: Tripwire(getattr(cloud.ports, name), counter) for name in PORTS}
    handle(PromoteRequest(), replace(cloud.ports, **wires))


def is_open(cloud: MemoryCloud) -> None:
    (pull,) = pulls(cloud, state="all")
    assert (pull.state, stored(cloud).number, stored(cloud).problem) == ("open", pull.number, "")
    assert "'1.36'" in production(cloud)


def is_updated(cloud: MemoryCloud) -> None:
    (pull,) = pulls(cloud, state="all")
    assert (pull.state, stored(cloud).number) == ("open", pull.number)
    assert "'1.37'" in production(cloud)
    assert "`1.37`" in pull.body


def is_over(cloud: MemoryCloud) -> None:
    (pull,) = pulls(cloud, state="all")
    assert (pull.state, pull.merged) == ("closed", False)
    assert (stored(cloud).declined, cloud.ports.git_host.tip(BRANCH)) == ((), None)


def is_proposed(cloud: MemoryCloud) -> None:
    (pull,) = proposed(cloud, "all")
    known = in_channel(cloud)
    assert (pull.state, known.number, known.problem) == ("open", pull.number, "")
    assert "'1.36.3'" in in_git(cloud, BRANCH_OF_CHANNEL)


def is_followed(cloud: MemoryCloud) -> None:
    (pull,) = proposed(cloud, "all")
    assert (pull.state, pull.merged) == ("closed", False)
    known = in_channel(cloud)
    assert (known.declined, known.problem, cloud.ports.git_host.tip(BRANCH_OF_CHANNEL)) == ((), "", None)


CHECKS: Mapping[str, Callable[[MemoryCloud], None]] = {
    "opens": is_open,
    "updates": is_updated,
    "ends": is_over,
    "follows a channel": is_proposed,
    "ends a channel's": is_followed,
}


@pytest.mark.parametrize("case", TREES)
def test_a_crash_before_or_after_any_call_leaves_one_pull_request(case: str) -> None:
    counted = Counter()
    cloud = prepared(case)
    handle_with(cloud, counted)
    CHECKS[case](cloud)
    assert counted.calls > 15
    for point in sample(f"promotions {case}", points_of_one_run(counted.calls), 8):
        cloud = prepared(case)
        with pytest.raises(Crash):
            handle_with(cloud, Counter(point))
        for _ in range(2):
            handle(PromoteRequest(), cloud.ports)
            CHECKS[case](cloud)
            assert len(cloud.repository.pulls.comments(1)) == case.startswith("ends")


@pytest.mark.parametrize("case", TREES)
def test_two_at_once_leave_one_pull_request(case: str) -> None:
    counted = Counter()
    handle_with(prepared(case), counted)
    for call in sample(f"two promotions {case}", range(counted.calls), 8):
        cloud = prepared(case)
        other = Interrupted(call, lambda cloud=cloud: handle_with(cloud, Counter()))  # type: ignore[misc]
        handle_with(cloud, other)
        cloud.run()
        CHECKS[case](cloud)
