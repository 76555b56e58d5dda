"""A real API server answers ``tests.support.api_server.requests`` as it did when recorded."""

from __future__ import annotations

import os

from tests.authority.programs import API_SERVER
from tests.authority.real_cluster import RealCluster
from tests.support.api_server.api_answers import RECORDED, answers, differences
from tests.support.recorded_answers import record, recorded


def test_a_real_api_server_answers_as_recorded(cluster: RealCluster) -> None:
    found = answers(cluster.world.client, "suite")
    if os.environ.get("RECORD_ANSWERS"):
        record(RECORDED, API_SERVER.version, found)
    assert differences(found, recorded(RECORDED)["answers"]) == []


def test_the_answers_were_recorded_from_the_version_that_is_built() -> None:
    assert recorded(RECORDED)["version"] == API_SERVER.version
