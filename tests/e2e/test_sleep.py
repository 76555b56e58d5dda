"""A cluster that an operator has sleep, over the wire: Azure stops it, and a delete does not wait."""

from __future__ import annotations

import pytest

from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.arm_client import arm, path
from tests.support.local_cloud_start import Start
from tests.support.roadstead_command import roadstead

SLEEP = "  sleep: {}\n"


@pytest.mark.long
def test_an_operator_has_a_cluster_sleep_and_it_is_deleted_while_it_does(start: Start) -> None:
    operator = start(Options(create_seconds=1, extra={"POLL_SECONDS": "0.5"}))
    url = operator.cloud.urls.functions
    files = fleet_files.fleet() | {"clusters/one/cluster.yaml": fleet_files.cluster("one", extra=SLEEP)}
    operator.wait_for_status(operator.push(files), "success")
    refused = roadstead("sleep", "one", "--reason", "a test", "--url", url)
    assert (refused.returncode, "say until when, with --until TIME" in refused.stderr) == (1, True)
    done = roadstead("sleep", "one", "--until", "2h", "--reason", "a test", "--url", url)
    assert (done.returncode, done.stdout.startswith("one stops, and sleeps until ")) == (0, True), done.stderr
    why = "cluster one sleeps, and why says until when"
    operator.wait(lambda: "sleeps until" in roadstead("why", "one", "--url", url).stdout, why)
    assert operator.phases() == {"one": "Sleeping"}
    with arm(operator) as azure:
        found = azure.get(path("one")).json()["properties"]
    assert (found["powerState"], found["provisioningState"]) == ({"code": "Stopped"}, "Succeeded")
    commit = operator.push(fleet_files.fleet())
    operator.wait_for_status(commit, "success")
    assert operator.phases() == {}
