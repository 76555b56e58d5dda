"""Gates that ask Azure Monitor, in the pipeline."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from localcloud.azure.world.catalog import SUBSCRIPTION
from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.memory.memory_monitor import constant
from shared.app.planner.gate_checks import MOST_ALERTS
from shared.azure.rate_limits import ARM_READ
from shared.cluster.failures.errors import Unauthorized
from shared.rollouts.monitored import Series
from tests.support.gated_stages import ERRORS, change, check_of, gated, waits
from tests.support.pipeline_runs import push, step_until
from tests.support.staged_fleets import DEV, PROD, changed, ready_fleet, staged, tags

pytestmark = pytest.mark.lives

GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-shop"
QUERY = gated(
    f"azureMonitorChecks: [{{name: errors, workspace: shop, query: '{ERRORS}', pass: '< 0.01', over: 30m}}]"
)
ALERTS = gated(f"alertChecks: [{{name: quiet, scope: {GROUP}, severity: Sev1, failureLimit: 20}}]")


def begun(rollout: str, *workspaces: str) -> MemoryCloud:
    cloud = ready_fleet(rollout)
    cloud.monitor.workspaces.update(workspaces)
    return cloud


def test_a_stage_begins_once_every_value_over_the_time_passes_and_why_says_what_was_read_and_when() -> None:
    cloud = begun(QUERY, "shop")
    cloud.monitor.values[ERRORS] = 0.5
    commit = push(cloud, staged(QUERY, tags("one")))
    step_until(cloud, lambda: len(cloud.monitor.asked) == 1)
    text, action = waits(cloud)
    assert "errors failed (0.5 at " in text
    assert "UTC, a success is < 0.01 over 30 minutes; 1 failure, 3 allowed) (qa: the shop answers)" in text
    assert "rollout override" in action
    found = check_of(cloud, commit, "errors")
    assert (found["kind"], found["answer"], found["failures"]) == ("azureMonitor", "0.5", 1)
    cloud.monitor.values[ERRORS] = 0.001
    cloud.run(seconds=300)
    assert changed(cloud, "one") == {*DEV, *PROD}


@pytest.mark.parametrize("answer", ["no data", "2 series", "the newest sample is of"])
def test_an_answer_that_says_nothing_holds_the_stage_counts_no_failure_and_is_shown(answer: str) -> None:
    cloud = begun(QUERY, "shop")
    now = cloud.clock()
    series = constant(0.0, now - timedelta(minutes=30), now)
    old = constant(0.0, now - timedelta(hours=3), now - timedelta(hours=2))
    answers: dict[str, list[Series]] = {"no data": [], "2 series": [series, series]}
    cloud.monitor.answers[ERRORS] = answers.get(answer, [old])
    commit = change(cloud, QUERY, seconds=7200)
    assert changed(cloud, "one") == {*DEV}
    assert f"errors missing ({answer}" in waits(cloud)[0]
    assert check_of(cloud, commit, "errors")["failures"] == 0


def test_a_workspace_that_is_not_allowed_or_not_readable_holds_the_stage_and_says_who_must_act() -> None:
    cloud = begun(QUERY)
    change(cloud, QUERY, seconds=600)
    assert "errors unknown (Dependency: the workspace shop is not in the app setting" in waits(cloud)[0]
    assert cloud.monitor.asked == []
    cloud.monitor.workspaces.add("shop")
    cloud.monitor.answers[ERRORS] = Unauthorized(
        "the identity of the control app may not query the workspace"
    )
    cloud.run(seconds=7200)
    assert "errors unknown (Unauthorized: the identity of the control app may not query" in waits(cloud)[0]
    assert changed(cloud, "one") == {*DEV}


def test_a_stage_waits_while_an_alert_fires_that_is_as_severe() -> None:
    cloud = begun(ALERTS)
    shop = f"{GROUP}/providers/Microsoft.Web/sites/shop"
    alert = cloud.azure.offers.fire(shop, "latency")
    cloud.azure.offers.fire(shop, "disk", "Sev3")
    cloud.azure.offers.fire(shop.replace("rg-shop", "rg-other"), "elsewhere")
    commit = change(cloud, ALERTS, seconds=600)
    assert changed(cloud, "one") == {*DEV}
    assert "quiet failed (latency fires for shop at " in waits(cloud)[0]
    assert "a success is no alert of Sev1 or worse;" in waits(cloud)[0]
    assert check_of(cloud, commit, "quiet")["kind"] == "alerts"
    cloud.azure.offers.resolve(alert)
    cloud.run(seconds=600)
    assert changed(cloud, "one") == {*DEV, *PROD}
    assert check_of(cloud, commit, "quiet")["answer"] == "no alert"


def test_alerts_are_read_with_a_token_and_without_one_the_stage_waits() -> None:
    cloud = begun(ALERTS)
    cloud.azure.offers.fire(f"{GROUP}/providers/Microsoft.Web/sites/shop", "latency")
    commit = change(cloud, ALERTS, seconds=600)
    assert "quiet failed (latency fires for shop at " in waits(cloud)[0]
    failures = check_of(cloud, commit, "quiet")["failures"]
    key = f"{SUBSCRIPTION}|{ARM_READ.common.name}"
    bucket = cloud.state.bucket(key)
    assert bucket is not None
    cloud.state.save_bucket(key, replace(bucket, full_at=cloud.clock() + timedelta(hours=5)))
    cloud.run(seconds=300)
    assert "quiet unknown (Throttled: waits for " in waits(cloud)[0]
    assert check_of(cloud, commit, "quiet")["failures"] == failures


def test_more_alerts_than_are_read_hold_the_stage_also_where_none_of_those_is_severe() -> None:
    cloud = begun(ALERTS)
    shop = f"{GROUP}/providers/Microsoft.Web/sites/shop"
    for number in range(MOST_ALERTS):
        cloud.azure.offers.fire(shop, f"disk-{number}", "Sev3")
    last = cloud.azure.offers.fire(shop, "disk", "Sev3")
    asked = cloud.azure.limits.counts["read"]
    change(cloud, ALERTS, seconds=600)
    assert changed(cloud, "one") == {*DEV}
    assert f"quiet unknown (TooLarge: more than {MOST_ALERTS} alerts fire in the scope" in waits(cloud)[0]
    assert cloud.azure.limits.counts["read"] - asked < 500
    cloud.azure.offers.resolve(last)
    cloud.run(seconds=900)
    assert changed(cloud, "one") == {*DEV, *PROD}
