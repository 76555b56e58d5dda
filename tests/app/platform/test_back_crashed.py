"""A crash before and after every call of an abort that moves pins back."""

from __future__ import annotations

import pytest

from localcloud.memory.crashes import Counter
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.rollout import act_on_rollout
from shared.cluster.record_parts import Phase
from shared.rollouts.rollout_acts import ActKind
from tests.support.crash_points import run_with_crashes, wire
from tests.support.pinned_fleets import NAMES, PORTS, at_once, files, pulled
from tests.support.pipeline_runs import phases, push, record_of, status
from tests.support.staged_fleets import NAMESPACE

APPROVED = b"""\
  rollout:
    stages:
      - {name: development, select: {environments: [development]}}
      - {name: production, select: {environments: [production]}, approval: true}
"""


def approved(platform: dict[str, bytes] | None = None) -> dict[str, bytes]:
    found = files() | (platform or {})
    return found | {"fleet.yaml": found["fleet.yaml"] + APPROVED}


def whole_run(counter: Counter) -> None:
    """Move the pin of development, and have it go back; the host dies once."""
    cloud = MemoryCloud(throttle=False)
    first = push(cloud, approved())
    cloud.run()
    commit = push(cloud, approved({"platform/monitoring.yaml": NAMESPACE}))
    cloud.run(seconds=1200, until=lambda: False)
    assert [pulled(cloud, name) for name in NAMES] == [commit, first]
    wire(cloud, counter, *PORTS)
    for _ in range(2):  # who got no answer asks again
        at_once(lambda: act_on_rollout(commit, ActKind.BACK, "", "jo", cloud.ports))
        cloud.run(seconds=1800, until=lambda: False)
    assert [pulled(cloud, name) for name in NAMES] == [first, first]
    assert phases(cloud) == dict.fromkeys(NAMES, Phase.READY)
    assert status(cloud, commit)[1].endswith(f"; 1 pin goes back from {commit[:8]}")
    record = record_of(cloud, "dev")
    assert record.generation == 3
    plan = cloud.state.plan(commit)
    assert plan is not None
    assert {item.cluster: item.generation for item in plan.plan.items} == {"dev": 4, "prod": 2}


@pytest.mark.lives
def test_a_crash_at_any_call_moves_each_pin_back_once() -> None:
    run_with_crashes(whole_run, "shared/app", least=20, most=6)
