"""Workspaces of Azure Monitor: what a query is to Roadstead, in memory and over the wire.

The answers are those of the documentation of Prometheus and of the query API of Log Analytics.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError

from localcloud.common.certificates import Authority
from localcloud.memory.memory_monitor import MemoryMonitor
from localcloud.monitor.monitor_server import LOGS, METRICS, READ_LOGS, READ_METRICS, WORKSPACE, MonitorServer
from shared.adapters.monitor import MonitorWorkspaces
from shared.cluster.failures.errors import (
    Dependency,
    ReconcileError,
    Throttled,
    TooLarge,
    Unauthenticated,
    Unauthorized,
    Unavailable,
    Unexpected,
)
from shared.ports import Monitor
from shared.rollouts.monitored import Series, judged
from shared.rollouts.strategy import GateCheck
from tests.support.odd_bodies import odd_bodies
from tests.support.receivers import Inbox

pytestmark = pytest.mark.lives

QUERY = "sum(rate(errors_total[5m]))"
UNTIL = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SINCE = UNTIL - timedelta(minutes=30)
ASKED = GateCheck("errors", query=QUERY, workspace="shop", passes="< 0.01", over=UNTIL - SINCE)
SECRET = "a-secret-of-the-workspace-7710"


class TokenFor:
    """A credential whose token is its audience."""

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        return AccessToken(f"for {scopes[0]}", int(time.time()) + 3600)


class NoCredential:
    """The credential of an app without an identity."""

    def get_token(self, *_scopes: str, **_: Any) -> AccessToken:
        raise ClientAuthenticationError("no identity is assigned\nand much more")


@dataclass(frozen=True)
class Setting:
    """An implementation, and what gives a query a value."""

    port: Monitor
    server: MonitorServer | None
    memory: MemoryMonitor

    def give(self, value: float) -> None:
        if self.server is None:
            self.memory.values[QUERY] = value
        else:
            put(self.server, {"query": QUERY, "value": value})


def put(server: MonitorServer, wanted: dict[str, Any]) -> None:
    requests.put(f"{server.url}/_local/queries", json=wanted, timeout=5).raise_for_status()


def ask(port: Monitor, workspace: str = "shop") -> Any:
    return port.series(workspace, QUERY, SINCE, UNTIL)


def refused(port: Monitor, workspace: str = "shop") -> ReconcileError:
    with pytest.raises(ReconcileError) as raised:
        ask(port, workspace)
    assert SECRET not in f"{raised.value!r} {raised.value.__cause__!r}"
    return raised.value


@contextmanager
def over_the_wire(authority: Authority, **options: Any) -> Iterator[Setting]:
    options.setdefault("accepts", lambda token, audience: token == f"for {audience}/.default")
    with MonitorServer(authority, **options) as server:
        urls = {"shop": server.url, "logs": f"{server.url}/v1/workspaces/{WORKSPACE}"}
        yield Setting(MonitorWorkspaces(urls, TokenFor()), server, MemoryMonitor())


@pytest.fixture(params=["memory", "adapter"])
def setting(request: pytest.FixtureRequest, trusted: Authority) -> Iterator[Setting]:
    if request.param == "memory":
        memory = MemoryMonitor(workspaces={"shop", "logs"})
        yield Setting(memory, None, memory)
        return
    with over_the_wire(trusted) as wired:
        yield wired


@pytest.mark.parametrize("workspace", ["shop", "logs"])
@pytest.mark.parametrize(("value", "met"), [(0.0, True), (0.25, False)])
def test_a_query_has_one_series_whose_values_are_compared(
    setting: Setting, workspace: str, value: float, met: bool
) -> None:
    setting.give(value)
    assert judged(ASKED, ask(setting.port, workspace), UNTIL) == (met, f"{value:g}")


@pytest.mark.parametrize("workspace", ["shop", "logs"])
def test_a_query_without_data_has_none(setting: Setting, workspace: str) -> None:
    assert judged(ASKED, ask(setting.port, workspace), UNTIL) == (None, "no data")


def test_a_workspace_that_the_setting_lacks_is_not_asked(setting: Setting) -> None:
    error = refused(setting.port, "elsewhere")
    assert isinstance(error, Dependency)
    assert "AZURE_MONITOR_WORKSPACES" in str(error)


def test_a_token_goes_to_the_service_that_it_is_for_and_names_do_not_differ_by_case(
    trusted: Authority,
) -> None:
    seen = list[tuple[str, str]]()

    def accepts(token: str, audience: str) -> bool:
        seen.append((token, audience))
        return True

    with over_the_wire(trusted, accepts=accepts) as wired:
        ask(wired.port, "Shop")
        ask(wired.port, "LOGS")
    assert seen == [(f"for {audience}/.default", audience) for audience in (METRICS, LOGS)]


@pytest.mark.parametrize(("workspace", "role"), [("shop", READ_METRICS), ("logs", READ_LOGS)])
def test_a_missing_role_is_named(trusted: Authority, workspace: str, role: str) -> None:
    other = ({READ_METRICS, READ_LOGS} - {role}).pop()
    with over_the_wire(trusted, granted=lambda _: (other,)) as wired:
        error = refused(wired.port, workspace)
        assert isinstance(error, Unauthorized)
        assert "Monitoring Data Reader (a managed Prometheus) or Log Analytics Reader" in str(error)
    with over_the_wire(trusted, granted=lambda _: (role,)) as wired:
        assert ask(wired.port, workspace) == []


def test_a_token_that_is_not_accepted_and_none_at_all_are_said(trusted: Authority) -> None:
    with over_the_wire(trusted, accepts=lambda *_: False) as wired:
        assert isinstance(refused(wired.port), Unauthenticated)
        assert isinstance(refused(wired.port, "logs"), Unauthenticated)
    error = refused(MonitorWorkspaces({"shop": "https://127.0.0.1:1"}, NoCredential()))
    assert str(error) == "there is no credential for the workspace shop: no identity is assigned"


def test_a_workspace_that_does_not_answer_is_away() -> None:
    error = refused(MonitorWorkspaces({"shop": "https://127.0.0.1:1"}, TokenFor()))
    assert isinstance(error, Unavailable)


# Answers that differ from what was expected


def matrix(*series: list[list[Any]], **more: Any) -> str:
    result = [{"metric": {"job": "shop"}, "values": values} for values in series]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}, **more})


def table(columns: dict[str, str], *rows: list[Any], **more: Any) -> str:
    listed = [{"name": name, "type": kind} for name, kind in columns.items()]
    return json.dumps({"tables": [{"name": "PrimaryResult", "columns": listed, "rows": rows}], **more})


def answered(inbox: Inbox, status: int, body: str, workspace: str = "shop") -> MonitorWorkspaces:
    inbox.default = (status, {}, body)
    urls = {"shop": inbox.url, "logs": f"{inbox.url}/v1/workspaces/{WORKSPACE}"}
    assert workspace in urls
    return MonitorWorkspaces(urls, TokenFor())


@pytest.mark.parametrize(
    ("status", "body", "error", "said"),
    [
        (200, matrix(warnings=["a store is away"]), Unexpected, "answers with warnings"),
        (
            200,
            json.dumps({"status": "success", "data": {"resultType": "vector", "result": []}}),
            Unexpected,
            "no range",
        ),
        (200, f"<html>{SECRET}", Unexpected, "no range"),
        (200, matrix([[10**300, "1"]]), Unexpected, "no range"),
        (200, " " * (65 << 10), TooLarge, "larger than 64 KiB"),
        (
            400,
            json.dumps({"status": "error", "errorType": "bad_data", "error": "parse error"}),
            Unexpected,
            "parse error",
        ),
        (400, SECRET, Unexpected, "status 400"),
        (302, SECRET, Unexpected, "status 302"),
        (404, SECRET, Dependency, "status 404"),
        (
            422,
            json.dumps({"status": "error", "errorType": "execution", "error": "many-to-many matching"}),
            Unexpected,
            "many-to-many",
        ),
        (429, SECRET, Throttled, "status 429"),
        (503, SECRET, Unavailable, "status 503"),
    ],
)
def test_an_odd_answer_of_a_prometheus_is_an_error_that_says_what_is_wrong(
    inbox: Inbox, status: int, body: str, error: type[ReconcileError], said: str
) -> None:
    found = refused(answered(inbox, status, body))
    assert type(found) is error
    assert said in str(found)


@pytest.mark.parametrize(
    ("status", "body", "error", "said"),
    [
        (
            200,
            table({"a": "real", "b": "long"}, [1, 2]),
            Unexpected,
            "2 columns with numbers and 0 with times",
        ),
        (200, table({"a": "string"}, [SECRET]), Unexpected, "0 columns with numbers"),
        (200, table({"a": "real"}, [1], error={"code": "PartialError"}), Unexpected, "a part of the data"),
        (200, table({"a": "real"}, [SECRET]), Unexpected, "a record of the answer has no number"),
        (200, table({"a": "real", "t": "datetime"}, [1, SECRET]), Unexpected, "no number or no time"),
        (200, json.dumps({"tables": []}), Unexpected, "no table PrimaryResult"),
        (200, SECRET, Unexpected, "no table of a Log Analytics workspace"),
        (
            400,
            json.dumps(
                {
                    "error": {
                        "message": "bad",
                        "code": "x",
                        "innererror": {"message": "no such table", "code": "y"},
                    }
                }
            ),
            Unexpected,
            "status 400: no such table",
        ),
        (404, SECRET, Dependency, "status 404"),
    ],
)
def test_an_odd_answer_of_log_analytics_is_an_error_that_says_what_is_wrong(
    inbox: Inbox, status: int, body: str, error: type[ReconcileError], said: str
) -> None:
    found = refused(answered(inbox, status, body), "logs")
    assert type(found) is error
    assert said in str(found)


def test_numbers_that_json_lacks_and_values_that_are_absent_open_nothing(inbox: Inbox) -> None:
    (series,) = ask(answered(inbox, 200, table({"a": "real"}, ["NaN"])), "logs")
    assert math.isnan(series.samples[0].value)
    for cells in ([None, "2026-11-30T11:45:00Z"], [0.0, None]):
        body = table({"a": "real", "t": "datetime"}, cells)
        assert ask(answered(inbox, 200, body), "logs") == [Series(())]


def test_a_record_that_is_older_than_the_time_of_the_check_opens_nothing(inbox: Inbox) -> None:
    columns = {"a": "real", "t": "datetime"}
    port = answered(inbox, 200, table(columns, [0.0, "2026-11-30T10:00:00Z"]))
    met, said = judged(ASKED, ask(port, "logs"), UNTIL)
    assert (met, said.partition(",")[0]) == (None, "the newest sample is of 2026-11-30 10:00:00 UTC")
    port = answered(inbox, 200, table(columns, [0.0, "2026-11-30T11:59:00.1234567Z"]))
    assert judged(ASKED, ask(port, "logs"), UNTIL) == (True, "0")


def test_log_analytics_is_asked_for_the_time_of_the_check(inbox: Inbox) -> None:
    ask(answered(inbox, 200, table({"a": "real"}, [1])), "logs")
    ((_, _, body),) = inbox.got
    assert json.loads(body) == {"query": QUERY, "timespan": "2026-11-30T11:30:00Z/2026-11-30T12:00:00Z"}


@pytest.mark.parametrize("workspace", ["shop", "logs"])
def test_no_body_is_another_error_than_ours(inbox: Inbox, workspace: str) -> None:
    plain = json.loads(
        matrix([[1796040000, "0.5"]])
        if workspace == "shop"
        else table({"a": "real", "t": "datetime"}, [1.5, "2026-11-30T11:45:00Z"])
    )
    for body in odd_bodies(plain):
        port = answered(inbox, 200, body.decode(errors="replace"), workspace)
        try:
            for series in ask(port, workspace):
                assert all(isinstance(sample.value, float) for sample in series.samples)
        except ReconcileError:
            continue


def test_the_local_workspace_refuses_what_a_prometheus_refuses(trusted: Authority) -> None:
    with over_the_wire(trusted, accepts=lambda *_: True) as wired:
        assert wired.server is not None
        headers = {"Authorization": "Bearer x"}
        for given in (
            {},
            {"query": "up", "start": "0", "end": "100", "step": "0"},
            {"query": "up", "start": "0", "end": "99999", "step": "1"},
        ):
            answer = requests.get(
                f"{wired.server.url}/api/v1/query_range", params=given, headers=headers, timeout=5
            )
            assert (answer.status_code, answer.json()["errorType"]) == (400, "bad_data")
