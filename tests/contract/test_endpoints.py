"""The addresses that checks of gates ask: in memory, and over real sockets.

The answers of a Prometheus are those of its documentation: prometheus.io/docs/prometheus/latest/querying/api.
"""

from __future__ import annotations

import json
import math
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from localcloud.common.certificates import Authority
from localcloud.memory.memory_endpoints import MemoryEndpoints
from shared.adapters import endpoints
from shared.adapters.endpoints import HttpsEndpoints
from shared.cluster.failures.errors import (
    Dependency,
    ReconcileError,
    Throttled,
    TooLarge,
    Unauthenticated,
    Unavailable,
    Unexpected,
)
from shared.ports import Endpoints
from shared.reachable_addresses import networks_of
from tests.support.receivers import Inbox, https_inbox, silent_server

pytestmark = pytest.mark.lives

LOOPBACK = networks_of("127.0.0.0/8")
QUERY = "sum(rate(errors_total[5m])) > 0"
SECRET = "a-secret-of-the-endpoint-5521"


@dataclass(frozen=True)
class Setting:
    """An implementation, an address that it may ask, and what sets the next answers there."""

    port: Endpoints
    url: str
    answers: Callable[[int], None]
    values: Callable[[Sequence[float]], None]
    asked: Callable[[], int]


def in_memory() -> Setting:
    url = "https://shop.example.com/healthz"
    found = MemoryEndpoints(hosts={"shop.example.com"})
    return Setting(
        found,
        url,
        lambda status: found.statuses.update({url: status}),
        lambda values: found.values.update({QUERY: values}),
        lambda: len(found.asked),
    )


def over_sockets(inbox: Inbox) -> Setting:
    def answers(status: int) -> None:
        inbox.default = (status, {}, "")

    def values(some: Sequence[float]) -> None:
        inbox.default = (200, {}, vector(*(f"{value}" for value in some)))

    return Setting(adapter(inbox), f"{inbox.url}/healthz", answers, values, lambda: len(inbox.got))


def adapter(inbox: Inbox, networks: str = "127.0.0.0/8") -> HttpsEndpoints:
    return HttpsEndpoints(frozenset({urlsplit(inbox.url).netloc}), networks_of(networks))


@pytest.fixture(params=["memory", "adapter"])
def setting(request: pytest.FixtureRequest) -> Setting:
    if request.param == "memory":
        return in_memory()
    return over_sockets(request.getfixturevalue("inbox"))


def success(kind: str, result: Any, **more: Any) -> str:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}, **more})


def vector(*values: str) -> str:
    samples = [{"metric": {"job": "shop"}, "value": [1435781451.781, value]} for value in values]
    return success("vector", samples)


@pytest.mark.parametrize("status", [200, 204, 404, 503])
def test_an_endpoint_answers_with_its_status(setting: Setting, status: int) -> None:
    setting.answers(status)
    assert setting.port.status(setting.url) == status


@pytest.mark.parametrize("values", [(), (0.0,), (0.25, 3.0)])
def test_a_prometheus_answers_a_query_with_values(setting: Setting, values: Sequence[float]) -> None:
    setting.values(values)
    assert tuple(setting.port.query(setting.url, QUERY)) == values


@pytest.mark.parametrize("scheme", ["https://elsewhere.example.com", "https://shop.example.com:8443"])
def test_a_host_or_port_that_nobody_allowed_is_not_asked_and_the_setting_is_named(
    setting: Setting, scheme: str
) -> None:
    for ask in (setting.port.status, lambda url: setting.port.query(url, QUERY)):
        with pytest.raises(Dependency, match="ROLLOUT_CHECK_HOSTS"):
            ask(f"{scheme}/healthz")
    assert setting.asked() == 0


def test_no_host_is_allowed_without_the_setting(inbox: Inbox) -> None:
    with pytest.raises(Dependency, match="whoever runs the app adds it there"):
        HttpsEndpoints(frozenset(), LOOPBACK).status(inbox.url)
    assert inbox.got == []


@pytest.mark.parametrize("networks", ["", "10.0.0.0/8"])
def test_an_allowed_name_that_leads_to_an_address_of_the_app_is_left_alone(
    inbox: Inbox, networks: str
) -> None:
    with pytest.raises(Dependency, match=r"127\.0\.0\.1 is .*ROLLOUT_CHECK_NETWORKS"):
        adapter(inbox, networks).status(inbox.url)
    assert inbox.got == []


@pytest.mark.parametrize("host", ["localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0"])
def test_however_an_address_is_written_the_one_that_was_reached_counts(inbox: Inbox, host: str) -> None:
    place = f"{host}:{urlsplit(inbox.url).port}"
    with pytest.raises(Dependency, match="own machine, link or platform"):
        HttpsEndpoints(frozenset({place})).status(f"https://{place}/x")
    assert inbox.got == []


@pytest.mark.parametrize("url", ["http://127.0.0.1/x", "https://user:word@127.0.0.1/x", "https://[::1", "x"])
def test_only_https_without_credentials_is_asked(url: str) -> None:
    with pytest.raises(Dependency, match="is not an https:// URL"):
        HttpsEndpoints(frozenset({"127.0.0.1:443", "127.0.0.1:80"}), LOOPBACK).status(url)


