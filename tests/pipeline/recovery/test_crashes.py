"""A crash before and after every call to a port: the fleet converges, and nothing happens twice.

The same call in the same step is tried once. ``make crashes`` tries every single call.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from types import FrameType
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localcloud.memory.memory_cloud import Counter, MemoryCloud, tripwired
from shared.jobs.messages import JobMessage
from shared.jobs.recipes import Step
from shared.jobs.record import Phase
from shared.pipeline.worker.leased_record import LeasedRecord
from tests.support import fleet_files, team_systems
from tests.support.bootstrap_secrets import AGE, VALUE, value_of, with_value
from tests.support.crash_points import Recorder
from tests.support.hand_overs import ONE_BY_ONE
from tests.support.identity_access import ROLE, assignments
from tests.support.one_cluster import WINDOW
from tests.support.pipeline_runs import accepted, phases, push, status
from tests.support.policies import POLICIES, policies

EVERY_CALL = os.environ.get("CRASHES") == "all"

Place: TypeAlias = tuple[str, tuple[tuple[str, int], ...]]
"""The place of a call: the step of the job, if one runs, and the instructions that lead to the call."""


class Places:
    """The place of each call of a run."""

    def __init__(self) -> None:
        self.cloud: MemoryCloud | None = None
        self.found: list[Place] = []
        self.recorder = Recorder(self._note)

    def _note(self, frames: Sequence[FrameType]) -> None:
        assert self.cloud is not None
        step = ""
        for frame in frames:
            for value in frame.f_locals.values():
                if isinstance(value, LeasedRecord):
                    step = value.record.job.step.name
                elif isinstance(value, JobMessage) and not step:
                    step = _step(self.cloud, value.cluster)
        self.found.append((step, tuple((frame.f_code.co_filename, frame.f_lasti) for frame in frames)))


def _step(cloud: MemoryCloud, name: str) -> str:
    record = cloud.state.cluster(name)
    return record.job.step.name if record is not None else ""


def hydrated(*names: str, count: int = 1) -> dict[str, bytes]:
    """Return a fleet whose first cluster has all that a step of its own writes."""
    files = team_systems.fleet(*names, systems={"shop": team_systems.system("shop", "one")})
    files["clusters/one/cluster.yaml"] = fleet_files.cluster(
        "one", count=count, extra=WINDOW + AGE + ROLE + POLICIES
    )
    if "two" in names:
        files["clusters/two/cluster.yaml"] = fleet_files.cluster("two", extra=ROLE)
    return files


def whole_run(counter: Counter, places: Places | None = None) -> None:
    """Create two clusters, change one and remove the other, while the host dies at some points."""
    cloud = with_value(MemoryCloud(config=ONE_BY_ONE))
    if places is not None:
        places.cloud = cloud
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
def recorded() -> Places:
    """Return the places of the calls of a run without a crash."""
    places = Places()
    whole_run(places.recorder, places)
    return places


def calls() -> list[Place]:
    """Return the place of each call of a run without a crash."""
    return recorded().found


def points() -> list[int]:
    """Return the points to crash at: before and after the first call of each place, or every call."""
    first = {place: number for number, place in reversed(list(enumerate(calls())))}
    return recorded().recorder.points(range(len(calls())) if EVERY_CALL else first.values())


def test_a_run_has_many_places_to_crash_at() -> None:
    assert len(set(calls())) > 100
    elsewhere = {Step.RELEASE}  # of an existing cluster: tests/pipeline/existing/test_crashed.py
    assert {step for step, _ in calls()} >= {"", *Step} - elsewhere


@pytest.mark.parametrize("tenth", range(10))
def test_a_crash_at_any_point_loses_and_repeats_nothing(tenth: int) -> None:
    for point in points()[tenth::10]:
        whole_run(Counter(point))


@settings(max_examples=40)
@given(first=st.integers(0, 9999), later=st.one_of(st.integers(1, 30), st.integers(1, 9999)))
def test_two_crashes_lose_and_repeat_nothing(first: int, later: int) -> None:
    every = 2 * len(calls())
    whole_run(Counter(first % every, first % every + later % every))
