"""A fleet in memory, from a commit to Ready clusters: pushes, and what tests ask of the result."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import replace

from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.servicebus.world.broker_values import SessionLock
from shared.app.api.views.why import why_view
from shared.app.intake.accept import accept
from shared.app.intake.webhook import Push
from shared.app.worker.worker import INVOCATION_SECONDS
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.ports import FleetConfig, Ports
from tests.support import fleet_files


def pushed(cloud: MemoryCloud, commit: str) -> Push:
    """Return the delivery of a push of this moment."""
    return Push("d1", f"push-{commit}", commit, cloud.clock().replace(microsecond=0))


def cloud_with(
    files: dict[str, bytes], *, throttle: bool = True, config: FleetConfig | None = None
) -> MemoryCloud:
    """Return a cloud in which everything that a first commit asks for has come to its end."""
    cloud = MemoryCloud(throttle=throttle, config=config)
    push(cloud, files)
    cloud.run()
    return cloud


def record_of(cloud: MemoryCloud, name: str) -> ClusterRecord:
    """Return the record of a cluster that has one."""
    record = cloud.state.cluster(name)
    assert record is not None, f"{name} has no record"
    return record


def without_timers(cloud: MemoryCloud, seconds: int) -> None:
    """Let the pipeline work for some seconds in which no timer comes."""
    for _ in range(seconds):
        while cloud.step():
            pass
        cloud.clock.advance(1)


def push(cloud: MemoryCloud, files: dict[str, bytes], branch: str = "main") -> str:
    commit = cloud.repository.push(files, branch=branch)
    assert accept(pushed(cloud, commit), cloud.ports).status == 202
    return commit


def step_until(cloud: MemoryCloud, done: Callable[[], bool]) -> None:
    """Deliver one message after the other until something holds; nothing is delivered after that."""
    while not done():
        if not cloud.step():
            cloud.clock.advance(1)


def deliver_due(cloud: MemoryCloud, queue: str) -> None:
    """Deliver the due messages of one queue, in the sessions that nobody has."""
    while (lock := cloud.broker.accept_session(queue)) is not None:
        cloud.deliver(queue, lock, cloud.ports)


def phases(cloud: MemoryCloud) -> dict[str, Phase]:
    return {record.name: record.phase for record in cloud.state.clusters()}


def accepted(cloud: MemoryCloud) -> Tally[tuple[str, str]]:
    """Return the writes that Azure accepted, but for those to the tags of the app's group."""
    writes = (write for write in cloud.azure.accepted if write["accepted"] != "update-tags")
    return Tally((write["accepted"], write["resource"].rsplit("/", 1)[-1]) for write in writes)


def status(cloud: MemoryCloud, commit: str) -> tuple[str, str]:
    found = cloud.repository.statuses.latest(commit)[0].status
    return found.state, found.description


def require_ready(cloud: MemoryCloud, *names: str) -> None:
    """Raise AssertionError unless these clusters are Ready and no other exists; it says what `why` says."""
    found = phases(cloud)
    if found == dict.fromkeys(names, Phase.READY):
        return
    said = [str(found)]
    for name in dict.fromkeys((*names, *found)):
        view = why_view(name, cloud.ports)
        plan = view["plan"] if view else None
        said += [f"{name} {view['doing']}: {view['problem']}{plan['reason'] if plan else ''}"] if view else []
    raise AssertionError("\n".join(said))


def ready(*names: str) -> MemoryCloud:
    cloud = MemoryCloud()
    push(cloud, fleet_files.fleet(*names))
    cloud.run()
    require_ready(cloud, *names)
    return cloud


def failed() -> tuple[MemoryCloud, str]:
    cloud = MemoryCloud()
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs are left")
    commit = push(cloud, fleet_files.fleet("one", "two"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED, "two": Phase.READY}
    return cloud, commit


def one_step_a_message(cloud: MemoryCloud) -> MemoryCloud:
    """Give the leases of a cloud a length with which no step follows another in one message."""
    cloud.ports = replace(
        cloud.ports,
        config=replace(
            cloud.ports.config,
            timing=replace(cloud.ports.config.timing, lease_seconds=INVOCATION_SECONDS + 1),
        ),
    )
    return cloud


def another_worker_for_each_message(cloud: MemoryCloud) -> None:
    """Let a process without any connection take each message from now on."""
    deliver = cloud.deliver

    def elsewhere(queue: str, lock: SessionLock, ports: Ports) -> None:
        deliver(queue, lock, replace(ports, kubernetes=cloud.connections()))

    cloud.deliver = elsewhere  # type: ignore[method-assign]


def with_two_removed() -> MemoryCloud:
    """Return a cloud whose last commit has removed two of three clusters, more than the budget."""
    made = MemoryCloud()
    push(made, fleet_files.fleet("one", "two", "three"))
    made.run()
    push(made, fleet_files.fleet("three"))
    made.run()
    return made
