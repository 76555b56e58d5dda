"""A crash before and after every call of a push that moves pins, and of one that waits for an approval."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache

from localcloud.memory.crashes import Counter, Crash
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.approval import approve
from shared.app.http_result import HttpResult
from shared.app.intake.accept import accept
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_objects import KUSTOMIZATION, SOURCE
from shared.kubernetes.flux_readiness import commit_of, last_applied
from shared.resource_ids import ObjectRef
from tests.support import fleet_files
from tests.support.crash_points import crash_points, wire
from tests.support.pipeline_runs import phases, push, pushed, status
from tests.support.sample import sample
from tests.support.staged_fleets import NAMESPACE, tags

NAMES = ("dev", "prod")
SYNC = ObjectRef(KUSTOMIZATION.api_version, KUSTOMIZATION.kind, "flux-system", "flux-system")
PORTS = ("state", "git_host", "kubernetes", "azure", "plans", "jobs", "changes")


def files(change: str = "", **more: bytes) -> dict[str, bytes]:
    """Return a fleet of one cluster in each of two environments."""
    found = fleet_files.fleet(*NAMES)
    for name, environment in zip(NAMES, ("development", "production"), strict=True):
        path = f"clusters/{name}/cluster.yaml"
        own = f"spec:\n  environment: {environment}\n{change}".encode()
        found[path] = found[path].replace(b"spec:\n", own)
    return found | {f"platform/{name}.yaml": content for name, content in more.items()}


def whole_run(counter: Counter) -> None:
    """Move the pins together with a manifest, and on to less once somebody approves; the host dies once."""
    cloud = MemoryCloud(throttle=False)
    push(cloud, files())
    cloud.run()
    assert phases(cloud) == dict.fromkeys(NAMES, Phase.READY)
    wire(cloud, counter, *PORTS)
    more = cloud.repository.push(files(tags("x"), monitoring=NAMESPACE))
    at_once(lambda: accept(pushed(cloud, more), cloud.ports))
    cloud.run()
    assert_applied(cloud, more)
    less = cloud.repository.push(files(tags("x")))
    at_once(lambda: accept(pushed(cloud, less), cloud.ports))
    cloud.run(seconds=1200, until=lambda: False)
    assert {pulled(cloud, name) for name in NAMES} == {more}
    for _ in range(2):
        at_once(lambda: approve(less, frozenset(NAMES), "jo", cloud.ports))
        cloud.run()
    assert_applied(cloud, less)


def at_once(act: Callable[[], HttpResult]) -> None:
    """Call the API, whose host may die. GitHub does not call again then: a timer finds the push."""
    with suppress(Crash):
        act()


def pulled(cloud: MemoryCloud, name: str) -> str:
    """Return the commit that Flux pulls on a cluster."""
    record = cloud.state.cluster(name)
    assert record is not None
    live = cloud.kubernetes.connect(record.desired.id).get(SOURCE)
    return str((live or {})["spec"]["ref"]["branch"]).removeprefix("roadstead/pin/")


def assert_applied(cloud: MemoryCloud, commit: str) -> None:
    """Check that each Flux has applied a commit, whose branch and status say so."""
    assert phases(cloud) == dict.fromkeys(NAMES, Phase.READY)
    for name in NAMES:
        record = cloud.state.cluster(name)
        assert record is not None
        assert (record.desired.pin or record).commit == pulled(cloud, name) == commit
        live = cloud.kubernetes.connect(record.desired.id).get(SYNC)
        assert commit_of(last_applied(live)) == commit
    assert cloud.repository.heads()[f"roadstead/pin/{commit}"] == commit
    assert status(cloud, commit)[0] == "success"


@cache
def points() -> list[int]:
    return crash_points(whole_run, "shared/app")


def test_a_crash_at_any_call_leaves_every_pin_where_the_commits_say() -> None:
    assert len(points()) > 100
    for point in sample("pins", points(), 12):
        whole_run(Counter(point))
