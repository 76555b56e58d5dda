"""A crash before and after every call to a port: the fleet converges, and nothing happens twice.

Each commit tries a sample of the points; ``make deep`` tries all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localcloud.memory.crashes import Counter
from localcloud.memory.memory_cloud import MemoryCloud, tripwired
from shared.app.access.lease_guard import LeasedRecord
from shared.cluster.recipes import Step
from shared.cluster.record_parts import Phase
from tests.support import fleet_files, team_systems
from tests.support.bootstrap_secrets import AGE, VALUE, value_of, with_value
from tests.support.crash_points import Recorder
from tests.support.hand_overs import ONE_BY_ONE
from tests.support.identity_access import ROLE, assignments
from tests.support.one_cluster import WINDOW
from tests.support.pipeline_runs import accepted, phases, push, status
from tests.support.policies import POLICIES, policies
from tests.support.sample import DEEP, sample

pytestmark = pytest.mark.lives

PARTS = 10 if DEEP else 2


def hydrated(*names: str, count: int = 1) -> dict[str, bytes]:
    """Return a fleet whose first cluster has all that a step of its own writes."""
    files = team_systems.fleet(*names, systems={"shop": team_systems.system("shop", "one")})
    files["clusters/one/cluster.yaml"] = fleet_files.cluster(
        "one", count=count, extra=WINDOW + AGE + ROLE + POLICIES
    )
    if "two" in names:
        files["clusters/two/cluster.yaml"] = fleet_files.cluster("two", extra=ROLE)
    return files


def whole_run(counter: Counter) -> None:
    """Create two clusters, change one and remove the other, while the host dies at some points."""
    cloud = with_value(MemoryCloud(config=ONE_BY_ONE))
    push(cloud, hydrated("one", "two"))
    cloud.with_ports(lambda ports: tripwired(ports, counter))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    commit = cloud.repository.push(hydrated("one", count=2))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert status(cloud, commit)[0] == "success"
    writes = accepted(cloud)
    assert writes["create", "one"] == writes["create", "two"] == writes["delete", "two"] == 1
    assert writes["update-pool", "system"] == 1
    assert cloud.dead_letters == []
    assert "Kustomization shop/shop" in team_systems.objects(cloud, "one", "shop")
    assert value_of(cloud) == VALUE
    assert len(assignments(cloud)) == 1
    assert len(policies(cloud)) == 2


@cache
def recorded() -> tuple[Recorder, frozenset[Step]]:
    """Return the calls of a run without a crash, and the steps of jobs that make some."""
    steps: set[Step] = set()

    def note(frames: Sequence[FrameType]) -> None:
        values = (value for frame in frames for value in frame.f_locals.values())
        steps.update(value.record.job.step.name for value in values if isinstance(value, LeasedRecord))

    recorder = Recorder(note)
    whole_run(recorder)
    return recorder, frozenset(steps)


def test_every_step_of_a_job_makes_calls_to_crash_at() -> None:
    recorder, steps = recorded()
    assert recorder.calls > 500
    # tests/app/attached/test_release.py has the one, tests/app/sweep/test_sleep_crashes.py the others.
    elsewhere = {Step.RELEASE, Step.SLEEP, Step.WAKE}
    assert set(Step) - steps == elsewhere


@pytest.mark.parametrize("part", range(PARTS))
def test_a_crash_at_any_point_loses_and_repeats_nothing(part: int) -> None:
    recorder, _ = recorded()
    for point in sample("a life", recorder.points(range(recorder.calls)), 20)[part::PARTS]:
        whole_run(Counter(point))


@settings(max_examples=100 if DEEP else 8)
@given(first=st.integers(0, 9999), later=st.one_of(st.integers(1, 30), st.integers(1, 9999)))
def test_two_crashes_lose_and_repeat_nothing(first: int, later: int) -> None:
    every = 2 * recorded()[0].calls
    whole_run(Counter(first % every, first % every + later % every))
