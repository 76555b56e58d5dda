"""Calls to a port, several at a time."""

from __future__ import annotations

import threading

import pytest

from shared.cluster.failures.errors import Stale
from shared.ports.process import THREADS, in_threads


def test_a_few_calls_run_at_a_time_and_their_results_are_in_order() -> None:
    all_there = threading.Barrier(THREADS, timeout=10)

    def work(value: int) -> int:
        all_there.wait()
        return 2 * value

    assert in_threads(work, range(2 * THREADS)) == list(range(0, 4 * THREADS, 2))


def test_an_error_ends_it_and_nothing_goes_on_behind_it() -> None:
    done, release = [], threading.Event()

    def work(value: int) -> None:
        if value == 0:
            release.set()
            raise Stale("another planner has started")
        assert release.wait(10)
        done.append(value)

    with pytest.raises(Stale):
        in_threads(work, range(1000))
    ended = len(done)
    assert ended < 999
    assert threading.active_count() == 1 or len(done) == ended
