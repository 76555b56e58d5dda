"""A cluster with a lifetime, and the time that passes until it ends."""

from __future__ import annotations

from datetime import datetime, timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.times import extend
from shared.app.http_result import HttpResult
from shared.app.proposals.ends import watch_lifetimes
from tests.support.one_cluster import ready

LIFETIME = "  lifetime: 72h\n"


def ended(extra: str = LIFETIME, hours: float = 72.1) -> MemoryCloud:
    """Return a cloud whose cluster has reached its end, and in which the timer has run."""
    cloud = ready(extra)
    later(cloud, hours)
    return cloud


def run_until(cloud: MemoryCloud, moment: datetime) -> None:
    """Run until a moment, also where nothing is left to do before."""
    cloud.run(seconds=(moment - cloud.clock()).total_seconds(), until=lambda: False)


def later(cloud: MemoryCloud, hours: float) -> None:
    """Let time pass, then the timer run, and what follows end."""
    run_until(cloud, cloud.clock() + timedelta(hours=hours))
    watch_lifetimes(cloud.ports)
    cloud.run(seconds=600)


def put_off(cloud: MemoryCloud, *, hours: float = 24, hold: bool = False) -> HttpResult:
    """Extend the cluster, or hold it, and let what follows end."""
    result = extend("one", timedelta(hours=hours), "ops", cloud.ports, "a long test", hold=hold)
    cloud.run(seconds=600)
    return result
