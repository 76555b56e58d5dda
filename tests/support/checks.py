"""Checks of a cloud in memory from inside its clusters, and what people do in them by hand."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.access.rate_limiter import RateLimited, RateLimiter
from shared.app.outbox import request_whole_check
from shared.azure.rate_limits import AKS_OTHER
from shared.cluster.findings.health import HealthCondition
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Condition
from shared.resource_ids import ClusterId
from tests.support.pipeline_runs import record_of

FLUX_INTERVALS = 700.0
"""Seconds after which Flux has fetched and applied what git has: more than its interval of ten minutes."""


def pass_time(cloud: MemoryCloud, seconds: float = FLUX_INTERVALS) -> None:
    """Let Flux and the nodes go on, and deliver the messages that are due meanwhile."""
    cloud.sleep(seconds / 2)
    cloud.sleep(seconds / 2)


def check(cloud: MemoryCloud) -> None:
    """Let a check of the fleet run to its end, some minutes later."""
    pass_time(cloud)
    request_whole_check(cloud.ports)
    cloud.run(seconds=30)


def condition(record: ClusterRecord, kind: HealthCondition = HealthCondition.FLUX) -> Condition:
    """Return a condition of health."""
    found = record.condition(kind)
    assert found is not None
    return found


def take_tokens(cloud: MemoryCloud, cluster: ClusterId, number: int) -> None:
    """Take tokens of the limit for credentials, as jobs do, as far as there are so many."""
    limiter = RateLimiter(None, cloud.ports)
    with suppress(RateLimited):
        for _ in range(number):
            limiter.call(cluster.subscription, (AKS_OTHER,), lambda: None)


def refused_since(cloud: MemoryCloud, name: str) -> None:
    """Let the record of a cluster have a spec that the current rules refuse."""
    record = record_of(cloud, name)
    spec = {**record.document["spec"], "sku": "nonsense"}
    saved = cloud.state.save(replace(record, document={**record.document, "spec": spec}))
    assert saved.desired.problem
