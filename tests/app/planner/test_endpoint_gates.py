"""Gates that ask an endpoint or a Prometheus, in the pipeline."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from rich.console import Console

from cli.commands.watch.rollouts import rollout_view as rendered
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.rollouts import rollout_view
from shared.app.outbox import send
from shared.cluster.failures.errors import Unavailable
from shared.cluster.queues.messages import RolloutRequest
from shared.masking import Masker
from shared.ports.masked import masked
from shared.rollouts.rollout import RolloutState
from tests.support.gated_stages import ERRORS, change, check_of, gated, waits
from tests.support.pipeline_runs import push, status, step_until
from tests.support.staged_fleets import DEV, FREEZE, PROD, act, changed, ready_fleet, rollout_of, staged, tags

pytestmark = pytest.mark.lives

SHOP, PROMETHEUS = "https://shop.example.com/healthz", "https://prometheus.example.com"
HTTP = gated(f"httpChecks: [{{name: shop, url: {SHOP}, interval: 2m, consecutiveSuccessLimit: 3}}]")
QUERY = gated(
    f"prometheusChecks: [{{name: errors, url: {PROMETHEUS}, query: '{ERRORS}', "
    "thresholdRange: {max: 0.5}, failureLimit: 1}]"
)
BOTH = gated(
    f"httpChecks: [{{name: shop, url: {SHOP}, failureLimit: 20}}], "
    f"prometheusChecks: [{{name: errors, url: {PROMETHEUS}, query: '{ERRORS}'}}]"
)


def begun(
    rollout: str, *, hosts: tuple[str, ...] = ("shop.example.com", "prometheus.example.com")
) -> MemoryCloud:
    """Return a fleet that is Ready, with the hosts that are allowed."""
    cloud = ready_fleet(rollout)
    cloud.endpoints.hosts.update(hosts)
    return cloud


def test_a_stage_begins_after_so_many_answers_with_the_status_in_a_row_one_in_each_interval() -> None:
    cloud = begun(HTTP)
    cloud.endpoints.statuses[SHOP] = 200
    commit = change(cloud, HTTP, seconds=60)
    while len(cloud.endpoints.asked) < 2:
        cloud.run(seconds=30)
    assert changed(cloud, "one") == {*DEV}
    text, action = waits(cloud)
    assert "shop running (status 200 at " in text
    assert "UTC, a success is status 200; 2 of 3 consecutive successes) (qa: the shop answers)" in text
    assert "once its checks have passed" in action
    found = check_of(cloud, commit, "shop")
    assert (found["kind"], found["state"], found["consecutiveSuccesses"]) == ("http", "running", 2)
    assert found["askedAt"] is not None
    assert found["nextAt"] is not None
    cloud.run(seconds=180)
    assert changed(cloud, "one") == {*DEV, *PROD}
    cloud.run()
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED
    assert len(cloud.endpoints.asked) == 3
    asked = check_of(cloud, commit, "shop")
    assert (asked["state"], asked["nextAt"]) == ("passed", None)


def test_one_failure_is_one_and_not_several(capsys: pytest.CaptureFixture[str]) -> None:
    cloud = begun(QUERY)
    cloud.endpoints.values[ERRORS] = [0.75]
    commit = push(cloud, staged(QUERY, tags("one")))
    step_until(cloud, lambda: len(cloud.endpoints.asked) == 1)
    assert "a success is at most 0.5; 1 failure, 1 allowed)" in waits(cloud)[0]
    shown = rollout_view(commit, cloud.ports)
    assert shown is not None
    Console(width=200).print(rendered(shown, cloud.clock()))
    assert "expected at most 0.5 (1 failure, 1 allowed)" in capsys.readouterr().out


def test_a_failure_ends_what_was_in_a_row_and_one_more_than_the_limit_holds_the_stage_for_good() -> None:
    cloud = begun(QUERY)
    cloud.endpoints.values[ERRORS] = [0.25, 0.75]
    commit = change(cloud, QUERY, seconds=3600)
    assert changed(cloud, "one") == {*DEV}
    assert len(cloud.endpoints.asked) == 2
    text, action = waits(cloud)
    assert "errors failed too often (0.25, 0.75 at " in text
    assert "a success is at most 0.5; 2 failures, 1 allowed)" in text
    assert "Nobody asks errors again for this commit; the rollout of a newer commit does." in action
    assert status(cloud, commit)[1].startswith(
        "3 of 7 clusters in sync; rollout stopped: a check failed too often, 3 of 7 clusters ready"
    )
    cloud.endpoints.values[ERRORS] = [0.25]
    cloud.run(seconds=86400)
    assert (len(cloud.endpoints.asked), changed(cloud, "one")) == (2, {*DEV})
    found = check_of(cloud, commit, "errors")
    assert (found["failures"], found["failureLimit"], found["nextAt"]) == (2, 1, None)


def test_a_newer_commit_asks_anew_and_an_override_starts_the_stage_too() -> None:
    cloud = begun(QUERY)
    cloud.endpoints.values[ERRORS] = [9.0]
    change(cloud, QUERY, seconds=3600)
    cloud.endpoints.values[ERRORS] = [0.0]
    change(cloud, QUERY, "two", seconds=1200)
    assert changed(cloud, "two") == {*DEV, *PROD}
    cloud.run()
    cloud.endpoints.values[ERRORS] = [9.0]
    third = change(cloud, QUERY, "three", seconds=3600)
    assert changed(cloud, "three") == {*DEV}
    act(cloud, third, "override")
    cloud.run(seconds=600)
    assert changed(cloud, "three") == {*DEV, *PROD}


@pytest.mark.parametrize("values", [[], [float("nan")]])
def test_no_value_and_no_number_begin_no_stage(values: list[float]) -> None:
    cloud = begun(QUERY)
    cloud.endpoints.values[ERRORS] = values
    change(cloud, QUERY, seconds=3600)
    assert changed(cloud, "one") == {*DEV}
    assert ("errors missing (no value at" if not values else "errors failed too often (nan") in waits(cloud)[
        0
    ]


def test_without_the_setting_a_stage_waits_says_who_must_act_and_nothing_is_asked() -> None:
    cloud = begun(HTTP, hosts=())
    cloud.endpoints.statuses[SHOP] = 200
    commit = change(cloud, HTTP, seconds=3600)
    assert changed(cloud, "one") == {*DEV}
    assert cloud.endpoints.asked == []
    assert (
        "shop unknown (Dependency: nobody has allowed shop.example.com in ROLLOUT_CHECK_HOSTS"
        in waits(cloud)[0]
    )
    cloud.endpoints.hosts.add("shop.example.com")
    cloud.run(seconds=7200)
    assert changed(cloud, "one") == {*DEV, *PROD}
    assert check_of(cloud, commit, "shop")["failures"] == 0


def test_an_endpoint_that_is_away_is_no_failure_is_asked_less_and_less_and_opens_nothing() -> None:
    cloud = begun(HTTP)
    cloud.endpoints.statuses[SHOP] = Unavailable("shop.example.com does not answer: ConnectTimeout")
    commit = change(cloud, HTTP, seconds=86400)
    assert changed(cloud, "one") == {*DEV}
    assert 24 * 4 <= len(cloud.endpoints.asked) <= 24 * 4 + 40
    found = check_of(cloud, commit, "shop")
    assert (found["state"], found["failures"]) == ("unknown", 0)


def test_an_answer_is_not_old_when_a_stage_begins() -> None:
    cloud = begun(BOTH)
    cloud.endpoints.statuses[SHOP] = 200
    commit = change(cloud, BOTH, seconds=3600)
    assert check_of(cloud, commit, "shop")["state"] == "passed"
    cloud.endpoints.statuses[SHOP] = 503
    cloud.run(seconds=600)
    cloud.endpoints.values[ERRORS] = [1.0]
    cloud.run(seconds=600)
    assert check_of(cloud, commit, "shop")["state"] == "failed"
    assert changed(cloud, "one") == {*DEV}
    cloud.endpoints.statuses[SHOP] = 200
    cloud.run(seconds=1800)
    assert changed(cloud, "one") == {*DEV, *PROD}


def test_an_answer_is_not_old_when_a_freeze_ends() -> None:
    cloud = begun(HTTP)
    starts, ends = (f"{cloud.ports.clock() + timedelta(hours=n):%Y-%m-%dT%H:%M:%SZ}" for n in (-1, 6))
    frozen = HTTP + FREEZE.format(starts=starts, ends=ends).removeprefix("  rollout:\n")
    cloud.endpoints.statuses[SHOP] = 200
    commit = change(cloud, frozen, seconds=3600)
    assert changed(cloud, "one") == {*DEV}
    assert cloud.endpoints.asked == []
    cloud.endpoints.statuses[SHOP] = 503
    cloud.run(seconds=5 * 3600 + 120)
    assert changed(cloud, "one") == {*DEV}
    assert check_of(cloud, commit, "shop")["state"] == "failed"
    cloud.endpoints.statuses[SHOP] = 200
    cloud.run(seconds=600)
    assert changed(cloud, "one") == {*DEV, *PROD}


def test_nothing_is_asked_while_a_rollout_is_paused_and_its_answers_are_new_afterwards() -> None:
    cloud = begun(HTTP)
    cloud.endpoints.statuses[SHOP] = 200
    commit = push(cloud, staged(HTTP, tags("one")))
    step_until(cloud, lambda: changed(cloud, "one") == {*DEV})
    act(cloud, commit, "pause")
    cloud.run(seconds=3600)
    assert cloud.endpoints.asked == []
    assert check_of(cloud, commit, "shop")["nextAt"] is None
    act(cloud, commit, "resume")
    cloud.run(seconds=600)
    assert len(cloud.endpoints.asked) == 3
    assert changed(cloud, "one") == {*DEV, *PROD}


def test_the_same_message_again_asks_nothing_again_and_counts_nothing_twice() -> None:
    cloud = begun(HTTP)
    cloud.endpoints.statuses[SHOP] = 200
    commit = change(cloud, HTTP, seconds=60)
    while not cloud.endpoints.asked:
        cloud.run(seconds=10)
    for _ in range(5):
        send(RolloutRequest(), cloud.ports)
        cloud.run(seconds=5)
    assert len(cloud.endpoints.asked) == 1
    assert check_of(cloud, commit, "shop")["consecutiveSuccesses"] == 1


def test_the_wait_of_a_check_is_stable_on_the_commit_and_no_question_changes_it() -> None:
    cloud = begun(QUERY.replace("failureLimit: 1", "failureLimit: 20"))
    rollout = QUERY.replace("failureLimit: 1", "failureLimit: 20")
    cloud.endpoints.values[ERRORS] = [1.5]
    commit = change(cloud, rollout, seconds=400)
    first = status(cloud, commit)[1]
    cloud.endpoints.values[ERRORS] = [2.5]
    cloud.run(seconds=120)
    assert "2.5" in waits(cloud)[0]
    assert status(cloud, commit)[1] == first


def test_what_an_answer_says_is_masked_and_the_address_is_asked_as_git_has_it() -> None:
    cloud = begun(HTTP)
    hidden = "healthz"
    cloud.with_ports(lambda ports: masked(replace(ports), Masker([hidden])))
    cloud.endpoints.statuses[SHOP] = Unavailable("healthz-2 does not answer")
    commit = change(cloud, HTTP, seconds=300)
    assert "Unavailable: ***-2 does not answer" in check_of(cloud, commit, "shop")["answer"]
    cloud.endpoints.statuses[SHOP] = 200
    cloud.run(seconds=timedelta(hours=1).total_seconds())
    assert changed(cloud, "one") == {*DEV, *PROD}
