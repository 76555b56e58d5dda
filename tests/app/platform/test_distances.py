"""How far a cluster is behind: how many commits follow the one that its Flux pulls, and what it waits for."""

from __future__ import annotations

from collections import Counter

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.clusters import cluster_detail
from shared.app.api.views.why import why_view
from tests.support.pipeline_runs import push
from tests.support.replaced_ports import around
from tests.support.staged_fleets import NAMESPACE, PROD, ready_fleet, staged, with_file

pytestmark = pytest.mark.lives

APPROVED = """\
  rollout:
    stages:
      - {name: development, select: {environments: [development]}, groups: [{maxConcurrency: "100%"}]}
      - {name: production, select: {environments: [production]}, approval: true}
"""
BAD = b"apiVersion: v1\nkind: Namespace\nmetadata: {name: Apps_Bad}\n"


def behind(cloud: MemoryCloud, name: str) -> tuple[int | None, str]:
    """Return how far a cluster is behind, and what it waits for; ``why`` says the same."""
    view, why = cluster_detail(name, cloud.ports), why_view(name, cloud.ports)
    assert view is not None
    assert why is not None
    assert "behind" in view
    assert view["behind"] == why["behind"]
    return view["behind"], view["rollout"]["waits"] if view["rollout"] else ""


def numbered(number: int) -> dict[str, bytes]:
    """Return a fleet with a manifest of the platform that each number changes."""
    labelled = NAMESPACE.replace(b"}", b', labels: {number: "%d"}}' % number)
    return with_file("monitoring.yaml", labelled, staged(APPROVED))


def test_a_cluster_that_waits_for_its_stage_says_how_many_commits_it_lacks() -> None:
    cloud = ready_fleet(APPROVED)
    for number in range(3):
        head = push(cloud, numbered(number))
        cloud.run(seconds=3600, until=lambda: False)
    assert behind(cloud, "b1") == (3, f"waits for an approval of stage {head[:8]}:production")
    assert behind(cloud, "a1") == (None, "")


def test_a_cluster_whose_pin_stays_because_of_an_invalid_commit_is_behind() -> None:
    cloud = ready_fleet()
    push(cloud, with_file("bad.yaml", BAD))
    cloud.run(seconds=600, until=lambda: False)
    assert behind(cloud, "a1") == (1, "")


def test_a_commit_that_changes_nothing_of_the_platform_leaves_nobody_behind() -> None:
    cloud = ready_fleet(APPROVED)
    push(cloud, staged(APPROVED, "  tags: {change: one}\n"))
    cloud.run(seconds=3600, until=lambda: False)
    assert behind(cloud, "b1") == (None, "")


def test_the_git_host_is_asked_once_for_all_clusters_with_a_commit_and_once_for_a_head() -> None:
    cloud, calls = ready_fleet(APPROVED), Counter[str]()
    host = cloud.ports.git_host

    def changes_since(commit: str, earlier: str, most: int) -> object:
        calls[commit] += 1
        return host.changes_since(commit, earlier, most)

    around(cloud, "git_host", changes_since=changes_since)
    head = push(cloud, numbered(1))
    cloud.run(seconds=8 * 3600, until=lambda: False)
    assert calls == {head: 1}
    assert behind(cloud, PROD[0])[0] == behind(cloud, PROD[1])[0] == 1
