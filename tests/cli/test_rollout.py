"""``roadstead rollout``: what waits and why, and what an operator can do about it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console

from cli.commands.watch.rollouts import WAITS_SHOWN
from cli.commands.watch.rollouts import rollout_view as shown_rollout
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.rollouts import rollout_view
from shared.cluster.failures.errors import Unavailable
from shared.cluster.record_parts import Phase
from shared.rollouts.rollout import Rollout, RolloutState
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import around
from tests.support.roadstead_command import roadstead
from tests.support.served_api import served
from tests.support.staged_fleets import DEV, PROD, changed, ready_fleet, rollout_of, staged, tags

pytestmark = pytest.mark.lives

APPROVED = """\
  rollout:
    stages:
      - {name: first, select: {environments: [development]}, groups: [{maxConcurrency: "100%"}]}
      - {name: second, approval: true, groups: [{maxConcurrency: "100%"}]}
"""

FREEZE = """\
  rollout:
    stages: [{{name: all, groups: [{{maxConcurrency: "100%"}}]}}]
    freezes:
      - {{name: holidays, starts: "{starts}", ends: "{ends}", owner: platform, reason: nobody is here}}
"""


@pytest.fixture
def cloud() -> MemoryCloud:
    """A cloud in which a rollout waits for the approval of its second stage."""
    made = ready_fleet(APPROVED)
    push(made, staged(APPROVED, tags("one")))
    made.run()
    assert changed(made, "one") == {*DEV}
    return made


def run(url: str, *arguments: str) -> str:
    done = roadstead("rollout", *arguments, ROADSTEAD_URL=url)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_rollout_is_shown_with_its_stages_and_what_its_clusters_wait_for(
    cloud: MemoryCloud, url: str
) -> None:
    assert "Waiting for approval" in run(url, "list")
    shown = run(url, "show")
    assert "stage first" in shown
    assert "group 1: 3 of 3 ready, 0 changing (3 at a time, budget 3)" in shown
    assert "stage second  approval needed" in shown
    assert "left: about 5m, 2m to 15m (assumed, because fewer than 5 other changes have ended" in shown
    assert "4 clusters (b1, b2, b3, b4): waits for an approval of stage second" in shown
    assert "roadstead rollout approve second" in shown
    why = json.loads(roadstead("why", "b1", "-o", "json", ROADSTEAD_URL=url).stdout)
    assert (why["rollout"]["reason"], why["rollout"]["stage"]) == ("approval", "second")
    assert "roadstead rollout approve second" in why["suggestedAction"]
    assert "waits for an approval of stage second" in roadstead("why", "b1", ROADSTEAD_URL=url).stdout
    assert "rollout waiting for approval" in roadstead("status", ROADSTEAD_URL=url).stdout


def test_an_approval_lets_the_stage_begin_and_is_recorded(cloud: MemoryCloud, url: str) -> None:
    commit = cloud.state.fleet().commit
    assert "approve second is queued" in run(url, "approve", "second", "--reason", "tested")
    cloud.run()
    assert changed(cloud, "one") == {*DEV, *PROD}
    rollout = rollout_of(cloud, commit)
    assert rollout.state is RolloutState.COMPLETED
    assert [(approval.subject, approval.reason) for approval in rollout.people.approved] == [
        ("second", "tested")
    ]
    assert [act.action for act in cloud.state.acts(5)] == ["rollout-approve"]
    assert "Completed" in run(url, "list")


def test_a_stage_without_a_need_cannot_be_approved(cloud: MemoryCloud, url: str) -> None:
    refused = roadstead("rollout", "approve", "first", ROADSTEAD_URL=url)
    assert refused.returncode == 1
    assert "an approval is of a stage that waits for one, and second does" in refused.stderr


def test_a_misspelt_stage_and_cluster_are_answered_with_the_ones_that_were_meant(
    cloud: MemoryCloud, url: str
) -> None:
    commit = cloud.state.fleet().commit[:8]
    refused = roadstead("rollout", "approve", "secnod", ROADSTEAD_URL=url)
    assert refused.returncode == 1
    assert f"the rollout of {commit} has no stage secnod; did you mean second?" in refused.stderr
    other = roadstead("rollout", "approve", "x", ROADSTEAD_URL=url)
    assert f"the rollout of {commit} has no stage x; it has first, second" in other.stderr


def test_a_pause_a_resume_and_an_abort(cloud: MemoryCloud, url: str) -> None:
    commit = cloud.state.fleet().commit
    run(url, "pause", "--reason", "lunch")
    cloud.run()
    assert "Paused" in run(url, "show", commit[:8])
    assert "pause" in run(url, "show")
    run(url, "resume")
    cloud.run()
    assert "Waiting for approval" in run(url, "show")
    run(url, "abort", "--yes")
    cloud.run()
    assert rollout_of(cloud, commit).state is RolloutState.ABORTED
    assert changed(cloud, "one") == {*DEV}
    assert "back is queued" in run(url, "abort", "--back", "--yes")
    cloud.run()
    assert rollout_of(cloud, commit).people.back is not None
    refused = roadstead("rollout", "pause", ROADSTEAD_URL=url)
    assert "is not under way: aborted" in refused.stderr


def test_a_cluster_is_taken_out(cloud: MemoryCloud, url: str) -> None:
    run(url, "skip", "b1")
    run(url, "approve", "second")
    cloud.run()
    assert changed(cloud, "one") == {*DEV, *PROD} - {"b1"}
    unknown = roadstead("rollout", "skip", "other", ROADSTEAD_URL=url)
    assert unknown.returncode == 1


def test_without_a_rollout_the_command_says_so(url: str, cloud: MemoryCloud) -> None:
    push(cloud, staged("", tags("one")))
    cloud.run()
    nothing = roadstead("rollout", "pause", ROADSTEAD_URL=url)
    assert nothing.returncode == 1
    assert "no rollout is under way" in nothing.stderr


def test_a_plan_of_the_files_shows_the_stages_and_where_approvals_are_asked(
    cloud: MemoryCloud, url: str, tmp_path: Path
) -> None:
    for path, content in staged(APPROVED, tags("two")).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    shown = roadstead("plan", str(tmp_path), ROADSTEAD_URL=url).stdout
    assert "  stage first\n    group 1 (3 at a time, failure budget 3): a1, a2, a3" in shown
    assert (
        "  stage second  waits for an approval\n    group 1 (4 at a time, failure budget 4): b1, b2" in shown
    )
    assert "  duration: about 10m, 4m to 30m (assumed, because fewer than 5 other changes" in shown
    found = json.loads(roadstead("plan", str(tmp_path), "-o", "json", ROADSTEAD_URL=url).stdout)["rollout"]
    assert (found["estimate"]["kind"], found["estimate"]["likelySeconds"]) == ("any", 600)
    assert [(group["stage"], group["approvals"], group["clusters"]) for group in found["groups"]] == [
        ("first", 0, [*DEV]),
        ("second", 1, [*PROD]),
    ]


def test_the_failed_clusters_of_a_rollout_start_again(url: str, cloud: MemoryCloud) -> None:
    cloud.azure.interventions.fail_next("b1", "InvalidParameter", "no vCPUs are left")
    run(url, "approve", "second")
    cloud.run(seconds=1800)
    assert phases(cloud)["b1"] is Phase.FAILED
    assert "b1: started again" in run(url, "retry", "--reason", "the quota is raised")
    cloud.run()
    assert phases(cloud)["b1"] is Phase.READY
    assert cloud.state.acts(1)[0].action == "replay"


def test_a_retry_without_a_failure_says_so(url: str, cloud: MemoryCloud) -> None:
    assert "No cluster of the rollout" in run(url, "retry")


def test_a_rollout_is_followed_until_it_has_ended(url: str, cloud: MemoryCloud) -> None:
    waits = roadstead("rollout", "watch", "--timeout", "1s", ROADSTEAD_URL=url)
    assert waits.returncode == 1
    assert "rollout waiting for approval" in waits.stdout
    assert "has not ended after 1s" in waits.stderr
    run(url, "approve", "second")
    cloud.run()
    assert "rollout completed, 7 of 7 clusters ready" in run(url, "watch")


def test_a_rollout_is_followed_on_after_an_app_did_not_answer(cloud: MemoryCloud) -> None:
    read, answers = cloud.ports.state.rollout, iter(("", "503"))

    def rollout(commit: str) -> Rollout | None:
        if next(answers, "") == "503":
            raise Unavailable("Table Storage did not answer")
        return read(commit)

    around(cloud, "state", rollout=rollout)
    with served(cloud.ports) as address:
        waits = roadstead("rollout", "watch", "--timeout", "3s", ROADSTEAD_URL=address)
    assert "has not ended after 3s" in waits.stderr
    lines = [splitline[10:] for splitline in waits.stdout.splitlines()]
    assert lines[0] == lines[2] != lines[1]
    assert lines[1].startswith(f"{address} answered 503: a service that Roadstead needs has failed")


def test_a_rollout_that_ended_with_failures_is_a_failure_of_the_command_that_follows_it(
    url: str, cloud: MemoryCloud
) -> None:
    run(url, "abort", "--yes")
    cloud.run()
    ended = roadstead("rollout", "watch", ROADSTEAD_URL=url)
    assert (ended.returncode, "ended: Aborted" in ended.stderr) == (1, True)


def test_a_rollout_that_no_planner_goes_on_with_has_ended_for_the_command_that_follows_it(
    url: str, cloud: MemoryCloud
) -> None:
    left = replace(rollout_of(cloud, cloud.state.fleet().rollout), commit="f" * 40, etag="")
    cloud.state.save_rollout(left)
    ended = roadstead("rollout", "watch", "f" * 40, "--timeout", "1s", ROADSTEAD_URL=url)
    assert f"ended: Superseded by {cloud.state.fleet().commit[:8]}" in ended.stderr


def test_an_override_of_a_freeze_needs_a_reason_and_is_shown_and_recorded(
    url: str, cloud: MemoryCloud
) -> None:
    now = cloud.clock()
    freeze = FREEZE.format(starts=now.isoformat(), ends=(now + timedelta(days=9)).isoformat())
    commit = push(cloud, staged(freeze, tags("two")))
    cloud.run(seconds=60)
    shown = run(url, "show")
    assert "Waiting for a freeze to end" in shown
    assert "because of the freeze holidays of platform (nobody is here)" in shown
    assert "give a --reason" in roadstead("rollout", "override", ROADSTEAD_URL=url).stderr
    run(url, "override", "--reason", "the certificate ends today")
    cloud.run()
    assert changed(cloud, "two") == {*DEV, *PROD}
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED
    act = cloud.state.acts(1)[0]
    assert (act.action, act.reason) == ("rollout-override", "the certificate ends today")
    assert "override" in run(url, "show", commit[:8])


def test_an_override_is_of_what_a_freeze_still_holds_after_the_rollout_of_its_commit_has_ended(
    url: str, cloud: MemoryCloud
) -> None:
    now = cloud.clock()
    freeze = FREEZE.format(starts=now.isoformat(), ends=(now + timedelta(days=9)).isoformat())
    files = staged(freeze.replace("nobody is here}", "nobody is here, appliesTo: [deletes]}"), tags("two"))
    del files["clusters/b1/cluster.yaml"]
    commit = push(cloud, files)
    cloud.run(seconds=3600)
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED
    why = json.loads(roadstead("why", "b1", "-o", "json", ROADSTEAD_URL=url).stdout)
    assert "`roadstead rollout override --reason TEXT` lets it start" in why["suggestedAction"]
    assert "override is queued" in run(url, "override", "--reason", "a leak")
    cloud.run()
    assert "b1" not in phases(cloud)


def test_an_override_before_the_first_plan_says_that_there_is_no_rollout() -> None:
    with served(MemoryCloud().ports) as address:
        done = roadstead("rollout", "override", "--reason", "a leak", ROADSTEAD_URL=address)
    assert (done.returncode, done.stderr) == (1, "roadstead: no rollout is under way\n")


def test_clusters_that_wait_for_more_reasons_than_are_shown_are_counted(url: str, cloud: MemoryCloud) -> None:
    view = rollout_view(cloud.state.fleet().commit, cloud.ports)
    assert view is not None
    one = view["waiting"][0]
    view["waiting"] = [{**one, "cluster": f"c{n}", "waits": f"waits for {n}"} for n in range(WAITS_SHOWN + 3)]
    out = Console(width=80)
    with out.capture() as captured:
        out.print(shown_rollout(view, cloud.clock()))
    assert captured.get().count("1 cluster (c") == WAITS_SHOWN
    assert "and 3 more clusters, each with its reason in -o json" in captured.get()
