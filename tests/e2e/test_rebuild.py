"""A rebuild over the wire: the command writes the manifest, and another cluster is created and verified.

First in the place of the old one, and then next to it.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.arm_client import arm, path
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start
from tests.support.roadstead_command import roadstead, write

QUICK = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5"})
FILE, NEW = "clusters/one/cluster.yaml", "clusters/three/cluster.yaml"
PREFIXES = "  dnsPrefix: one-a\n", "  dnsPrefix: one-b\n"


def shown(operator: Operator) -> tuple[str, str]:
    """Return the life and the DNS prefix of the cluster, as Azure shows them."""
    with arm(operator) as client:
        found = client.get(path("one")).json()
    return found["tags"]["roadstead-life"], found["properties"]["dnsPrefix"]


@pytest.mark.long
def test_a_cluster_is_rebuilt_with_what_azure_cannot_change_in_place(start: Start, tmp_path: Path) -> None:
    operator = start(QUICK)
    before, after = (fleet_files.cluster("one", extra=f"{prefix}") for prefix in PREFIXES)
    operator.wait_for_status(operator.push(fleet_files.fleet("two") | {FILE: before}), "success")
    first, uid = shown(operator), operator.api.get("clusters/one")["createdAt"]
    refused = operator.wait_for_status(operator.push(fleet_files.fleet("two") | {FILE: after}), "failure")
    assert "roadstead rebuild" in refused or "dnsPrefix" in refused
    write(tmp_path, fleet_files.fleet("two") | {FILE: after})
    written = roadstead("rebuild", "one", cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    manifest = (tmp_path / FILE).read_bytes()
    time.sleep(1)  # a push in the second of another one may be older by GitHub's times, and waits
    commit = operator.push(fleet_files.fleet("two") | {FILE: manifest})
    operator.wait_for_status(commit, "success", seconds=120)
    assert operator.phases() == {"one": "Ready", "two": "Ready"}
    second = shown(operator)
    assert (first[1], second[1]) == ("one-a", "one-b")
    assert second[0] != first[0]
    assert operator.api.get("clusters/one")["createdAt"] > uid
    accepted = operator.accepted()
    assert [accepted[kind, "one"] for kind in ("create", "delete")] == [2, 1]
    assert accepted["create", "two"] == 1
    written = roadstead("rebuild", "one", "--as", "three", "--location", "westeurope", cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    replaced = {NEW: (tmp_path / NEW).read_bytes()}
    operator.wait_for_status(operator.push(fleet_files.fleet("two") | replaced), "success", seconds=120)
    assert operator.phases() == {"three": "Ready", "two": "Ready"}
    accepted = operator.accepted()
    assert (accepted["create", "three"], accepted["delete", "one"]) == (1, 2)
