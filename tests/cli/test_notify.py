"""``roadstead notify``: the routes, how they are, and a test that is audited."""

from __future__ import annotations

import json

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.failures.errors import Unavailable
from tests.support import fleet_files
from tests.support.notifications import notifying
from tests.support.pipeline_runs import cloud_with, push
from tests.support.roadstead_command import on_terminal, plain, roadstead

pytestmark = pytest.mark.lives

ROUTES = (
    "{name: ops, type: slack, address: OPS}",
    "{name: audit, type: webhook, address: AUDIT, events: [ready, deleted]}",
    "{name: tracker, type: issues}",
    "{name: shop, type: teams, address: SHOP, severity: critical, environments: [production], "
    "labels: {team: shop}}",
)


@pytest.fixture
def cloud() -> MemoryCloud:
    return cloud_with(notifying(fleet_files.fleet("one"), *ROUTES))


def test_the_routes_show_what_they_take_and_what_was_sent(url: str) -> None:
    _, shown = on_terminal("notify", columns=120, ROADSTEAD_URL=url)
    assert [row.rstrip() for row in plain(shown).splitlines()] == [
        "4 routes of notifications",
        "ROUTE    TYPE     SENT  WAITING  STATE         TAKES",
        "ops      slack    0              not used yet  warning and above",
        "audit    webhook  1              delivers      ready, deleted",
        "tracker  issues   0              not used yet  warning and above",
        "shop     teams    0              not used yet  critical, of production, with team=shop",
    ]


def test_on_a_narrow_terminal_what_a_route_takes_is_below_it(url: str) -> None:
    _, shown = on_terminal("notify", columns=60, ROADSTEAD_URL=url)
    rows = [row.rstrip() for row in plain(shown).splitlines()]
    assert max(map(len, rows)) <= 60
    assert rows[1] == "ROUTE    TYPE     SENT  WAITING  STATE"
    assert rows[-1] == "    takes critical, of production, with team=shop"


def test_a_route_that_fails_is_shown_with_what_waits_for_it(url: str, cloud: MemoryCloud) -> None:
    cloud.routes.failing["ops"] = Unavailable("the route answers with the status 500")
    cloud.azure.interventions.fail_next("two", "QuotaExceeded", "no vCPUs are left")
    push(cloud, notifying(fleet_files.fleet("one", "two"), *ROUTES))
    cloud.run(60)
    _, shown = on_terminal("notify", columns=80, ROADSTEAD_URL=url)
    rows = [row.rstrip() for row in plain(shown).splitlines()]
    assert max(map(len, rows)) <= 80
    assert rows[0] == "4 routes of notifications, 1 fails"
    (ops,) = [number for number, row in enumerate(rows) if row.startswith("ops")]
    assert rows[ops].split()[:6] == ["ops", "slack", "0", "1", "fails", "for"]
    below = " ".join(" ".join(rows[ops + 1 : ops + 4]).split())
    assert "Unavailable: the route answers with the status 500; tried again in" in below
    _, shown = on_terminal("status", ROADSTEAD_URL=url)
    assert "notifications to ops fail: Unavailable: the route" in " ".join(plain(shown).split())


def test_a_route_is_tested_at_once_and_audited(url: str, cloud: MemoryCloud) -> None:
    tried = roadstead("notify", "--test", "ops", "--reason", "new address", ROADSTEAD_URL=url)
    assert tried.stdout.strip() == "ops: the test message was delivered"
    (message,) = cloud.routes.delivered["ops"]
    assert message.title == "example: a test of the route ops"
    (act,) = [act for act in cloud.state.acts(5) if act.action == "notify"]
    assert (act.target, act.reason) == ("ops", "new address")


def test_a_test_of_a_route_has_the_formats_too(url: str) -> None:
    tried = roadstead("notify", "--test", "ops", "-o", "json", ROADSTEAD_URL=url)
    assert json.loads(tried.stdout) == {"target": "ops", "by": "the key of Admin"}


def test_a_test_of_issues_leaves_none_open(url: str, cloud: MemoryCloud) -> None:
    assert roadstead("notify", "--test", "tracker", ROADSTEAD_URL=url).returncode == 0
    (issue,) = cloud.repository.pulls.issues.listed(state="all")
    assert (issue.title, issue.state) == ("example: a test of the route tracker", "closed")


def test_a_test_that_fails_says_why(url: str, cloud: MemoryCloud) -> None:
    cloud.routes.failing["ops"] = Unavailable("the route answers with the status 500")
    tried = roadstead("notify", "--test", "ops", ROADSTEAD_URL=url)
    assert tried.returncode != 0
    assert "ops does not deliver: Unavailable: the route answers with the status 500" in tried.stderr
    unknown = roadstead("notify", "--test", "nobody", ROADSTEAD_URL=url)
    assert "the newest plan has no route nobody; it has: ops, audit, tracker, shop" in unknown.stderr


def test_a_fleet_without_routes_says_so(url: str, cloud: MemoryCloud) -> None:
    push(cloud, notifying(fleet_files.fleet("one")))
    cloud.run()
    assert roadstead("notify", ROADSTEAD_URL=url).stdout.strip() == "fleet.yaml has no notifications"
