"""A fleet of two environments whose pins move, for hosts that die on the way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from localcloud.memory.crashes import Crash
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.http_result import HttpResult
from shared.kubernetes.flux_objects import SOURCE
from tests.support import fleet_files
from tests.support.pipeline_runs import record_of

NAMES = ("dev", "prod")
PORTS = ("state", "git_host", "kubernetes", "azure", "plans", "jobs", "changes")


def files(change: str = "", **more: bytes) -> dict[str, bytes]:
    """Return a fleet of one cluster in each of two environments."""
    found = fleet_files.fleet(*NAMES)
    for name, environment in zip(NAMES, ("development", "production"), strict=True):
        path = f"clusters/{name}/cluster.yaml"
        own = f"spec:\n  environment: {environment}\n{change}".encode()
        found[path] = found[path].replace(b"spec:\n", own)
    return found | {f"platform/{name}.yaml": content for name, content in more.items()}


def at_once(act: Callable[[], HttpResult]) -> None:
    """Call the API, whose host may die. GitHub does not call again then: a timer finds the push."""
    with suppress(Crash):
        act()


def pulled(cloud: MemoryCloud, name: str) -> str:
    """Return the commit that Flux pulls on a cluster."""
    record = record_of(cloud, name)
    live = cloud.kubernetes.connect(record.desired.id).get(SOURCE)
    return str((live or {})["spec"]["ref"]["branch"]).removeprefix("roadstead/pin/example/")
