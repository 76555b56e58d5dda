"""The recipes of the how-to page, as they are printed there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import shared
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from tests.support.pipeline_runs import cloud_with, push, pushed
from tests.support.staged_fleets import DEV, PROD, act, changed, ready_fleet, staged, tags

pytestmark = pytest.mark.lives

PAGE = Path(shared.__file__).parents[1] / "docs" / "how-to" / "roll-a-change-out.md"
ALL = {*DEV, *PROD}


def recipe(title: str) -> str:
    """Return the YAML below a title of the page."""
    found = re.search(rf"## {title}\n.*?```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None, title
    return found[1]


def placed(rollout: str, extra: str = "") -> dict[str, bytes]:
    """Return the fleet with development in another region, and as batch, where production has shops."""
    files = staged(rollout, extra)
    for name in (*DEV, *PROD):
        path, tier = f"clusters/{name}/cluster.yaml", b"batch" if name in DEV else b"shop"
        label = b"  labels: {tier: " + tier + b"}\nspec:\n"
        files[path] = files[path].replace(b"spec:\n", label, 1)
        if name in DEV:
            files[path] = files[path].replace(b"location: eastus", b"location: westeurope")
    return files


def ready(rollout: str) -> MemoryCloud:
    return cloud_with(placed(rollout))


def steps(cloud: MemoryCloud, value: str, *, minutes: int) -> Iterator[set[str]]:
    """Yield the clusters that have a change after so many minutes, again and again."""
    while True:
        cloud.run(seconds=60 * minutes)
        yield changed(cloud, value)


def test_one_cluster_first_then_all() -> None:
    rollout = recipe("One cluster first, then all")
    cloud = ready_fleet(rollout)
    push(cloud, staged(rollout, tags("one")))
    found = steps(cloud, "one", minutes=25)
    assert next(found) == {"a1"}
    assert next(found) == ALL


def test_environment_by_environment() -> None:
    rollout = recipe("Environment by environment")
    cloud = ready_fleet(rollout)
    commit = push(cloud, staged(rollout, tags("one")))
    found = steps(cloud, "one", minutes=60)
    assert next(found) == {*DEV}
    act(cloud, commit, "approve", "production")
    assert next(found) == ALL


def test_region_by_region() -> None:
    rollout = recipe("Region by region")
    cloud = ready(rollout)
    push(cloud, placed(rollout, tags("one")))
    found = steps(cloud, "one", minutes=50)
    assert next(found) == {*DEV}
    assert next(found) == ALL


def test_least_critical_first() -> None:
    rollout = recipe("Least critical first")
    cloud = ready(rollout)
    cloud.azure.interventions.stick_next("a1")
    push(cloud, placed(rollout, tags("one")))
    found = steps(cloud, "one", minutes=5)
    assert next(found) == {*DEV}, "shops wait while a batch cluster changes"


def test_least_critical_first_reaches_the_shops() -> None:
    rollout = recipe("Least critical first")
    cloud = ready(rollout)
    push(cloud, placed(rollout, tags("one")))
    cloud.run()
    assert changed(cloud, "one") == ALL


def test_wait_until_the_shop_works() -> None:
    rollout = recipe("Wait until the shop works")
    cloud = ready(rollout)
    cloud.endpoints.hosts |= {"shop.dev.example.com", "prometheus.example.com"}
    cloud.endpoints.statuses["https://shop.dev.example.com/healthz"] = 200
    query = next(iter(re.findall(r"query: (.*)", rollout)))
    cloud.endpoints.values[query] = [3.0]
    push(cloud, placed(rollout, tags("one")))
    found = steps(cloud, "one", minutes=2)
    assert next(found) == {*DEV}
    cloud.endpoints.values[query] = [0.25]
    assert [next(found) for _ in range(5)][-1] == ALL


def test_an_emergency_that_a_commit_selects() -> None:
    rollout = recipe("An emergency")
    cloud = ready_fleet(rollout)
    message = "Renew the certificate\n\nRollout: emergency\n"
    commit = cloud.repository.push(staged(rollout, tags("one")), message=message)
    assert accept(pushed(cloud, commit), cloud.ports).status == 202
    found = steps(cloud, "one", minutes=5)
    assert next(found) == {"a1"} or next(found) == ALL


@pytest.mark.parametrize("emergency", [False, True])
def test_a_freeze_over_a_holiday_and_an_emergency_in_it(emergency: bool) -> None:
    rollout = recipe("Freeze over a holiday")
    cloud = ready_fleet(rollout)
    holiday, end = datetime(2026, 12, 20, tzinfo=UTC), datetime(2027, 1, 3, 23, tzinfo=UTC)
    cloud.clock.advance((holiday - cloud.clock()).total_seconds())
    commit = push(cloud, staged(rollout, tags("one")))
    cloud.run(seconds=3600)
    assert changed(cloud, "one") == {*DEV}
    if emergency:
        act(cloud, commit, "override")
    else:
        cloud.clock.advance((end - timedelta(minutes=1) - cloud.clock()).total_seconds())
        cloud.run(seconds=30)
        assert changed(cloud, "one") == {*DEV}
    cloud.run(seconds=3600)
    assert changed(cloud, "one") == ALL
