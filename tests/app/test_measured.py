"""What the pipeline measures of plans and webhooks."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.trace import StatusCode

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from shared.app.intake.webhook import DeliveryRefusal
from shared.cluster.failures.errors import ReconcileError, Stale, Unauthenticated, Unavailable
from shared.cluster.reporting.measurements import PLANS
from shared.ports import PlanRecord
from tests.support import fleet_files
from tests.support.collected_telemetry import Collected, watched
from tests.support.pipeline_runs import cloud_with, push
from tests.support.replaced_ports import around


def plans(collected: Collected) -> dict[str, int]:
    """Return how many plans had each result."""
    points = collected.metrics.get(PLANS.name, [])
    return {point.attributes["result"]: point.count for point in points}


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (Unavailable("GitHub answered 502"), "Unavailable"),
        (Unauthenticated("Bad credentials"), "Unauthenticated"),
    ],
)
@pytest.mark.parametrize("method", ["read_head", "tree"])
def test_a_branch_or_a_commit_that_cannot_be_read_is_measured_by_the_class_of_its_error(
    method: str, error: ReconcileError, result: str
) -> None:
    cloud = MemoryCloud()
    collected = watched(cloud)

    def refused(_: str) -> Any:
        raise error

    around(cloud, "git_host", **{method: refused})
    commit = push(cloud, fleet_files.fleet("one"))
    cloud.run(10)
    assert set(plans(collected)) == {result}
    (span, *_) = [span for span in collected.spans if span.name == "plan"]
    assert span.context is not None
    assert f"{span.context.trace_id:032x}" == commit[:32]
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, result)


def test_a_branch_that_the_timer_cannot_read_is_measured_each_time_in_a_quiet_fleet() -> None:
    cloud = cloud_with(fleet_files.fleet("one"))
    collected = watched(cloud)

    def refused(_: str) -> Any:
        raise Unauthenticated("Bad credentials")

    around(cloud, "git_host", read_head=refused)
    for _ in range(3):
        cloud.run_timers(cloud.ports)
        cloud.clock.advance(300)
    assert plans(collected) == {"Unauthenticated": 3}


def test_a_plan_that_another_planner_overtook_is_no_failure_and_a_fault_of_the_program_is_one() -> None:
    cloud = MemoryCloud()
    collected = watched(cloud)
    save, failures = cloud.state.save_plan, [Stale("another planner was faster"), KeyError("a fault")]

    def failing(record: PlanRecord) -> None:
        if failures:
            raise failures.pop(0)
        save(record)

    around(cloud, "state", save_plan=failing)
    push(cloud, fleet_files.fleet("one"))
    with pytest.raises(KeyError):
        cloud.run(60)
    cloud.run(600)
    assert plans(collected) == {"superseded": 1, "Unexpected": 1, "planned": 1}


def test_a_webhook_with_a_wrong_signature_is_counted_apart_from_other_refusals() -> None:
    cloud = MemoryCloud()
    collected = watched(cloud)
    for delivery in (
        DeliveryRefusal(401, "the signature is wrong"),
        DeliveryRefusal(400, "no JSON"),
        DeliveryRefusal(413, "large"),
    ):
        accept(delivery, cloud.ports)
    points = {point.attributes["result"]: point.value for point in collected.metrics["roadstead.webhooks"]}
    assert points == {"unsigned": 1, "refused": 2}
