"""The events of a cluster are stored with its record, and move to their table when its job ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bench.counting import Counted
from localcloud.azure.world.arm_resources import Timings
from localcloud.memory.crashes import Crash
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.access.lease_guard import LeasedRecord
from shared.app.records import ATTEMPTS, MOST, Transition, change, save
from shared.cluster.failures.errors import Stale
from shared.cluster.history import Event
from shared.cluster.job import Lease
from shared.cluster.recipes import STEPS, Recipe
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.cluster.transitions.acceptance import accept_delete
from shared.ports.azure import PutCluster
from tests.support import fleet_files
from tests.support.cluster_records import NOW, event, record
from tests.support.pipeline_runs import accepted, phases, push, step_until
from tests.support.replaced_ports import around, on_azure

AFTER_THE_GROUP = len(STEPS[Recipe.PROVISION]) - 2
ONCE = ["Accepted", "StepDone", "Waiting", *["StepDone"] * AFTER_THE_GROUP, "Ready"]


def reasons(cloud: MemoryCloud) -> list[str]:
    """Return the reasons of the events of the cluster one, oldest first."""
    return [stored_event.reason for stored_event in reversed(cloud.state.events("one", 100))]


def test_a_new_cluster_writes_its_events_once_by_themselves() -> None:
    cloud = MemoryCloud()
    state: Any = Counted(cloud.state)
    cloud.with_ports(lambda ports: replace(ports, state=state))
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert reasons(cloud) == ONCE
    assert state.calls["append"] == 1
    assert cloud.state.clusters()[0].recent_events == ()


def test_the_events_of_a_job_are_shown_before_it_ends() -> None:
    cloud = MemoryCloud()
    cloud.azure.engine.timings = Timings(create_cluster=600)
    push(cloud, fleet_files.fleet("one"))
    step_until(cloud, lambda: accepted(cloud)["create", "one"] == 1)
    assert reasons(cloud) == ONCE[:3]


def test_a_crash_after_events_have_moved_shows_each_once() -> None:
    cloud, moved = MemoryCloud(), list[Sequence[Event]]()
    append = cloud.ports.state.append

    def dies_once(events: Sequence[Event]) -> None:
        append(events)
        moved.append(events)
        if len(moved) == 1:
            raise Crash

    around(cloud, "state", append=dies_once)
    push(cloud, fleet_files.fleet("one"))
    step_until(cloud, lambda: bool(moved))
    assert reasons(cloud) == ONCE
    cloud.run()
    assert reasons(cloud) == ONCE


def test_what_a_superseded_step_did_is_an_event_though_its_outcome_is_discarded() -> None:
    cloud = MemoryCloud()

    def removed() -> None:
        (found,) = cloud.state.clusters()
        cloud.state.save(accept_delete(found, commit="c" * 40, now=cloud.clock()))

    azure = cloud.ports.azure

    def removed_after(write: PutCluster) -> object:
        result = azure.call(write)
        removed()
        return result

    on_azure(cloud, PutCluster, removed_after)
    push(cloud, fleet_files.fleet("one"))
    step_until(cloud, lambda: any(found.deleting for found in cloud.state.clusters()))
    assert [reason for reason in reasons(cloud) if reason != "Accepted"] == ["StepDone", "Waiting"]


def test_many_events_move_without_those_that_are_not_saved_yet() -> None:
    cloud = MemoryCloud()
    full = replace(record(), recent_events=tuple(map(event, range(MOST))), etag="")
    after = save(Transition(full, [event(MOST)]), cloud.ports)
    assert after.recent_events == (event(MOST),)
    assert len(cloud.state.events("one", 100)) == MOST + 1
    assert save(Transition(after, [event(MOST + 1)]), cloud.ports).recent_events[1:] == (event(MOST + 1),)


def test_an_event_at_rest_is_nowhere_before_its_record_is_saved() -> None:
    cloud = MemoryCloud()
    at_rest = replace(record(active=False), recent_events=(event(1),))
    with pytest.raises(Stale):  # it was never saved
        save(Transition(at_rest, [event(2)]), cloud.ports)
    assert list(cloud.state.events("one", 5)) == [event(1)]


def test_events_of_a_save_that_fails_are_saved_by_themselves() -> None:
    cloud = MemoryCloud()
    saved = cloud.state.save(replace(record(lease=Lease("worker", NOW, NOW)), etag=""))
    leased = LeasedRecord(saved, cloud.ports)
    cloud.state.save(saved)
    with pytest.raises(Stale):
        leased.save(saved, [event(1)])
    assert list(cloud.state.events("one", 5)) == [event(1)]


def test_a_record_that_others_write_all_the_time_is_given_up_and_its_event_is_nowhere() -> None:
    cloud, tries = MemoryCloud(), list[ClusterRecord]()
    cloud.state.save(replace(record(), etag=""))

    def raced(after: ClusterRecord) -> ClusterRecord:
        tries.append(after)
        raise Stale("another writer changed the record")

    around(cloud, "state", save=raced)
    with pytest.raises(Stale):
        change("one", lambda found: Transition(found or record(), [event(1)]), cloud.ports)
    assert len(tries) == ATTEMPTS
    assert not cloud.state.events("one", 5)
