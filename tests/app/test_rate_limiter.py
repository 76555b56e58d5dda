"""Azure's limits are respected before Azure has to refuse a call."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.access.rate_limiter import BACKOFF, TRIES, RateLimited, RateLimiter
from shared.azure.rate_limits import AKS_OTHER, ARM_READ, ARM_WRITE, Bucket, reserve
from shared.cluster.failures.errors import Stale, Throttled, Unavailable
from shared.cluster.record_parts import Phase
from shared.ports import Ports
from shared.ports.azure import PutCluster, WriteResponse
from tests.support import fleet_files
from tests.support.limited_clusters import (
    SUBSCRIPTION,
    cloud_with_record,
    emptied,
    reserving,
    waits_of_a_step,
)
from tests.support.pipeline_runs import cloud_with, phases, push
from tests.support.replaced_ports import around, on_azure

pytestmark = pytest.mark.lives


def test_a_step_without_a_token_runs_at_its_reservation_without_a_failed_attempt() -> None:
    cloud, _ = cloud_with_record()
    emptied(cloud, ARM_WRITE, 30)
    while not any(record.job.next_run.reservations for record in cloud.state.clusters()):
        assert cloud.step()
    (record,) = cloud.state.clusters()
    assert record.job.attempts == 0
    assert record.job.step.failure is None
    assert record.job.reason.startswith(
        f"waits for Azure's write limit of subscription {SUBSCRIPTION}, reserved for "
    )
    assert 25 < (record.job.next_run.at - cloud.clock()).total_seconds() <= 30
    assert cloud.state.events("one", 1)[0].reason == "RateLimited"
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_a_reservation_is_used_once_and_only_while_it_is_valid() -> None:
    cloud, record = cloud_with_record()
    now = cloud.clock()
    key = f"{SUBSCRIPTION}|{ARM_WRITE.name}"

    def use(reservation: datetime) -> RateLimiter:
        limiter = RateLimiter(reserving(record, {key: (reservation,)}), cloud.ports)
        limiter.call(SUBSCRIPTION, [ARM_WRITE], lambda: None)
        return limiter

    assert use(now).reserved == {}
    assert cloud.state.bucket(key) is None  # the reservation has its token already
    with pytest.raises(RateLimited):
        use(now + timedelta(seconds=5))
    use(now - timedelta(minutes=5))
    assert cloud.state.bucket(key) is not None  # it had lapsed, so a new token was taken


def test_a_call_that_needs_two_tokens_retains_the_first_one() -> None:
    cloud, record = cloud_with_record()
    emptied(cloud, ARM_READ, 20)
    limiter = RateLimiter(record, cloud.ports)
    with pytest.raises(RateLimited):
        limiter.call(SUBSCRIPTION, [AKS_OTHER, ARM_READ], lambda: None)
    assert set(limiter.reserved) == {f"{SUBSCRIPTION}|aks-other", f"{SUBSCRIPTION}|arm-read"}
    before = cloud.state.bucket(f"{SUBSCRIPTION}|aks-other")
    cloud.clock.advance(21)
    again = RateLimiter(reserving(record, limiter.reserved), cloud.ports)
    again.call(SUBSCRIPTION, [AKS_OTHER, ARM_READ], lambda: None)
    assert cloud.state.bucket(f"{SUBSCRIPTION}|aks-other") == before


def test_many_waiting_steps_get_consecutive_reservations() -> None:
    cloud, record = cloud_with_record()
    reservations = []
    for _ in range(200):
        try:
            RateLimiter(record, cloud.ports).call(SUBSCRIPTION, [AKS_OTHER], lambda: None)
        except RateLimited as reservation:
            reservations.append(reservation.at)
    assert len(reservations) == 200 - AKS_OTHER.common.usable
    assert {b - a for a, b in itertools.pairwise(reservations)} == {AKS_OTHER.common.interval}


def test_a_step_with_several_calls_on_an_empty_bucket_completes() -> None:
    cloud, record = cloud_with_record()
    emptied(cloud, AKS_OTHER, 20)
    assert 0 < waits_of_a_step(cloud, record, AKS_OTHER, ARM_READ) <= 3


def test_reads_are_taken_from_the_state_in_batches() -> None:
    cloud, record = cloud_with_record()
    for _ in range(10):
        RateLimiter(record, cloud.ports).call(SUBSCRIPTION, [ARM_READ], lambda: None)
    bucket = cloud.state.bucket(f"{SUBSCRIPTION}|arm-read")
    assert bucket is not None
    expected = Bucket(cloud.clock())
    for _ in range(10):
        expected, _ = reserve(expected, ARM_READ.common, now=cloud.clock())
    assert bucket == expected


@pytest.mark.parametrize(
    ("code", "limits", "empty"),
    [
        ("SubscriptionRequestsThrottled", [ARM_WRITE], ["arm-write"]),
        ("SubscriptionRequestsThrottled", [AKS_OTHER, ARM_READ], ["arm-read"]),
        ("Throttled", [AKS_OTHER, ARM_READ], ["aks-other"]),
        ("Throttled", [ARM_WRITE], []),
        ("", [ARM_WRITE], ["arm-write"]),
        ("TooManyRequests", [ARM_WRITE], ["arm-write"]),
        ("TenantRequestsThrottled", [AKS_OTHER, ARM_READ], ["arm-read", "aks-other"]),
    ],
)
def test_a_refusal_empties_only_the_bucket_that_refused(
    code: str, limits: list[object], empty: list[str]
) -> None:
    cloud, record = cloud_with_record()

    def refuse() -> None:
        raise Throttled("slow down", code=code, retry_after=40)

    with pytest.raises(Throttled):
        RateLimiter(record, cloud.ports).call(SUBSCRIPTION, limits, refuse)  # type: ignore[arg-type]
    reservations = {}
    for limit in (ARM_READ, ARM_WRITE, AKS_OTHER):
        try:
            RateLimiter(record, cloud.ports).call(SUBSCRIPTION, [limit], lambda: None)
        except RateLimited as reservation:
            reservations[limit.name] = (reservation.at - cloud.clock()).total_seconds()
    assert list(reservations) == empty
    assert all(seconds >= 39.9 for seconds in reservations.values())


def test_a_refusal_whose_bucket_cannot_be_written_still_has_its_retry_after() -> None:
    cloud, record = cloud_with_record()

    save, away = cloud.ports.state.save_bucket, list[str]()

    def save_bucket(key: str, bucket: Bucket) -> None:
        if away:
            raise Unavailable("Table Storage did not answer")
        save(key, bucket)

    def refuse() -> None:
        away.append("from now on")
        raise Throttled("slow down", code="SubscriptionRequestsThrottled", retry_after=300)

    around(cloud, "state", save_bucket=save_bucket)
    with pytest.raises(Throttled) as refused:
        RateLimiter(record, cloud.ports).call(SUBSCRIPTION, [ARM_WRITE], refuse)
    assert refused.value.retry_after == 300


@pytest.mark.parametrize("seconds", [365 * 86_400, 1e15])
def test_an_excessive_retry_after_stops_a_subscription_for_one_hour(seconds: float) -> None:
    cloud = MemoryCloud(throttle=False)
    azure, tried = cloud.ports.azure, list[PutCluster]()

    def refused_once(write: PutCluster) -> WriteResponse:
        tried.append(write)
        if len(tried) == 1:
            raise Throttled("slow down", code="SubscriptionRequestsThrottled", retry_after=seconds)
        return azure.call(write)

    on_azure(cloud, PutCluster, refused_once)
    push(cloud, fleet_files.fleet("one", "two"))
    cloud.run(2 * 3600)
    assert set(phases(cloud).values()) == {Phase.READY}
    events = [event for name in ("one", "two") for event in cloud.state.events(name, 100)]
    messages = [event.message for event in events if event.warning]
    assert messages == ["Throttled: slow down (attempt 1, again in 3600 s)"]


def test_a_contended_bucket_postpones_the_step() -> None:
    cloud, record = cloud_with_record()

    class Crowded:
        def __getattr__(self, name: str) -> object:
            if name == "save_bucket":
                raise Stale("somebody was faster")
            return getattr(cloud.state, name)

    slept: list[float] = []
    crowded: Ports = replace(cloud.ports, state=Crowded(), sleep=slept.append)  # type: ignore[arg-type]
    limiter = RateLimiter(record, crowded)
    with pytest.raises(RateLimited) as wait:
        limiter.call(SUBSCRIPTION, [ARM_WRITE], lambda: None)
    assert 2 <= (wait.value.at - cloud.clock()).total_seconds() <= 4
    assert limiter.reserved == {}  # it got no token, so it may use none then
    least, most = BACKOFF
    bounds = [min(most, least * 2**lost) for lost in range(TRIES)]
    assert all(seconds < bound for seconds, bound in zip(slept, bounds, strict=True))
    assert len(set(slept)) == TRIES


def test_a_lost_race_is_tried_again_at_the_time_that_it_is_then() -> None:
    cloud, record = cloud_with_record()
    emptied(cloud, ARM_WRITE, 0.1)
    save, races = cloud.ports.state.save_bucket, [Stale("somebody was faster")]

    def save_bucket(key: str, bucket: Bucket) -> None:
        if races:
            raise races.pop()
        save(key, bucket)

    around(cloud, "state", save_bucket=save_bucket)
    cloud.with_ports(lambda ports: replace(ports, sleep=lambda _: cloud.clock.advance(60)))
    RateLimiter(record, cloud.ports).call(SUBSCRIPTION, [ARM_WRITE], lambda: None)
    bucket = cloud.state.bucket(f"{SUBSCRIPTION}|{ARM_WRITE.name}")
    assert bucket is not None
    assert bucket.full_at > cloud.clock()


def test_events_have_the_request_ids_of_the_writes() -> None:
    cloud = cloud_with(fleet_files.fleet("one"))
    written = [event for event in cloud.state.events("one", 100) if event.request_ids]
    assert {event.step for event in written} >= {"resource-group", "cluster"}


def test_a_hundred_clusters_become_ready_without_one_refusal() -> None:
    cloud = cloud_with(fleet_files.fleet(*(f"c{number:03}" for number in range(100))))
    assert set(phases(cloud).values()) == {Phase.READY}
    assert cloud.azure.limits.refusals == []
    assert cloud.azure.limits.counts["AllOtherHandlers"] == 100
