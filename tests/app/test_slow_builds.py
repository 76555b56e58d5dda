"""Many slow builds together end in bounded time, whoever asked for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from shared.app.intake.webhook import Push
from shared.app.outbox import send
from shared.cluster.queues.messages import PlanRequest
from shared.plan.holds import HoldKind
from shared.platform.builds.build import Builds
from tests.support import fleet_files
from tests.support.kustomize_programs import kustomize_program
from tests.support.platform_trees import applied, config_map
from tests.support.proposals import Repo, fleet_of

SLOW = 30
MANY = 500


@pytest.fixture
def repo() -> Repo:
    """Return a planned fleet whose layers each take half a minute to build."""
    cloud = MemoryCloud(lock_seconds=300)

    def slow(files: Mapping[str, bytes], folder: str) -> bytes:
        if folder.startswith("layers/"):
            cloud.clock.advance(SLOW)
        return kustomize_program().build(files, folder)

    cloud.with_ports(lambda ports: replace(ports, services=replace(ports.services, builds=Builds(slow))))
    return fleet_of(cloud)


def with_layers(count: int, version: int = 1) -> dict[str, bytes]:
    """Return a platform with so many Kustomizations, each with a folder of its own."""
    texts = {}
    for number in range(count):
        texts[f"platform/layer-{number}.yaml"] = applied(f"layer-{number}", f"./layers/{number}")
        texts[f"layers/{number}/config.yaml"] = config_map(f"layer-{number}", version=str(version))
    return fleet_files.fleet("one", "two") | {path: text.encode() for path, text in texts.items()}


@pytest.mark.lives
def test_a_pull_request_with_many_slow_builds_is_refused_within_its_time(repo: Repo) -> None:
    before = repo.cloud.clock()
    number = repo.propose(with_layers(MANY))
    (body,) = repo.comments(number)
    assert "not planned: it takes longer than 120 seconds; split it" in body
    assert repo.status(repo.cloud.repository.head("topic"))[1] == "failure"
    assert repo.cloud.clock() - before < timedelta(seconds=120 + 2 * SLOW)


@pytest.mark.lives
def test_what_a_plan_has_no_time_to_build_waits_for_an_approval_and_the_next_plan_goes_on(
    repo: Repo,
) -> None:
    repo.push(with_layers(10))
    cloud, before = repo.cloud, repo.cloud.clock()
    commit = cloud.repository.push(with_layers(10, version=2))
    accept(Push("d1", f"push-{commit}", commit), cloud.ports)
    cloud.run(until=lambda: cloud.state.plan(commit) is not None)
    assert cloud.clock() - before < timedelta(seconds=120 + 2 * SLOW)
    found = cloud.state.plan(commit)
    assert found is not None
    holds = [item.hold for item in found.plan.items]
    assert [hold and hold.kind for hold in holds] == [HoldKind.PLATFORM_REMOVAL] * 2
    assert "longer than 120 seconds together" in str(holds[0])
    for number in range(6):
        send(PlanRequest(again=True, reason="test"), cloud.ports, message_id=f"again-{number}")
        cloud.run()
    assert {record.desired.pin.commit for record in cloud.state.clusters() if record.desired.pin} == {commit}
