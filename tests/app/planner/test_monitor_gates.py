"""Gates that ask Azure Monitor, in the pipeline."""

from __future__ import annotations

from datetime import timedelta

import pytest

from localcloud.azure.world.catalog import SUBSCRIPTION
from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.memory.memory_monitor import constant
from shared.cluster.failures.errors import Unauthorized
from shared.rollouts.monitored import Series
from tests.support.gated_stages import change, check_of, waits
from tests.support.pipeline_runs import push, step_until
from tests.support.staged_fleets import DEV, PROD, changed, ready_fleet, staged, tags

pytestmark = pytest.mark.lives(4)

ERRORS = "sum(rate(errors_total[5m]))"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-shop"
STAGES = """\
  rollout:
    stages:
      - {{name: first, select: {{environments: [development]}}, groups: [{{maxConcurrency: "100%"}}]}}
      - name: second
        groups: [{{maxConcurrency: "100%"}}]
        gate: {{owner: qa, reason: the shop sells, {checks}}}
"""
QUERY = STAGES.format(
    checks=f"azureMonitorChecks: [{{name: errors, workspace: shop, query: '{ERRORS}', "
    "pass: '< 0.01', over: 30m}]"
)
ALERTS = STAGES.format(
    checks=f"alertChecks: [{{name: quiet, scope: {GROUP}, severity: Sev1, failureLimit: 20}}]"
)


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
    assert "UTC, a success is < 0.01 over 30 minutes; 1 failure, 3 allowed) (qa: the shop sells)" in text
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
