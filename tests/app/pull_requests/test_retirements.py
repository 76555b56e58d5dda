"""What AKS retires of the clusters that a pull request changes, on its comment."""

from __future__ import annotations

from datetime import timedelta

from shared.app.pull_requests.comment import COMMENT_LIMIT, PullPlan, PullWarnings, comment_of
from shared.app.pull_requests.comment_parts import WARNINGS_SHOWN
from shared.azure.availability.announcements import AS_OF
from shared.language.resolve.problems import Problem
from tests.support import fleet_files
from tests.support.proposals import Repo

OLD = "  kubernetesVersion: '1.32'\n"


def test_a_cluster_that_asks_for_a_version_that_ends_soon_is_warned_of_at_its_line(repo: Repo) -> None:
    comment = repo.proposed(OLD)
    assert "#### Retirements of AKS" in comment
    assert "clusters/three/cluster.yaml:" in comment
    assert "leaves support on 2026-03-31, in 89 days" in comment


def test_a_pull_request_is_not_warned_of_clusters_that_it_does_not_change(repo: Repo) -> None:
    repo.push(fleet_files.fleet("two") | {"clusters/one/cluster.yaml": fleet_files.cluster("one", extra=OLD)})
    added = {"clusters/one/cluster.yaml": fleet_files.cluster("one", extra=OLD)}
    (comment,) = repo.comments(repo.propose(fleet_files.fleet("two", "three") | added))
    assert "three" in comment
    assert "Retirements" not in comment


def test_a_warning_is_no_failure_of_the_check(repo: Repo) -> None:
    added = {"clusters/three/cluster.yaml": fleet_files.cluster("three", extra=OLD)}
    repo.propose(fleet_files.fleet("one", "two") | added)
    head = repo.cloud.repository.head("topic")
    assert repo.status(head)[1] == "success"


def test_an_old_table_says_so_where_clusters_change(repo: Repo) -> None:
    repo.cloud.clock.advance((AS_OF - repo.cloud.clock().date() + timedelta(days=184)).total_seconds())
    assert f"the table of retirements is of {AS_OF}" in repo.proposed("")


def test_many_warnings_are_counted_and_the_comment_stays_within_its_limit() -> None:
    warnings = tuple(Problem(f"clusters/{n}/cluster.yaml", 1, 1, "spec", "x" * 900) for n in range(500))
    text = comment_of(PullPlan("acme", "main", "a" * 40, "b" * 40, warnings=PullWarnings(warnings)))
    assert len(text) <= COMMENT_LIMIT
    assert f"{500 - WARNINGS_SHOWN} more warnings are not shown" in text
