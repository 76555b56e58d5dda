"""Crashes, lost messages and storms of facts: none is lost, and few messages are sent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import Counter, Crash, MemoryCloud, tripwired
from shared.jobs.messages import PlanRequest
from shared.jobs.record import Phase
from shared.notices.kinds import Kind
from shared.notices.notice import Notice
from shared.pipeline.notifier.notifier import handle
from shared.pipeline.recovery.missed_work import wake_notifier
from tests.support import fleet_files
from tests.support.notices import notifying, storm
from tests.support.pipeline_runs import push

NOTIFY = PlanRequest(kind="notify")
OPS = "{name: ops, type: slack, address: OPS}"


def fleet(*names: str) -> dict[str, bytes]:
    return notifying(fleet_files.fleet(*names), OPS)


def _known_failure(cloud: MemoryCloud) -> None:
    push(cloud, fleet("one"))
    cloud.run()
    record = cloud.state.cluster("one")
    assert record is not None
    lost = replace(record, phase=Phase.FAILED)
    cloud.state.save(lost)
    cloud.state.add_notice(
        Notice("failed:one:x", Kind.FAILED, "cluster:one", "one", cloud.clock(), location="eastus")
    )


def _calls(cloud: MemoryCloud) -> int:
    counter = Counter()
    handle(NOTIFY, tripwired(cloud.ports, counter))
    cloud.clock.advance(15)
    handle(NOTIFY, tripwired(cloud.ports, counter))
    return counter.calls


def _count() -> int:
    cloud = MemoryCloud()
    _known_failure(cloud)
    return _calls(cloud)


@pytest.mark.parametrize("point", range(2 * _count()))
def test_a_crash_at_any_call_loses_no_fact_and_repeats_at_most_the_last_message(point: int) -> None:
    cloud = MemoryCloud()
    _known_failure(cloud)
    counter = Counter(point)
    for _ in range(4):
        try:
            handle(NOTIFY, tripwired(cloud.ports, counter))
        except Crash:
            continue
        cloud.clock.advance(15)
    ids = [message.id for message in cloud.channels.delivered["ops"]]
    assert len(set(ids)) == 1
    assert len(ids) <= 2
    assert cloud.state.notices(10) == []


def test_a_storm_of_facts_is_a_bounded_number_of_messages_and_none_is_missing() -> None:
    cloud = MemoryCloud()
    push(cloud, fleet("one"))
    cloud.run()
    for notice in storm(500, cloud.clock()):
        cloud.state.add_notice(notice)
    wake_notifier(cloud.ports)
    cloud.run(110)
    delivered = cloud.channels.delivered["ops"]
    named = [fact.subject for message in delivered for group in message.groups for fact in group.facts]
    assert len(delivered) <= 3
    assert len(named) == len(set(named)) == 500
    text = "\n".join(message.text for message in delivered)
    assert [name for name in named if f"{name} " not in text] == []
