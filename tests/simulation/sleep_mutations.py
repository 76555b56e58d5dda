"""Mutations of sleep: nobody stops a cluster, or one sleeps on for longer than it should."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from shared.app.recovery import missed_work
from shared.app.sweep import corrections
from shared.app.worker.steps import sleep
from shared.cluster import sleep as sleep_rules
from shared.cluster.outcomes import Wait
from shared.cluster.record import ClusterRecord
from shared.cluster.sleep import SleepDecision
from shared.frozen import replace
from simulation.actors.kinds import SLEEPERS
from simulation.actors.sleepers import LORD_HOWE
from tests.simulation.mutations import mutation


def no_cluster_is_put_to_sleep(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(missed_work, "accept_sleep", lambda *_: None)


def a_sleep_lasts_twenty_minutes_longer(patch: pytest.MonkeyPatch) -> None:
    decide = ClusterRecord.sleep_at

    def late(record: ClusterRecord, now: datetime) -> SleepDecision | None:
        found, before = decide(record, now), decide(record, now - timedelta(minutes=20))
        asleep = found is not None and before is not None and found.awake and not before.awake
        return replace(before, until=now + timedelta(minutes=20)) if before is not None and asleep else found

    patch.setattr(ClusterRecord, "sleep_at", late)


def a_cluster_that_slept_is_not_started(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sleep, "start_again", lambda *_: Wait(600, "asleep", open_ended=True))


def pools_that_slept_are_not_started(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sleep, "start_pool", lambda *_: Wait(600, "asleep", open_ended=True))


def a_pool_that_is_stopped_by_hand_is_only_reported(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(corrections, "with_pools_started", lambda decided, _: decided)


def a_stop_by_hand_is_left_to_a_person(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClusterRecord, "may_start", property(lambda _: False))


def a_schedule_keeps_its_offset_when_the_clocks_change(patch: pytest.MonkeyPatch) -> None:
    def fixed(moment: Any, cron: str, zone: str, at: datetime) -> datetime:
        found: datetime = moment(cron, {LORD_HOWE: "Etc/GMT-11"}.get(zone, zone), at)
        return found

    for name in ("last_moment", "next_moment"):
        patch.setattr(sleep_rules, name, partial(fixed, getattr(sleep_rules, name)))


SLEEP_MUTATIONS = (
    mutation(a_schedule_keeps_its_offset_when_the_clocks_change, SLEEPERS, "asleep"),
    mutation(no_cluster_is_put_to_sleep, SLEEPERS, "sleepless"),
    mutation(a_sleep_lasts_twenty_minutes_longer, SLEEPERS, "asleep"),
    mutation(a_cluster_that_slept_is_not_started, SLEEPERS, "asleep"),
    mutation(pools_that_slept_are_not_started, SLEEPERS, "asleep"),
    mutation(a_pool_that_is_stopped_by_hand_is_only_reported, SLEEPERS, "asleep"),
    mutation(a_stop_by_hand_is_left_to_a_person, SLEEPERS, "asleep"),
)
