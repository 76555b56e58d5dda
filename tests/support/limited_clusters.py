"""A cluster whose calls to Azure are limited, and buckets that others have emptied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.access.rate_limiter import RateLimited, RateLimiter
from shared.azure.rate_limits import Bucket, Limit
from shared.cluster.record import ClusterRecord
from tests.support import fleet_files
from tests.support.hand_overs import CONFIG
from tests.support.pipeline_runs import push, record_of

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"


def cloud_with_record() -> tuple[MemoryCloud, ClusterRecord]:
    """Return a cloud and the record of a cluster that is in no small change."""
    cloud = MemoryCloud(config=replace(CONFIG, limits=replace(CONFIG.limits, small_change=0)))
    push(cloud, fleet_files.fleet("one"))
    while not cloud.state.clusters():
        assert cloud.step()
    record = record_of(cloud, "one")
    return cloud, record


def reserving(record: ClusterRecord, reservations: Mapping[str, tuple[datetime, ...]]) -> ClusterRecord:
    """Return the record with these reservations."""
    run = replace(record.job.next_run, reservations=reservations)
    return replace(record, job=replace(record.job, next_run=run))


def emptied(cloud: MemoryCloud, limit: Limit, seconds: float) -> None:
    """Let other workers take every token of the next ``seconds``."""
    key, common = f"{SUBSCRIPTION}|{limit.name}", limit.common
    before = cloud.state.bucket(key)
    full_at = cloud.clock() + timedelta(seconds=seconds) + (common.usable - 1) * common.interval
    cloud.state.save_bucket(key, Bucket(full_at, before.etag if before else ""))


def without_tokens(cloud: MemoryCloud, limit: Limit) -> None:
    """Let others use up a limit for an hour, with what is set aside of it for small changes."""
    for share in (limit, limit.set_aside):
        emptied(cloud, share, 3600)


def waits_of_a_step(cloud: MemoryCloud, record: ClusterRecord, *limits: Limit) -> int:
    """Run a step of three calls under limits until it completes; return how often it waited for a token."""
    waits = 0
    while waits < 10:
        limiter = RateLimiter(record, cloud.ports)
        try:
            for _ in range(3):
                limiter.call(SUBSCRIPTION, [*limits], lambda: None)
        except RateLimited as reservation:
            waits += 1
            cloud.clock.advance((reservation.at - cloud.clock()).total_seconds())
            record = reserving(record, limiter.reserved)
        else:
            break
    return waits
