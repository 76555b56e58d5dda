"""Azure's token buckets: never more calls than the documented limit, whatever the workers' clocks."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.azure.rate_limits import (
    AKS_OTHER,
    ARM_DELETE,
    ARM_READ,
    ARM_WRITE,
    SLACK,
    Bucket,
    Limit,
    correct,
    reserve,
    take,
)
from shared.ports.process import TokenCache
from tests.support.cluster_records import NOW, later

SKEW = SLACK - 1
DOCUMENTED = [ARM_READ, ARM_WRITE, ARM_DELETE, AKS_OTHER]
COMMON, SET_ASIDE = [limit.common for limit in DOCUMENTED], [limit.set_aside for limit in DOCUMENTED]
LIMITS = st.sampled_from([*DOCUMENTED, *COMMON, Limit("small", "small limit", 20, 0.5)])
ASKS = st.lists(
    st.tuples(st.floats(0, 8), st.floats(0, SKEW), st.floats(0, SKEW), st.integers(1, 60)),
    min_size=1,
    max_size=30,
)
"""Pauses in seconds, how far the clocks at reservation and call are ahead, and how many calls at once."""


def busiest(moments: list[datetime], limit: Limit) -> float:
    """Return by how many calls the busiest window exceeds the limit; at most 0 is correct."""
    ordered = sorted(moments)
    over = -1e9
    lowest = -1e9  # of r * t_i - i over the earlier calls
    for number, moment in enumerate(ordered):
        at = (moment - NOW).total_seconds() * limit.per_second
        lowest = max(lowest, at - number)
        over = max(over, number + 1 - at + lowest - limit.burst)
    return over


@given(limit=LIMITS, asks=ASKS)
def test_no_window_exceeds_the_limit_with_clocks_5_s_apart(
    limit: Limit, asks: list[tuple[float, float, float, int]]
) -> None:
    assert busiest(calls_of(limit, asks), limit) <= 1e-3


@given(limit=st.sampled_from(SET_ASIDE), asks=ASKS)
def test_no_window_exceeds_what_is_set_aside_for_the_few_clusters_of_small_changes(
    limit: Limit, asks: list[tuple[float, float, float, int]]
) -> None:
    few = [(pause, asker, user, min(count, 8)) for pause, asker, user, count in asks]
    assert busiest(calls_of(limit, few), limit) <= 1e-3


def calls_of(limit: Limit, asks: list[tuple[float, float, float, int]]) -> list[datetime]:
    """Return when some workers send the calls that they ask for."""
    bucket, true_time, calls = Bucket(NOW), NOW, list[datetime]()
    for pause, asker, user, count in asks:
        true_time += timedelta(seconds=pause)
        for _ in range(count):
            now = true_time + timedelta(seconds=asker)
            bucket, reservation = reserve(bucket, limit, now=now)
            calls.append(max(true_time, reservation - timedelta(seconds=user)))
    return calls


@given(limit=LIMITS, counts=st.lists(st.integers(1, 200), min_size=1, max_size=5))
def test_future_reservations_are_distinct_and_in_order(limit: Limit, counts: list[int]) -> None:
    bucket, reservations = Bucket(NOW), list[datetime]()
    for number, count in enumerate(counts):
        now = later(number)
        for _ in range(count):
            bucket, reservation = reserve(bucket, limit, now=now)
            assert reservation >= now
            if reservation > now:
                reservations.append(reservation)
    assert sorted(set(reservations)) == reservations


@given(limit=LIMITS, asks=st.lists(st.tuples(st.floats(0, 20), st.integers(1, 300)), max_size=20))
def test_an_available_token_is_never_waited_for(limit: Limit, asks: list[tuple[float, int]]) -> None:
    bucket, now, tokens = Bucket(NOW), NOW, float(limit.usable)
    rounding = 1e-6 * sum(count for _, count in asks)  # an interval has whole microseconds
    for pause, count in asks:
        now += timedelta(seconds=pause)
        tokens = min(limit.usable, tokens + pause * limit.per_second)
        for _ in range(count):
            bucket, reservation = reserve(bucket, limit, now=now)
            tokens -= 1
            waits = max(0.0, -tokens / limit.per_second)
            assert (reservation - now).total_seconds() == pytest.approx(waits, abs=rounding)


@given(limit=LIMITS, most=st.integers(1, 500))
def test_a_batch_takes_no_more_tokens_than_are_available(limit: Limit, most: int) -> None:
    bucket, taken = take(Bucket(NOW), limit, now=NOW, most=most)
    assert taken == min(most, limit.usable)
    if taken == limit.usable:
        assert reserve(bucket, limit, now=NOW)[1] > NOW


@given(limit=LIMITS, taken=st.integers(0, 300), seconds=st.floats(0, 600))
def test_a_refusal_empties_the_bucket_until_its_retry_after(limit: Limit, taken: int, seconds: float) -> None:
    bucket, _ = take(Bucket(NOW), limit, now=NOW, most=taken)
    bucket = correct(bucket, limit, now=NOW, seconds=seconds)
    bucket, first = reserve(bucket, limit, now=NOW)
    assert first >= later(seconds) - timedelta(milliseconds=1)
    _, second = reserve(bucket, limit, now=NOW)
    assert second - first >= limit.interval - timedelta(milliseconds=1)


@given(limit=LIMITS, seconds=st.floats(3600, 1e300))
def test_a_longer_refusal_counts_as_one_hour(limit: Limit, seconds: float) -> None:
    _, reservation = reserve(correct(Bucket(NOW), limit, now=NOW, seconds=seconds), limit, now=NOW)
    assert reservation - NOW <= timedelta(hours=1)


def test_the_limits_are_the_documented_ones_less_the_slack() -> None:
    table = {limit.name: (limit.burst, limit.per_second, limit.usable) for limit in (ARM_READ, ARM_WRITE)}
    assert table == {"arm-read": (250, 25, 100), "arm-write": (200, 10, 140)}
    assert (AKS_OTHER.burst, AKS_OTHER.per_second, AKS_OTHER.usable) == (60, 1, 54)


@pytest.mark.parametrize("limit", DOCUMENTED, ids=lambda limit: limit.name)
def test_what_is_set_aside_and_what_is_not_are_the_limit_together(limit: Limit) -> None:
    assert limit.common.burst + limit.set_aside.burst == limit.burst
    assert limit.common.per_second + limit.set_aside.per_second == pytest.approx(limit.per_second)
    assert limit.common.usable + limit.set_aside.usable <= limit.usable
    assert limit.set_aside.usable >= 2 * 5, "five clusters, twice"
    assert limit.common.per_second >= 0.98 * limit.per_second


def test_cached_tokens_are_few_and_expire() -> None:
    token_cache = TokenCache()
    assert not token_cache.take("k", NOW)
    token_cache.put("k", 2, later(5))
    assert [token_cache.take("k", later(1)) for _ in range(3)] == [True, True, False]
    token_cache.put("k", 2, later(5))
    assert not token_cache.take("k", later(5))
    token_cache.put("k", 2, later(5))
    token_cache.drop("k")
    assert not token_cache.take("k", NOW)
