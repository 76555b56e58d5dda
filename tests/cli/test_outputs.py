"""``roadstead output``: all outputs for a person and for programs, or the value of one."""

from __future__ import annotations

import json

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from tests.support import fleet_files
from tests.support.one_cluster import ready, record
from tests.support.pipeline_runs import phases, push, step_until
from tests.support.roadstead_command import roadstead


@pytest.fixture
def cloud() -> MemoryCloud:
    return ready()


def test_the_outputs_are_shown_one_a_line(url: str) -> None:
    shown = roadstead("output", "one", ROADSTEAD_URL=url).stdout
    rows = [line.split() for line in shown.splitlines()]
    assert ["cluster_name", "one"] in rows
    assert ["cluster_location", "eastus"] in rows


def test_a_program_gets_a_map_of_strings_as_terraform_reads_it(url: str, cloud: MemoryCloud) -> None:
    found = json.loads(roadstead("output", "one", "--json", ROADSTEAD_URL=url).stdout)
    assert found == record(cloud).observation.facts
    whole = json.loads(roadstead("output", "one", "-o", "json", ROADSTEAD_URL=url).stdout)
    assert (whole["name"], whole["outputs"]) == ("one", found)


def test_one_output_is_its_value_alone(url: str) -> None:
    assert roadstead("output", "one", "cluster_name", ROADSTEAD_URL=url).stdout == "one\n"
    unknown = roadstead("output", "one", "cluster_color", ROADSTEAD_URL=url)
    assert unknown.returncode == 1
    assert "one has no output cluster_color; it has cluster_" in unknown.stderr


def test_outputs_that_are_not_known_yet_fail(url: str, cloud: MemoryCloud) -> None:
    push(cloud, fleet_files.fleet("one", "two"))
    step_until(cloud, lambda: phases(cloud).get("two") is Phase.PROVISIONING)
    failed = roadstead("output", "two", "--json", ROADSTEAD_URL=url)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "two has no outputs yet: no job has read it in Azure (Provisioning)" in failed.stderr
