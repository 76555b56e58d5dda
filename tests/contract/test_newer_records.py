"""A record of a newer form is left as it is, in Azurite through the adapter of production, and is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.tables.memory_state import MemoryState
from shared.app.recovery.missed_work import plan_missed_head, resend_overdue
from shared.cluster.failures.errors import Unreadable
from shared.cluster.record_parts import Phase
from shared.ports import FleetRecord, State
from shared.ports.state.app import ACTS
from shared.ports.state.clusters import CLUSTERS, FLEETS
from shared.ports.state.plans import PLANS
from tests.support import fleet_files
from tests.support.cluster_records import fresh, plan_record
from tests.support.damaged_records import Entity, body
from tests.support.pipeline_runs import push
from tests.support.sample import sample
from tests.support.unreadable_records import Stored

COMMIT = "c" * 40
NEWER = body(lambda stored: stored.update(schema_version=2, urgent=True))
"""Puts the form of a newer version, with a field that this one does not know."""


READS: dict[str, tuple[str, str, str, Callable[[State], object], Callable[[State], object]]] = {
    "cluster": (
        CLUSTERS,
        "{}",
        "one",
        lambda state: state.save(fresh("one")),
        lambda state: state.cluster("one"),
    ),
    "fleet": (FLEETS, "fleet", "{}", lambda state: state.save_fleet(FleetRecord(COMMIT)), State.fleet),
    "plan": (
        PLANS,
        "{}",
        COMMIT,
        lambda state: state.save_plan(plan_record()),
        lambda state: state.plan(COMMIT),
    ),
    "sweep": (FLEETS, "fleet", "{} sweep", lambda state: state.save_sweep(state.sweep()), State.sweep),
    "notifier": (
        *(FLEETS, "notifier", "{}"),
        lambda state: state.save_notifier_record(state.notifier_record()),
        State.notifier_record,
    ),
    "fingerprints": (
        *(FLEETS, "marks", "{}"),
        lambda state: state.save_fingerprints({"one": "f"}),
        State.fingerprints,
    ),
    "settings": (
        *(ACTS, "settings", "{}"),
        lambda state: state.save_settings_seen({"A": "b"}),
        State.settings_seen,
    ),
}


@pytest.mark.lives
@pytest.mark.parametrize("kind", READS)
def test_a_record_of_a_newer_form_is_neither_read_nor_taken_for_none(stored: Stored, kind: str) -> None:
    state, fleet, tables = stored.state, stored.fleet, stored.tables
    table, partition, key, save, read = READS[kind]
    save(state)
    repair = tables.edit(table, partition.format(fleet), key.format(fleet), NEWER)
    with pytest.raises(Unreadable, match="has the form 2, and this app knows 1: a newer app handles it"):
        read(state)
    assert [record.kind for record in state.unreadable()] == [kind]
    repair()
    read(state)
    assert list(state.unreadable()) == []


@pytest.mark.lives
@pytest.mark.parametrize("name", ["summary", "details", "continuation"])
def test_what_repeats_a_record_in_a_newer_form_is_read_from_the_record(stored: Stored, name: str) -> None:
    state, fleet, tables = stored.state, stored.fleet, stored.tables
    state.save(fresh("one"))
    before = state.summaries(details=True), state.continuations()

    def newer(entity: Entity) -> Entity:
        return entity | {name: json.dumps(json.loads(entity[name]) | {"schema_version": 2})}

    tables.edit(CLUSTERS, fleet, "one", newer)
    assert (state.summaries(details=True), state.continuations()) == before


@pytest.mark.lives
@pytest.mark.parametrize("kind", sample("newer", ["cluster", "fleet", "plan", "sweep", "notifier"], 2))
def test_an_older_instance_at_work_leaves_a_record_of_a_newer_form_as_it_is(
    stored: Stored, kind: str
) -> None:
    state, fleet, tables = stored.state, stored.fleet, stored.tables
    cloud = MemoryCloud(state=cast("MemoryState", state))
    state.save_sweep(state.sweep())
    first = push(cloud, fleet_files.fleet("one", "two"))
    cloud.run()
    table, partition, key = READS[kind][:3]
    key = first if kind == "plan" else key
    repair = tables.edit(table, partition.format(fleet), key.format(fleet), NEWER)
    before = tables.entity(table, partition.format(fleet), key.format(fleet))
    larger = {f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, count=4) for name in ("one", "two")}
    push(cloud, fleet_files.fleet("one", "two") | larger)
    for _ in range(200):
        if not cloud.step():
            cloud.clock.advance(20)
    for timer in (plan_missed_head, resend_overdue):
        timer_ended(cloud, timer)
    assert tables.entity(table, partition.format(fleet), key.format(fleet)) == before
    assert cloud.dead_letters == []
    repair()
    cloud.clock.advance(600)
    plan_missed_head(cloud.ports)
    cloud.run()
    assert {record.name: record.phase for record in state.clusters()} == dict.fromkeys(
        ("one", "two"), Phase.READY
    )
    assert {record.observed_generation for record in state.clusters()} == {2}


def timer_ended(cloud: MemoryCloud, timer: Callable[[Any], object]) -> None:
    """Run a timer, which may say that it cannot read something."""
    try:
        timer(cloud.ports)
    except Unreadable:
        return