def test_a_question_has_no_credential_and_passes_no_proxy(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    with silent_server(closes=True) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.replace("https", "http"))
        assert adapter(inbox).status(inbox.url) == 200
    ((_, headers, _),) = inbox.got
    assert {"authorization", "cookie"}.isdisjoint(headers)


def test_a_redirect_is_an_answer_and_is_not_followed(inbox: Inbox, trusted: Authority) -> None:
    with https_inbox(trusted) as other:
        inbox.default = (302, {"Location": f"{other.url}/elsewhere"}, "")
        assert adapter(inbox).status(inbox.url) == 302
        with pytest.raises(Unexpected, match="status 302"):
            adapter(inbox).query(inbox.url, QUERY)
        assert other.got == []


def test_a_query_is_asked_below_the_address_of_the_prometheus(inbox: Inbox) -> None:
    inbox.default = (200, {}, success("scalar", [1435781451.781, "1"]))
    for address in (f"{inbox.url}/prometheus", f"{inbox.url}/prometheus/"):
        assert adapter(inbox).query(address, QUERY) == (1.0,)
    for path, _, _ in inbox.got:
        assert urlsplit(path).path == "/prometheus/api/v1/query"
        assert parse_qs(urlsplit(path).query) == {"query": [QUERY], "timeout": ["4s"]}


def test_what_is_no_number_or_infinite_is_a_value(inbox: Inbox) -> None:
    inbox.default = (200, {}, vector("NaN", "+Inf", "-Inf"))
    first, *others = adapter(inbox).query(inbox.url, QUERY)
    assert math.isnan(first)
    assert others == [math.inf, -math.inf]


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        ((200, success("matrix", [{"metric": {}, "values": [[1, "2"]]}])), Unexpected, "no scalar and no"),
        ((200, success("string", [1, "text"])), Unexpected, "no scalar and no"),
        ((200, success("vector", [{"metric": {}, "histogram": [1, {}]}])), Unexpected, "no scalar and no"),
        ((200, success("vector", [], warnings=["a store is away"])), Unexpected, "answers with warnings"),
        ((200, f"<html>{SECRET}"), Unexpected, "no scalar and no"),
        ((200, "[" * 9000), Unexpected, "no scalar and no"),
        ((200, f'{{"status":"success","data":"{SECRET}"}}'), Unexpected, "no scalar and no"),
        ((200, " " * (65 << 10)), TooLarge, "larger than 64 KiB"),
        ((404, SECRET), Dependency, "status 404"),
        ((403, SECRET), Unauthenticated, "status 403"),
        ((429, SECRET), Throttled, "status 429"),
        ((503, SECRET), Unavailable, "status 503"),
    ],
)
def test_an_answer_without_values_is_an_error_that_repeats_nothing_of_it(
    inbox: Inbox, answer: tuple[int, str], error: type[ReconcileError], said: str
) -> None:
    inbox.default = (answer[0], {}, answer[1])
    with pytest.raises(error) as caught:
        adapter(inbox).query(inbox.url, QUERY)
    assert said in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_query_that_prometheus_refuses_says_why_in_a_few_words(inbox: Inbox) -> None:
    refusal = {"status": "error", "errorType": "bad_data", "error": "parse error\n" + "x" * 500}
    inbox.default = (400, {}, json.dumps(refusal))
    with pytest.raises(Unexpected) as caught:
        adapter(inbox).query(inbox.url, QUERY)
    start = "Prometheus answers with the status 400: bad_data: parse error x"
    assert str(caught.value).startswith(start)
    assert len(str(caught.value)) < 160


@pytest.mark.parametrize("closes", [True, False])
def test_an_endpoint_that_hangs_or_closes_is_unavailable(
    closes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "SECONDS", 0.3)
    with silent_server(closes=closes) as url:
        asked = HttpsEndpoints(frozenset({urlsplit(url).netloc}), LOOPBACK)
        with pytest.raises(Unavailable, match="does not answer"):
            asked.status(url)


@contextmanager
def dripping_server(authority: Authority) -> Iterator[str]:
    """Answer with a byte of a header every few moments, without end; yield an https:// address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ends = threading.Event()

        def drip() -> None:
            plain, _ = listener.accept()
            with suppress(OSError), authority.server_context().wrap_socket(plain, server_side=True) as served:
                served.recv(1000)
                served.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                while not ends.wait(0.05):
                    served.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        ends.set()
        thread.join()


def test_an_answer_that_drips_is_cut_off(trusted: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "TOTAL_SECONDS", 0.5)
    with dripping_server(trusted) as url:
        asked = HttpsEndpoints(frozenset({urlsplit(url).netloc}), LOOPBACK)
        began = time.monotonic()
        with pytest.raises(Unavailable, match="does not answer"):
            asked.status(url)
        assert time.monotonic() - began < endpoints.SECONDS


def test_a_certificate_that_nobody_vouches_for_is_refused(
    trusted: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = tmp_path / "other.pem"
    Authority().write(stranger)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(stranger))
    with https_inbox(trusted) as inbox, pytest.raises(Unavailable, match="SSLError"):
        adapter(inbox).status(inbox.url)
