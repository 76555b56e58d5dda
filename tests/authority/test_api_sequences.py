"""A real API server and its controllers answer ``tests.support.api_server.sequences`` as when recorded."""

from __future__ import annotations

import os
from pathlib import Path

from tests.authority.programs import API_SERVER
from tests.authority.real_cluster import RealCluster
from tests.support.api_server.sequence_answers import RECORDED, sequence_answers, sequence_differences
from tests.support.recorded_answers import record, recorded


def test_a_real_cluster_answers_the_sequences_as_recorded(tmp_path: Path) -> None:
    with RealCluster(tmp_path / "real") as cluster:  # its nodes have no agent, which would end deleted pods
        found = sequence_answers(cluster.world.client, "sequences", cluster.forget_history, patience=30)
    if os.environ.get("RECORD_ANSWERS"):
        record(RECORDED, API_SERVER.version, found)
    assert sequence_differences(found, recorded(RECORDED)["answers"]) == []


def test_the_sequences_were_recorded_from_the_version_that_is_built() -> None:
    assert recorded(RECORDED)["version"] == API_SERVER.version
