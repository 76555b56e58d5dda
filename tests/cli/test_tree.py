"""``roadstead tree``: a cluster with its parts, of which only the unhealthy ones are named."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from cli.terminal.cluster_table import applied
from localcloud.memory.memory_cloud import MemoryCloud
from shared.language.pin import pin_branches
from tests.support.checks import check
from tests.support.one_cluster import branch_files, pool, ready
from tests.support.pipeline_runs import push
from tests.support.roadstead_command import on_terminal, plain, roadstead

pytestmark = pytest.mark.lives


@pytest.fixture
def cloud() -> MemoryCloud:
    return ready(pool(count=2), fleet=branch_files)


def broken(cloud: MemoryCloud) -> None:
    """Let a commit break Flux, and a check find that."""
    check(cloud)
    push(cloud, branch_files(pool(count=2)) | {"platform/broken.yaml": b"kind: [unfinished"})
    cloud.run()
    check(cloud)


@pytest.mark.parametrize("columns", [80, 120])
def test_the_tree_fits_the_terminal_and_names_what_is_unhealthy(
    url: str, cloud: MemoryCloud, columns: int
) -> None:
    broken(cloud)
    code, shown = on_terminal("tree", "one", columns=columns, rows=60, ROADSTEAD_URL=url)
    rows = [row.rstrip() for row in plain(shown).splitlines()]
    assert code == 0
    assert max(map(len, rows)) <= columns
    assert rows[0] == "one, Ready, Kubernetes 1.36 (runs 1.36.3)"
    text = "\n".join(rows)
    applied = [row for row in rows if "applied main@" in row]
    assert re.fullmatch("│   ├── applied main@[0-9a-f]{8}, read [0-9]+[smhd] ago", applied[0])
    assert "├── node pools, read " in text
    assert "│   ├── system: 1.36 (runs 1.36.3), 1 of 1 node ready" in text
    assert "│   └── apps: 1.36 (runs 1.36.3), 2 of 2 nodes ready" in text
    assert "│   ├── what Roadstead applied: 12 of 12 objects ready" in text
    assert "│   └── Kustomization: 0 of 1 object ready, 1 failed" in text
    assert "Kustomization flux-system/flux-system: BuildFailed for " in text
    assert "    ├── Deployment: no objects" in text
    assert "FluxHealthy False for " in text


def test_a_cluster_that_no_check_has_read_says_how_it_is_read(url: str, cloud: MemoryCloud) -> None:
    _, shown = on_terminal("tree", "one", ROADSTEAD_URL=url)
    text = plain(shown)
    assert "node pools, not read yet" in text
    assert "system: 1.36, not read yet" in text
    assert "no nodes" not in text
    assert "roadstead refresh one reads the cluster from inside" in text


def test_scripts_get_the_object_of_the_api(url: str, cloud: MemoryCloud) -> None:
    broken(cloud)
    view = json.loads(roadstead("tree", "one", "-o", "json", ROADSTEAD_URL=url).stdout)
    (kustomizations,) = (document for document in view["flux"] if document["kind"] == "Kustomization")
    assert [document["reason"] for document in kustomizations["unhealthy"]][:1] == ["BuildFailed"]
    assert roadstead("tree", "cluster/one", "-o", "name", ROADSTEAD_URL=url).stdout == "cluster/one\n"


def test_a_cluster_that_the_fleet_does_not_have_is_an_error(url: str, cloud: MemoryCloud) -> None:
    asked = roadstead("tree", "two", ROADSTEAD_URL=url)
    assert asked.returncode == 1
    assert "two" in asked.stderr


def test_the_branch_of_a_pin_is_shown_as_a_pin() -> None:
    commit, at = "3f2c91aa" * 5, datetime(2026, 11, 1, tzinfo=UTC)
    view: Any = {
        "fluxRevision": f"{pin_branches('example')}{commit}@sha1:{commit}",
        "fluxReadAt": at.isoformat(),
    }
    assert applied(view, at) == "applied pin@3f2c91aa, read 0s ago"
