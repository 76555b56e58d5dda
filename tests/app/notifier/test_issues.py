"""Issues of the fleet repository: one for each group of problems."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.app.api.acts.cluster import replay
from shared.app.api.acts.fleet import accept_source
from shared.app.recovery.missed_work import wake_notifier
from shared.language.model.notification_kinds import NotificationKind
from shared.notifications.notification import Notification
from tests.support.notified import OPS, notified_fleet, titles, with_failures
from tests.support.one_cluster import ONE
from tests.support.pipeline_runs import cloud_with
from tests.support.sweeps import delete_by_hand, sweep

pytestmark = pytest.mark.lives


def test_an_issue_is_opened_for_a_group_and_closed_when_it_is_over() -> None:
    cloud = with_failures("one", "two", routes=("{name: issues, type: issues}",))
    issues = cloud.repository.pulls.issues
    (issue,) = issues.listed()
    assert issue.title == "example: 2 clusters failed in eastus: InvalidManifest"
    assert replay("one", "ann", cloud.ports).status == 202
    cloud.run()
    assert issues.listed() == [replace(issue, comments=issues.listed()[0].comments)]
    assert replay("two", "ann", cloud.ports).status == 202
    cloud.run()
    (closed,) = issues.listed(state="all")
    assert (closed.state, closed.state_reason) == ("closed", "completed")
    assert "1 cluster no longer failed" in closed.comments[-1]


def test_an_issue_of_a_problem_that_became_another_one_is_closed_and_the_other_has_its_own() -> None:
    cloud = with_failures("one", routes=("{name: issues, type: issues}",))
    issues = cloud.repository.pulls.issues
    lost = Notification(
        "lost:one:x", NotificationKind.LOST, "cluster:one", "one", cloud.clock(), location="eastus"
    )
    cloud.state.add_notification(lost)
    wake_notifier(cloud.ports)
    cloud.run(60)
    assert [(issue.title, issue.state) for issue in issues.listed(state="all")] == [
        ("example: 1 cluster no longer as verified in eastus", "open"),
        ("example: 1 cluster failed in eastus: InvalidManifest", "closed"),
    ]


def test_an_issue_that_somebody_deleted_is_opened_again() -> None:
    cloud = with_failures("one", "two", routes=("{name: issues, type: issues}",))
    issues = cloud.repository.pulls.issues
    issues.delete(1)
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs are left")
    assert replay("one", "ann", cloud.ports).status == 202
    cloud.run()
    assert [issue.number for issue in issues.listed()] == [2]


def test_a_repository_that_has_taken_the_name_over_gets_no_issue() -> None:
    cloud = cloud_with(
        notified_fleet("one", "two", routes=(OPS, "{name: issues, type: issues}")), throttle=False
    )
    cloud.repository.id = 2
    cloud.run(300, until=lambda: False)
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    cloud.run(1800, until=lambda: False)
    issues = cloud.repository.pulls.issues
    assert issues.listed(state="all") == []
    assert "example: 1 route failing: OtherRepository" in titles(cloud)
    cloud.repository.id = 1
    cloud.run(7200, until=lambda: bool(issues.listed()))
    assert "ClusterMissing" in issues.listed()[-1].title


def test_an_issue_of_an_accepted_repository_that_has_the_number_of_ours_is_left_to_its_author() -> None:
    cloud = with_failures("one", routes=("{name: issues, type: issues}",))
    issues = cloud.repository.pulls.issues
    issues.delete(1)
    theirs = issues.create("A question", "How do I start?", "somebody")
    known = cloud.state.notifier_record()
    route = known.routes["issues"]
    numbers = dict.fromkeys(route.issues, theirs.number)
    cloud.state.save_notifier_record(replace(known, routes={"issues": replace(route, issues=numbers)}))
    cloud.repository.id = 2
    cloud.run(300, until=lambda: False)
    assert accept_source("jo", cloud.ports).status == 202
    cloud.run()
    assert replay("one", "ann", cloud.ports).status == 202
    cloud.run()
    assert issues.get(theirs.number) == theirs
