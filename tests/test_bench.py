"""The measurements run, and show what they are for."""

from __future__ import annotations

from bench.rollout import CREATION, lower_bound, roll_out


def test_a_rollout_meets_no_refusal_and_is_not_faster_than_the_buckets_allow() -> None:
    alone, whole = roll_out(1, 1), roll_out(70, 3)
    assert (whole.ready, whole.refused) == (70, [])
    assert alone.seconds >= CREATION
    needed = lower_bound(alone, {name: 70.0 * number for name, number in alone.calls.items()})
    assert needed <= whole.seconds < 3 * needed
