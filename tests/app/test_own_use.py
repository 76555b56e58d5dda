"""What Roadstead itself uses: counted in memory, written now and then, shown at list prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.costs import own_use_view
from shared.app.runs import executed
from shared.cluster.failures.errors import Stale, Unavailable
from shared.ports.tally import FEWEST, MOST, Tally, arm_request
from shared.prices.own_use import listed_use

NOON = datetime(2026, 1, 12, 12, tzinfo=UTC)


@pytest.fixture
def cloud() -> MemoryCloud:
    cloud = MemoryCloud()
    cloud.clock.advance((NOON - cloud.clock()).total_seconds())
    return cloud


def use(cloud: MemoryCloud, operations: int) -> None:
    """Execute a function that does so many operations, with its execution."""
    with executed("planner", cloud.ports):
        cloud.ports.process.tally.add("tables GET roadsteadfleets", operations - 1)


def used(cloud: MemoryCloud) -> list[Mapping[str, float]]:
    return [day.counts for day in cloud.state.used()]


def test_little_is_not_written_and_more_is_once_it_is_worth_a_write(cloud: MemoryCloud) -> None:
    use(cloud, FEWEST - 1)
    assert used(cloud) == []
    use(cloud, 1)
    assert used(cloud) == [{"executions planner": 2, "seconds": 2, "tables GET roadsteadfleets": FEWEST - 2}]
    use(cloud, FEWEST - 1)
    assert used(cloud)[0]["executions planner"] == 2, "half of it is written, and the rest not yet"
    for _ in range(20):
        use(cloud, FEWEST)
    unwritten = 22 * FEWEST - 1 - sum(count for name, count in used(cloud)[0].items() if name != "seconds")
    assert 0 <= unwritten < MOST


def test_executions_at_one_time_are_one_time_of_the_instance() -> None:
    moments: Iterator[float] = iter([10.0, 14.5])
    tally = Tally(lambda: next(moments))
    tally.add("sent plans", FEWEST)
    with tally.execution("planner"), tally.execution("worker"):
        pass
    assert tally.due()["seconds"] == 4.5
    assert tally.due() == {}


class _Failing:
    """The state, which does not take what was used."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def add_used(self, *_: Any) -> None:
        raise self._error


def test_a_write_that_another_process_was_ahead_of_is_made_again(cloud: MemoryCloud) -> None:
    state: Any = _Failing(Stale("somebody else"))
    ports = cloud.ports
    with executed("planner", replace(ports, state=state)):
        ports.process.tally.add("sent plans", FEWEST)
    with executed("planner", ports):
        pass
    assert used(cloud) == [{"executions planner": 2, "seconds": 2, "sent plans": FEWEST}]


def test_a_write_without_an_answer_is_not_made_again_and_fails_nobody(cloud: MemoryCloud) -> None:
    state: Any = _Failing(Unavailable("no answer"))
    ports = cloud.ports
    with executed("planner", replace(ports, state=state)):
        ports.process.tally.add("sent plans", FEWEST)
    use(cloud, 2 * FEWEST)
    assert "sent plans" not in used(cloud)[0], "it may be there: counted twice is worse than not"


def test_a_function_that_fails_is_counted(cloud: MemoryCloud) -> None:
    cloud.ports.process.tally.add("sent plans", FEWEST)
    with pytest.raises(RuntimeError), executed("planner", cloud.ports):
        raise RuntimeError
    assert used(cloud)[0]["executions planner"] == 1


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("subscriptions/S", "subscriptions"),
        ("subscriptions/S/resourceGroups/G", "subscriptions/resourceGroups"),
        (
            "subscriptions/S/resourceGroups/G/providers/Microsoft.ContainerService/managedClusters/N",
            "Microsoft.ContainerService/managedClusters",
        ),
        (
            "subscriptions/S/resourceGroups/G/providers/Microsoft.ContainerService/managedClusters/N/stop",
            "Microsoft.ContainerService/managedClusters/stop",
        ),
        (
            "subscriptions/S/resourceGroups/G/providers/Microsoft.ContainerService/managedClusters/N"
            "/providers/Microsoft.KubernetesConfiguration/extensions/flux",
            "Microsoft.KubernetesConfiguration/extensions",
        ),
        ("providers/Microsoft.Authorization/roleDefinitions/R", "Microsoft.Authorization/roleDefinitions"),
    ],
)
def test_a_call_is_named_by_types_and_no_resource(path: str, name: str) -> None:
    assert arm_request("GET", f"https://management.azure.com/{path}?api-version=1&x=/a/") == f"arm GET {name}"


def test_operations_are_multiplied_by_list_prices_and_the_namespace_and_warm_instances_count() -> None:
    counts = {
        "executions planner": 1_000_000,
        "seconds": 100_000,
        "tables GET roadsteadfleets": 10_000,
        "sent plans": 20_000_000,
        "arm GET Microsoft.ContainerService/managedClusters": 5,
    }
    listed = {
        (line.kind, line.operation.partition(",")[0]): line.listed for line in listed_use(counts, 730, 2)
    }
    assert {key: round(value, 5) for key, value in listed.items()} == {
        ("executions", "planner"): 0.4,
        ("gigabyte-seconds", "executing"): 5.2,
        ("table operations", "GET roadsteadfleets"): 0.00036,
        ("messages", "sent plans"): 0.0,
        ("Service Bus", "hours of the namespace"): round(730 * 0.0135 + 7 * 0.8, 5),
        ("gigabyte-seconds", "always ready"): round(2 * 2 * 730 * 3600 * 0.000004, 5),
        ("calls of Azure Resource Manager", "GET Microsoft.ContainerService/managedClusters"): 0.0,
    }


def test_the_view_has_thirty_days_and_no_month_of_a_few_hours(cloud: MemoryCloud) -> None:
    assert own_use_view(cloud.ports) is None
    use(cloud, FEWEST)
    view = own_use_view(cloud.ports)
    assert view
    assert (view["since"], view["hours"], view["month"]) == ("2026-01-12", 12, None)
    cloud.clock.advance(86400)
    view = own_use_view(cloud.ports)
    assert view
    assert view["month"]
    assert view["listed"] == round(36 * 0.0135, 2)
    cloud.clock.advance(30 * 86400)
    assert own_use_view(cloud.ports) is None
