"""The recorded state with which a plan on an operator's machine is compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from localcloud.azure.world.catalog import NODE_IMAGES
from localcloud.memory.memory_cloud import MemoryCloud
from shared.language.desired import Desired
from tests.support import fleet_files
from tests.support.function_calls import call
from tests.support.pipeline_runs import cloud_with, push, record_of


def test_the_recorded_state_is_what_the_planner_compares_with() -> None:
    cloud = MemoryCloud()
    commit = push(cloud, fleet_files.fleet("one", "two"))
    cloud.run()
    nothing: Any = None
    ports = replace(cloud.ports, git_host=nothing, azure=nothing, kubernetes=nothing)
    status, body = call(ports, "recorded")
    assert (status, body["fleet"], body["commit"]) == (200, "example", commit)
    first = body["clusters"][0]
    record = record_of(cloud, "one")
    assert Desired(first["document"]).digest == record.digest == first["digest"]
    facts = {
        "name": "one",
        "generation": 1,
        "uid": record.uid,
        "deleting": False,
        "restorable": False,
        "retryableFailure": False,
        "runningVersion": "1.36.3",
        "runningPools": [
            {"name": "system", "kubernetesVersion": "1.36.3", "nodeImageVersion": NODE_IMAGES[-1]},
        ],
        "rebuiltFor": "",
        "ready": True,
    }
    assert {key: first[key] for key in facts} == facts
    assert [cluster["name"] for cluster in body["clusters"]] == ["one", "two"]


def test_a_cluster_in_deletion_is_recorded_as_such() -> None:
    cloud = cloud_with(fleet_files.fleet("one"))
    push(cloud, fleet_files.fleet())
    cloud.run(until=lambda: any(record.deleting for record in cloud.state.clusters()))
    assert call(cloud.ports, "recorded")[1]["clusters"][0]["deleting"] is True
