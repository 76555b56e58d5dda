"""Routes are notified of what happens to a fleet, once, and a route that fails delays nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.approval import approve
from shared.app.api.acts.cluster import replay
from shared.app.api.views.notifications import routes_view
from shared.app.notifications import of_plan
from shared.app.notifier import handle
from shared.app.recovery.missed_work import wake_notifier
from shared.cluster.failures.errors import Throttled, Unauthenticated, Unauthorized, Unavailable
from shared.cluster.queues.messages import NotifyRequest
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.diagnosis import CORRECT_FILE
from shared.frozen import replace
from shared.language.model.notification_kinds import NotificationKind
from shared.masking import Masker
from shared.notifications.notification import Notification
from shared.notifications.record import NotifierRecord
from shared.plan.holds import Hold, HoldKind
from shared.plan.plan import Action, Item, Plan
from shared.ports import PlanRecord
from shared.ports.azure import ListClusters
from shared.ports.masked import masked
from shared.ports.state.app import NOTIFICATION
from tests.support.cluster_records import NOW
from tests.support.notified import ALL, OPS, kinds, notified_fleet, titles, with_failures
from tests.support.one_cluster import ONE
from tests.support.pipeline_runs import cloud_with, phases, push
from tests.support.replaced_ports import around, fails_once, frozen, on_azure, plan_at_once
from tests.support.sweeps import delete_by_hand, sweep

pytestmark = pytest.mark.lives

NOTIFY = NotifyRequest()


def test_clusters_that_fail_are_one_message_and_their_end_is_another() -> None:
    names = tuple(f"aks-{n:02d}" for n in range(12))
    cloud = with_failures(*names)
    assert titles(cloud) == ["example: 12 clusters failed in eastus: InvalidManifest"]
    for name in names:
        assert replay(name, "ann", cloud.ports).status == 202
    cloud.run()
    assert titles(cloud)[1:] == ["example: 12 clusters no longer failed in eastus"]
    assert not cloud.state.notifier_record().open


def test_a_message_has_the_reason_the_action_and_the_links() -> None:
    cloud = with_failures("one")
    (message,) = cloud.routes.delivered["ops"]
    commit = cloud.state.fleet().commit
    assert "Why: InvalidManifest: A value of the manifest" in message.text
    assert "the cluster one: no vCPUs are left" in message.text
    assert "Next: Correct the value in the message" in message.text
    assert f"https://github.com/example/fleet/commit/{commit}" in message.text


def test_a_route_for_everything_hears_of_ready_and_deleted_clusters_and_of_approvals() -> None:
    cloud = cloud_with(notified_fleet("one", "two", routes=(ALL,)))
    expected = [
        (kind, name, False)
        for kind in (NotificationKind.OUTPUTS, NotificationKind.READY)
        for name in ("one", "two")
    ]
    assert sorted(kinds(cloud, "all")) == expected
    push(cloud, notified_fleet("two", routes=(ALL,)))
    cloud.run()
    assert (NotificationKind.DELETED, "one", False) in kinds(cloud, "all")


@pytest.mark.parametrize("interrupted", [False, True])
def test_deletes_that_wait_for_an_approval_are_told_and_the_approval_ends_it(interrupted: bool) -> None:
    cloud = cloud_with(notified_fleet("one", "two", "three", routes=(ALL,)))
    commit = push(cloud, notified_fleet("three", routes=(ALL,)))
    cloud.run()
    assert (NotificationKind.REFUSED, "2 clusters", False) in kinds(cloud, "all")
    if interrupted:
        fails_once(cloud, "state", "save_plan")
    assert approve(commit, ["one", "two"], "ann", cloud.ports).status == 202
    cloud.run(7200)
    told = kinds(cloud, "all")
    assert (NotificationKind.REFUSED, "2 clusters", True) in told
    assert told.count((NotificationKind.APPROVED, commit[:8], False)) == 1
    assert {(NotificationKind.DELETED, "one", False), (NotificationKind.DELETED, "two", False)} <= set(told)


@pytest.mark.parametrize("method", ["notifier_record", "fleet"])
def test_a_notifier_that_stands_still_does_not_end_what_a_newer_plan_has_begun(method: str) -> None:
    cloud = cloud_with(notified_fleet("one", "two", "three", routes=(ALL,)))

    def meanwhile() -> None:
        plan_at_once(cloud, cloud.repository.push(notified_fleet("three", routes=(ALL,))))
        handle(NOTIFY, cloud.ports)

    frozen(cloud, "state", method, meanwhile)
    handle(NOTIFY, cloud.ports)
    cloud.run()
    told = kinds(cloud, "all")
    assert [over for kind, _, over in told if kind is NotificationKind.REFUSED] == [False]


def test_an_approval_is_told_also_when_the_next_commit_is_planned_before_the_notifier_looks() -> None:
    cloud = cloud_with(notified_fleet("one", "two", "three", routes=(ALL,)))
    commit = push(cloud, notified_fleet("three", routes=(ALL,)))
    cloud.run()
    read = cloud.state.notifier_record

    def away() -> NotifierRecord:
        raise Unavailable("the table does not answer")

    around(cloud, "state", notifier_record=away)
    assert approve(commit, ["one", "two"], "ann", cloud.ports, reason="no longer used").status == 202
    cloud.run(60)
    push(cloud, notified_fleet("three", "four", routes=(ALL,)))
    cloud.run(60)
    around(cloud, "state", notifier_record=read)
    wake_notifier(cloud.ports)
    cloud.run()
    assert kinds(cloud, "all").count((NotificationKind.APPROVED, commit[:8], False)) == 1
    text = "".join(message.text for message in cloud.routes.delivered["all"])
    assert "Why: approved by ann: no longer used" in text


def test_an_invalid_manifest_is_told_until_a_commit_corrects_it() -> None:
    cloud = MemoryCloud()
    files = notified_fleet("one")
    broken = files["clusters/one/cluster.yaml"].replace(b"location", b"loaction")
    commit = push(cloud, {**files, "clusters/one/cluster.yaml": broken})
    cloud.run()
    assert kinds(cloud) == [(NotificationKind.INVALID, commit[:8], False)]
    assert "loaction: there is no such field" in cloud.routes.delivered["ops"][0].text
    push(cloud, files)
    cloud.run()
    assert (NotificationKind.INVALID, commit[:8], True) in kinds(cloud)


def test_a_change_that_no_validation_shows_is_explained_by_its_cluster() -> None:
    fixed = Hold(HoldKind.IMMUTABLE_FIELD, {"field": "spec.dnsPrefix", "old": "a", "new": "b"})
    plan = Plan("c" * 40, (Item("one", Action.REFUSED, 1, "u", hold=fixed),))
    (problem,) = of_plan(PlanRecord(plan, NOW))
    assert problem.action == "`roadstead why one` says what to do."
    wrong = replace(plan, problems=("clusters/two/cluster.yaml:1:1: no",))
    (problem,) = of_plan(PlanRecord(wrong, NOW))
    assert problem.action == f"{CORRECT_FILE} `roadstead why one` says what to do."


def test_a_credential_that_github_refuses_is_told_and_so_is_its_renewal() -> None:
    cloud = cloud_with(notified_fleet("one"))
    read = cloud.ports.git_host.read_head

    def refused(branch: str) -> None:
        raise Unauthenticated("Bad credentials")

    around(cloud, "git_host", read_head=refused)
    cloud.run_timers(cloud.ports)
    cloud.run(120, until=lambda: bool(titles(cloud)))
    assert kinds(cloud) == [(NotificationKind.CREDENTIAL, "GitHub", False)]
    around(cloud, "git_host", read_head=read)
    cloud.run(1200, until=lambda: len(titles(cloud)) > 1)
    assert kinds(cloud)[1:] == [(NotificationKind.CREDENTIAL, "GitHub", True)]


def test_what_a_sweep_finds_is_told_and_so_is_that_it_is_as_before() -> None:
    cloud = cloud_with(notified_fleet("one"))
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    assert titles(cloud) == ["example: 1 cluster no longer as verified in eastus: ClusterMissing"]
    assert replay("one", "ann", cloud.ports).status == 202
    cloud.run()
    assert titles(cloud)[1:] == ["example: 1 cluster as verified again in eastus"]


def test_a_route_that_fails_delays_no_job_and_gets_what_it_missed_as_a_digest() -> None:
    cloud = MemoryCloud()
    cloud.routes.failing["ops"] = Unavailable("the route does not answer")
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs are left")
    other = "{name: other, type: teams, address: TEAMS}"
    push(cloud, notified_fleet("one", "two", routes=(OPS, other)))
    cloud.run(1800, until=lambda: len(titles(cloud, "other")) > 1)
    assert phases(cloud) == {"one": Phase.FAILED, "two": Phase.READY}
    assert titles(cloud, "other")[1:] == ["example: 1 route failing: Unavailable"]
    del cloud.routes.failing["ops"]
    cloud.run(7200, until=lambda: len(titles(cloud, "other")) > 2)
    assert titles(cloud, "other")[2:] == ["example: 1 route delivering again"]
    cloud.run(7200, until=lambda: len(titles(cloud)) > 1)
    assert kinds(cloud) == [(NotificationKind.FAILED, "one", False), (NotificationKind.ROUTE, "ops", True)]


def test_a_route_is_tried_again_when_it_asks_for_it() -> None:
    cloud = MemoryCloud()
    cloud.routes.failing["ops"] = Throttled("slow down", retry_after=600.0)
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs are left")
    push(cloud, notified_fleet("one"))
    cloud.run(60)
    assert cloud.routes.tried == 1
    del cloud.routes.failing["ops"]
    cloud.run(500)
    assert titles(cloud) == []
    cloud.run(120)
    assert len(titles(cloud)) == 1


def test_a_fleet_without_routes_is_told_nothing_and_forgets_its_facts() -> None:
    cloud = cloud_with(notified_fleet("one", routes=()))
    assert cloud.routes.tried == 0
    assert [notification.kind for notification in cloud.state.notifications(10)] == [
        NotificationKind.OUTPUTS,
        NotificationKind.READY,
    ]
    cloud.clock.advance(timedelta(days=8).total_seconds())
    cloud.state.prune(NOTIFICATION, cloud.clock() - timedelta(days=7))
    assert cloud.state.notifications(10) == []


def test_the_timer_finds_facts_whose_message_was_lost() -> None:
    cloud = cloud_with(notified_fleet("one"))
    cloud.state.add_notification(
        Notification(
            "failed:one:x", NotificationKind.FAILED, "cluster:one", "one", cloud.clock(), location="eastus"
        )
    )
    cloud.run(30)
    assert titles(cloud) == []
    wake_notifier(cloud.ports)
    cloud.run(60)
    assert titles(cloud) == ["example: 1 cluster failed in eastus"]


def test_a_problem_whose_record_another_worker_wrote_is_taken_back() -> None:
    cloud = cloud_with(notified_fleet("one"))
    cloud.state.add_notification(
        Notification(
            "failed:one:x", NotificationKind.FAILED, "cluster:one", "one", cloud.clock(), location="eastus"
        )
    )
    wake_notifier(cloud.ports)
    cloud.run(1200, until=lambda: len(titles(cloud)) > 1)
    assert titles(cloud)[1:] == ["example: 1 cluster no longer failed in eastus"]


def test_a_message_is_masked_before_it_leaves_whatever_a_fact_has() -> None:
    secret = "canary-of-a-secret-51ab"
    cloud = MemoryCloud()
    routes = (OPS, "{name: issues, type: issues}")
    cloud.with_ports(lambda ports: masked(ports, Masker([secret])))
    push(cloud, notified_fleet("one", routes=routes))
    cloud.run()
    leaked = Notification(
        "failed:one:x",
        NotificationKind.FAILED,
        "cluster:one",
        "one",
        cloud.clock(),
        detail=f"at {secret}",
        diff=f"+{secret}",
    )
    cloud.state.add_notification(leaked)
    wake_notifier(cloud.ports)
    cloud.run(60)
    (message,) = cloud.routes.delivered["ops"]
    (issue,) = cloud.repository.pulls.issues.listed()
    assert "***" in message.text
    assert "***" in issue.body
    assert secret not in str(message) + issue.body


def test_a_list_that_goes_on_failing_is_one_message_whatever_the_number_of_sweeps() -> None:
    cloud = cloud_with(notified_fleet("one"))
    read = cloud.ports.azure

    def refuse(_: ListClusters) -> None:
        raise Unauthorized("the identity of control may not list")

    on_azure(cloud, ListClusters, refuse)
    for _ in range(3):
        sweep(cloud)
        for _ in range(3):
            cloud.run_timers(cloud.ports)
            cloud.run(1200)
    assert kinds(cloud) == [(NotificationKind.SWEEP, ONE.subscription, False)]
    on_azure(cloud, ListClusters, read.call)
    sweep(cloud)
    cloud.run_timers(cloud.ports)
    cloud.run(1200)
    assert kinds(cloud)[1:] == [(NotificationKind.SWEEP, ONE.subscription, True)]


def test_it_is_known_what_was_sent_to_whom_and_whether_it_arrived() -> None:
    cloud = with_failures("one")
    (view,) = routes_view(cloud.ports)["routes"]
    title = "example: 1 cluster failed in eastus: InvalidManifest"
    assert [(message["title"], message["problem"]) for message in view["messages"]] == [(title, "")]
    cloud.routes.failing["ops"] = Unavailable("no answer")
    assert replay("one", "ann", cloud.ports).status == 202
    cloud.run()
    ended = "example: 1 cluster no longer failed in eastus"
    (view,) = routes_view(cloud.ports)["routes"]
    told = [(message["title"], message["problem"]) for message in view["messages"]]
    assert told == [(ended, "Unavailable: no answer"), (title, "")]
    del cloud.routes.failing["ops"]
    cloud.run(7200)
    (view,) = routes_view(cloud.ports)["routes"]
    told = [(message["title"], message["problem"]) for message in view["messages"]]
    again = "example: 1 route failing: Unavailable; now delivering again"
    assert told == [(again, ""), (ended, ""), (title, "")]
