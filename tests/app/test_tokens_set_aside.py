"""Tokens of Azure's limits are set aside for small changes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from shared.app.access.rate_limiter import RateLimited, RateLimiter
from shared.azure.rate_limits import AKS_OTHER, ARM_READ, ARM_WRITE, Bucket, Limit
from shared.cluster.failures.errors import Stale, Throttled
from shared.cluster.record import ClusterRecord
from tests.support.limited_clusters import SUBSCRIPTION, cloud_with_record, emptied, waits_of_a_step
from tests.support.replaced_ports import around


def in_small_change(record: ClusterRecord) -> ClusterRecord:
    return replace(record, job=replace(record.job, small_change=True))


@pytest.mark.parametrize("limit", [ARM_READ, ARM_WRITE, AKS_OTHER], ids=lambda limit: limit.name)
def test_a_small_change_uses_tokens_set_aside_while_a_large_one_has_reserved_all_others(limit: Limit) -> None:
    cloud, record = cloud_with_record()
    emptied(cloud, limit, 600)
    with pytest.raises(RateLimited):
        RateLimiter(record, cloud.ports).call(SUBSCRIPTION, [limit], lambda: None)
    small, sent = in_small_change(record), list[int]()
    for number in range(limit.set_aside.usable):
        RateLimiter(small, cloud.ports).call(SUBSCRIPTION, [limit], partial(sent.append, number))
    assert len(sent) == limit.set_aside.usable
    with pytest.raises(RateLimited) as wait:
        RateLimiter(small, cloud.ports).call(SUBSCRIPTION, [limit], lambda: None)
    assert wait.value.at - cloud.clock() <= 2 * limit.set_aside.interval


def test_a_small_change_leaves_what_is_set_aside_while_others_are_there() -> None:
    cloud, record = cloud_with_record()
    for _ in range(5):
        RateLimiter(in_small_change(record), cloud.ports).call(SUBSCRIPTION, [ARM_WRITE, ARM_READ], int)
    assert cloud.state.bucket(f"{SUBSCRIPTION}|{ARM_WRITE.set_aside.name}") is None
    assert cloud.state.bucket(f"{SUBSCRIPTION}|{ARM_READ.set_aside.name}") is None
    assert cloud.state.bucket(f"{SUBSCRIPTION}|{ARM_WRITE.name}") is not None


def test_a_small_change_does_not_compete_for_a_bucket_with_the_workers_of_a_large_one() -> None:
    cloud, record = cloud_with_record()
    save, tried = cloud.ports.state.save_bucket, list[str]()

    def save_bucket(key: str, bucket: Bucket) -> None:
        tried.append(key)
        if key.endswith(ARM_WRITE.name):
            raise Stale("somebody was faster")
        save(key, bucket)

    around(cloud, "state", save_bucket=save_bucket)
    RateLimiter(in_small_change(record), cloud.ports).call(SUBSCRIPTION, [ARM_WRITE], lambda: None)
    assert [key.partition("|")[2] for key in tried] == [ARM_WRITE.name, ARM_WRITE.set_aside.name]


def test_a_step_of_a_small_change_with_several_calls_on_empty_buckets_completes() -> None:
    cloud, record = cloud_with_record()
    emptied(cloud, ARM_WRITE, 600)
    record = in_small_change(record)
    for _ in range(ARM_WRITE.set_aside.usable):
        RateLimiter(record, cloud.ports).call(SUBSCRIPTION, [ARM_WRITE], lambda: None)
    assert 0 < waits_of_a_step(cloud, record, ARM_WRITE) <= 3


def test_a_refusal_empties_what_is_set_aside_too() -> None:
    cloud, record = cloud_with_record()

    def refuse() -> None:
        raise Throttled("slow down", code="SubscriptionRequestsThrottled", retry_after=40)

    with pytest.raises(Throttled):
        RateLimiter(record, cloud.ports).call(SUBSCRIPTION, [ARM_WRITE], refuse)
    with pytest.raises(RateLimited) as wait:
        RateLimiter(in_small_change(record), cloud.ports).call(SUBSCRIPTION, [ARM_WRITE], lambda: None)
    assert (wait.value.at - cloud.clock()).total_seconds() >= 39.9
