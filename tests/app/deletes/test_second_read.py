"""A delete reads once more what Azure does not show: that is a wait, and wherever people look no error."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.clusters import cluster_detail
from shared.app.api.views.why import why_view
from shared.cluster.failures.errors import classes, is_wait
from tests.support import fleet_files
from tests.support.one_cluster import ready, record
from tests.support.pipeline_runs import push, step_until
from tests.support.roadstead_command import roadstead
from tests.support.served_api import served

pytestmark = pytest.mark.lives


@pytest.fixture
def cloud() -> MemoryCloud:
    """Return a cloud in which a delete reads for the second time whether its cluster still exists."""
    made = ready()
    push(made, fleet_files.fleet())
    step_until(made, lambda: record(made).job.step.rechecking)
    return made


def test_the_views_show_a_wait_and_no_failure(cloud: MemoryCloud) -> None:
    detail, why = cluster_detail("one", cloud.ports), why_view("one", cloud.ports)
    assert detail is not None
    assert why is not None
    assert (detail["failure"], detail["attempts"]) == (None, 0)  # type: ignore[typeddict-item]
    assert (why["lastError"], why["attempts"]) == (None, 0)
    assert why["doing"].startswith("waits in the step delete-")


@pytest.mark.parametrize("arguments", [("status",), ("status", "one"), ("why", "one"), ("events", "one")])
def test_no_command_names_the_class_of_an_error(cloud: MemoryCloud, arguments: tuple[str, ...]) -> None:
    with served(cloud.ports) as address:
        shown = roadstead(*arguments, ROADSTEAD_URL=address).stdout
    assert "NotYetVisible" not in shown
    assert "Retrying" not in shown
    assert "once more" in shown


def test_only_a_second_read_is_such_a_wait() -> None:
    assert [error_class.__name__ for error_class in classes() if is_wait(error_class.__name__)] == [
        "NotYetVisible"
    ]
