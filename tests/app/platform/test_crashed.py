"""A crash before and after every call of a push that moves pins, and of one that waits for an approval."""

from __future__ import annotations

import pytest

from localcloud.memory.crashes import Counter
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.approval import approve
from shared.app.intake.accept import accept
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_objects import KUSTOMIZATION
from shared.kubernetes.flux_readiness import commit_of, last_applied
from shared.resource_ids import ObjectRef
from tests.support.crash_points import run_with_crashes, wire
from tests.support.pinned_fleets import NAMES, PORTS, at_once, files, pulled
from tests.support.pipeline_runs import cloud_with, phases, pushed, record_of, status
from tests.support.staged_fleets import NAMESPACE, tags

SYNC = ObjectRef(KUSTOMIZATION.api_version, KUSTOMIZATION.kind, "flux-system", "flux-system")


def whole_run(counter: Counter) -> None:
    """Move the pins together with a manifest, and on to less once somebody approves; the host dies once."""
    cloud = cloud_with(files(), throttle=False)
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


def assert_applied(cloud: MemoryCloud, commit: str) -> None:
    """Check that each Flux has applied a commit, whose branch and status say so."""
    assert phases(cloud) == dict.fromkeys(NAMES, Phase.READY)
    for name in NAMES:
        record = record_of(cloud, name)
        assert (record.desired.pin or record).commit == pulled(cloud, name) == commit
        live = cloud.kubernetes.connect(record.desired.id).get(SYNC)
        assert commit_of(last_applied(live)) == commit
    assert cloud.repository.heads()[f"roadstead/pin/example/{commit}"] == commit
    assert status(cloud, commit)[0] == "success"


@pytest.mark.lives
def test_a_crash_at_any_call_leaves_every_pin_where_the_commits_say() -> None:
    run_with_crashes(whole_run, "shared/app", least=100, most=6)
