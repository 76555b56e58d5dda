"""``roadstead wait``: when it succeeds, and when it gives up at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from cli.commands.watch import wait as command
from cli.errors import CommandError
from cli.fleet_api.client import Api
from cli.fleet_api.commits import PlannedCommit
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from shared.cluster.divergence.trial import Trial
from shared.cluster.failures.errors import Unavailable
from shared.cluster.record import ClusterRecord
from tests.support import fleet_files
from tests.support.function_calls import ADMIN_KEY
from tests.support.pipeline_runs import push, pushed, ready
from tests.support.replaced_ports import around
from tests.support.roadstead_command import roadstead
from tests.support.served_api import served

pytestmark = pytest.mark.lives

NEXT = fleet_files.fleet("one", "two") | {"clusters/one/cluster.yaml": fleet_files.cluster("one", count=3)}


@contextmanager
def client(cloud: MemoryCloud) -> Iterator[Api]:
    with served(cloud.ports) as url, Api(url, ADMIN_KEY) as api:
        yield api


@pytest.fixture
def cloud() -> MemoryCloud:
    return ready("one", "two")


def test_it_says_what_state_the_cluster_has_at_which_generation_and_commit(
    cloud: MemoryCloud, url: str
) -> None:
    commit = cloud.state.fleet().commit
    for options in ([], ["--commit", commit], ["--commit", f"plan/{commit[:8]}"]):
        done = roadstead("wait", "cluster/one", "two", *options, ROADSTEAD_URL=url)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines() == [
            f"{name} is Ready at generation 1 (commit {commit[:8]})" for name in ("one", "two")
        ]


def test_a_commit_that_is_not_planned_is_waited_for_although_the_cluster_is_ready(
    cloud: MemoryCloud, url: str
) -> None:
    commit = cloud.repository.push(NEXT)  # its webhook was lost
    done = roadstead("wait", "one", "--commit", commit, "--timeout", "1", ROADSTEAD_URL=url)
    assert (done.returncode, done.stdout) == (1, f"one: commit {commit[:8]} is not planned yet\n")
    assert f"not ready after 1 s: one: commit {commit[:8]} is not planned yet" in done.stderr
    accept(pushed(cloud, commit), cloud.ports)
    cloud.run()
    done = roadstead("wait", "one", "--commit", commit, ROADSTEAD_URL=url)
    assert done.stdout == f"one is Ready at generation 2 (commit {commit[:8]})\n", done.stderr


def test_a_commit_that_was_planned_counts_with_the_newest_plan(cloud: MemoryCloud, url: str) -> None:
    first = cloud.state.fleet().commit
    newest = push(cloud, NEXT)
    cloud.run()
    done = roadstead("wait", "one", "--commit", first, ROADSTEAD_URL=url)
    assert done.stdout == f"one is Ready at generation 2 (commit {newest[:8]})\n", done.stderr


def test_a_commit_that_was_skipped_counts_as_planned_from_the_second_later_plan_on(
    cloud: MemoryCloud,
) -> None:
    with client(cloud) as api:
        planned = PlannedCommit(api, "0123456789abcdef")
        assert planned.plan() is None
        for number, contained in ((3, False), (4, True)):
            cloud.clock.advance(timedelta(minutes=1).total_seconds())
            file = fleet_files.cluster("one", count=number)
            commit = push(cloud, NEXT | {"clusters/one/cluster.yaml": file})
            cloud.run()
            plan = planned.plan()
            assert (plan and plan["commit"]) == (commit if contained else None)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (NEXT | {"clusters/one/cluster.yaml": b"kind: Cluster\n"}, "one: invalid: clusters/one/cluster.yaml"),
        (fleet_files.fleet("two"), "has no cluster one"),
    ],
)
def test_it_fails_at_once_when_the_plan_does_not_do_what_the_commit_requests(
    cloud: MemoryCloud, url: str, files: dict[str, bytes], message: str
) -> None:
    commit = push(cloud, files)
    cloud.run()
    done = roadstead("wait", "one", "--commit", commit, ROADSTEAD_URL=url)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr


def test_it_fails_at_once_when_the_plan_does_only_a_part_of_it(cloud: MemoryCloud, url: str) -> None:
    lowered = fleet_files.cluster("one", count=3, extra='  kubernetesVersion: "1.35"\n')
    commit = push(cloud, NEXT | {"clusters/one/cluster.yaml": lowered})
    cloud.run()
    done = roadstead("wait", "one", "--commit", commit, ROADSTEAD_URL=url)
    assert (done.returncode, done.stdout) == (1, "")
    assert "one: update: runs 1.36.3, git has 1.35: AKS never goes back" in done.stderr


def test_a_cluster_that_tries_something_or_whose_stage_is_behind_is_waited_for(
    cloud: MemoryCloud, url: str
) -> None:
    commit, known = cloud.state.fleet().commit, cloud.state.cluster("one")
    assert known is not None
    at = cloud.clock()
    trial = Trial(7, "d" * 40, "files", "ann", at, at + timedelta(hours=1))
    tried = cloud.state.save(replace(known, divergence=replace(known.divergence, trial=trial)))
    wait = "wait", "one", "--timeout", "1s"
    done = roadstead(*wait, ROADSTEAD_URL=url)
    assert (done.returncode, done.stdout.startswith("one: Ready: tries pull request 7 at")) == (1, True)
    cloud.state.save(replace(tried, divergence=known.divergence))
    plan = cloud.state.plan(commit)
    assert plan is not None
    items = tuple(replace(item, lags=True) for item in plan.plan.items)
    around(cloud, "state", plan=lambda _: replace(plan, plan=replace(plan.plan, items=items)))
    with served(cloud.ports) as behind:
        assert roadstead(*wait, "--commit", commit, ROADSTEAD_URL=behind).returncode == 1
        assert roadstead(*wait, ROADSTEAD_URL=behind).returncode == 0


def test_an_earlier_failure_does_not_end_it_before_the_commit_is_accepted(cloud: MemoryCloud) -> None:
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs are left")
    push(cloud, NEXT)
    cloud.run()
    with client(cloud) as api:
        plan = api.plan(cloud.state.fleet().commit)
        with pytest.raises(CommandError, match="one is Failed"):
            command._progress(api, "one", command.AwaitedState.READY, plan)
        plan["items"][0]["generation"] += 1
        assert not command._progress(api, "one", command.AwaitedState.READY, plan)[0]


def test_a_deleted_cluster_is_reported(cloud: MemoryCloud, url: str) -> None:
    commit = push(cloud, fleet_files.fleet("two"))
    cloud.run()
    done = roadstead("wait", "one", "--for", "deleted", "--commit", commit, ROADSTEAD_URL=url)
    assert (done.returncode, done.stdout) == (0, "one is deleted\n")


def test_a_name_that_the_fleet_never_had_is_not_said_to_be_deleted(cloud: MemoryCloud, url: str) -> None:
    done = roadstead("wait", "onne", "--for", "deleted", ROADSTEAD_URL=url)
    assert "is deleted" not in done.stdout
    assert done.stdout.endswith("did you mean one?\n")


def test_who_must_act_is_said_while_a_delete_waits_for_an_approval(cloud: MemoryCloud, url: str) -> None:
    commit = push(cloud, fleet_files.fleet())[:8]
    cloud.run()
    done = roadstead("wait", "one", "--for=deleted", "--timeout=1s", ROADSTEAD_URL=url)
    assert done.stdout == (
        "one: Ready; needs approval: the commit removes 2 clusters, guards.deleteBudget in fleet.yaml "
        f"allows 1; `roadstead approve {commit}` releases the deletes, or a commit that raises the budget.\n"
    )


def test_an_app_that_does_not_answer_for_a_while_is_waited_for(cloud: MemoryCloud) -> None:
    read, answers = cloud.ports.state.cluster, iter(("not yet", "503"))

    def cluster(name: str) -> ClusterRecord | None:
        record, answer = read(name), next(answers, "")
        if answer == "503":
            raise Unavailable("Table Storage did not answer")
        return replace(record, generation=2) if record and answer else record

    around(cloud, "state", cluster=cluster)
    with served(cloud.ports) as address:
        done = roadstead("wait", "one", ROADSTEAD_URL=address)
    assert (done.returncode, done.stderr) == (0, "")
    failed = "a service that Roadstead needs has failed: Unavailable: Table Storage did not answer"
    assert done.stdout.splitlines()[:2] == ["one: Ready", f"{address} answered 503: {failed}"]
    assert done.stdout.splitlines()[2].startswith("one is Ready at generation 1")


def test_an_app_that_has_never_answered_is_not_waited_for() -> None:
    done = roadstead("wait", "one", ROADSTEAD_URL="http://127.0.0.1:1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no answer from http://127.0.0.1:1" in done.stderr


@pytest.mark.parametrize("commit", ["abc", "main", "../clusters", "x" * 40])
def test_a_commit_that_is_no_id_is_a_usage_error(url: str, commit: str) -> None:
    done = roadstead("wait", "one", "--commit", commit, ROADSTEAD_URL=url)
    assert (done.returncode, done.stdout) == (2, "")
    assert "must be a commit id, or at least 8 characters of one" in done.stderr


def test_a_delete_that_needs_an_approval_is_not_waited_for(cloud: MemoryCloud, url: str) -> None:
    commit = push(cloud, fleet_files.fleet())
    cloud.run()
    options = ["--for", "deleted", "--commit", commit, "--timeout", "4s"]
    done = roadstead("wait", "one", *options, ROADSTEAD_URL=url)
    assert (done.returncode, done.stdout) == (1, "")
    assert "one: on-hold: the commit removes 2 clusters, guards.deleteBudget" in done.stderr
    assert done.stderr.endswith("see roadstead why one\n")
