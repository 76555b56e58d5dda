"""GitHub does not serve the repository under its name: jobs wait, name who must act, and continue."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from shared.cluster.failures.errors import Withheld
from shared.cluster.record_parts import Phase
from tests.support import fleet_files
from tests.support.one_cluster import advice, files, ready, record, tombstoned
from tests.support.pipeline_runs import accepted, phases, push, step_until
from tests.support.replaced_ports import around

PRESENT_NAME = (
    "Set the present name of the repository (docs/settings.md); ask the git host why it blocks one."
)


def renamed(*_: Any) -> NoReturn:
    raise Withheld("example/fleet: GitHub answered with a redirect")


@pytest.mark.lives
def test_a_delete_waits_for_the_present_name_and_needs_no_further_commit() -> None:
    cloud = tombstoned()
    read_head = cloud.ports.git_host.read_head
    around(cloud, "git_host", read_head=renamed)
    cloud.run(seconds=86_400, until=lambda: False)
    assert accepted(cloud)["delete", "one"] == 0
    assert phases(cloud) == {"one": Phase.DELETING}
    assert record(cloud).job.reason == "Withheld: example/fleet: GitHub answered with a redirect"
    assert advice(cloud).startswith(PRESENT_NAME)
    around(cloud, "git_host", read_head=read_head)
    cloud.run(seconds=1200)
    assert phases(cloud) == {}
    assert accepted(cloud)["delete", "one"] == 1


def test_a_delete_that_waits_for_the_present_name_is_taken_back_by_a_commit_with_the_cluster() -> None:
    cloud = tombstoned()
    read_head = cloud.ports.git_host.read_head
    around(cloud, "git_host", read_head=renamed)
    cloud.run(seconds=900, until=lambda: False)
    push(cloud, files())
    around(cloud, "git_host", read_head=read_head)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud)["delete", "one"] == 0


def test_a_job_that_reads_the_repository_waits_too() -> None:
    cloud = ready()
    blob = cloud.ports.git_host.blob
    push(cloud, fleet_files.fleet() | files("  tags: {team: shop}\n"))
    step_until(cloud, lambda: phases(cloud) != {"one": Phase.READY})
    around(cloud, "git_host", blob=renamed)
    cloud.run(seconds=3600, until=lambda: False)
    assert record(cloud).needs_action
    assert advice(cloud).startswith(PRESENT_NAME)
    around(cloud, "git_host", blob=blob)
    cloud.run(seconds=1200)
    assert phases(cloud) == {"one": Phase.READY}
