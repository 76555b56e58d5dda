"""The API as the command sees it: pages are joined, and never those of two commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from werkzeug.wrappers import Request, Response

from cli.errors import ApiError, NoAnswer
from cli.fleet_api.client import Api
from localcloud.common.http_server import HttpServer, json_response
from tests.support.roadstead_command import roadstead


@contextmanager
def serving(commits: list[str]) -> Iterator[Api]:
    """Serve four clusters, two on a page; each answer takes the next commit, then repeats the last one."""

    @Request.application
    def answer(request: Request) -> Response:
        commit = commits.pop(0) if len(commits) > 1 else commits[0]
        names = [name for name in "abcd" if name > request.args.get("after", "")][:2]
        return json_response(200, {"commit": commit, "clusters": names, "next": names[-1] if names else None})

    with HttpServer(answer) as running, Api(running.url) as api:
        yield api


@pytest.mark.parametrize("commits", [["one"], ["one", "two"], ["one", "one", "two"]])
def test_pages_are_joined_and_read_again_when_another_commit_was_planned(commits: list[str]) -> None:
    last = commits[-1]
    with serving(commits) as api:
        assert api.whole("clusters", "clusters") == {"commit": last, "clusters": list("abcd"), "next": None}


def test_a_fleet_that_is_replanned_constantly_is_an_error_after_some_attempts() -> None:
    with serving([str(number) for number in range(20)]) as api, pytest.raises(ApiError, match="try again"):
        api.whole("clusters", "clusters")


@pytest.mark.parametrize("body", ['{"error": "slow down"}', "Too many requests"])
def test_an_app_that_asks_for_fewer_requests_may_answer_soon(body: str) -> None:
    @Request.application
    def answer(_: Request) -> Response:
        return Response(body, status=429)

    with (
        HttpServer(answer) as running,
        Api(running.url) as api,
        pytest.raises(NoAnswer, match="answered 429"),
    ):
        api.get("clusters")


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({"ALL_PROXY": "socks5://127.0.0.1:1"}, "SOCKS"),
        ({"HTTP_PROXY": "ftp://127.0.0.1:1", "http_proxy": "ftp://127.0.0.1:1"}, "ftp"),
        ({"SSL_CERT_FILE": "/nonexistent.pem"}, "No such file"),
    ],
)
def test_a_proxy_or_certificates_that_cannot_be_used_are_one_line(
    environment: Mapping[str, str], text: str
) -> None:
    address = "https://127.0.0.1:1" if "SSL_CERT_FILE" in environment else "http://127.0.0.1:1"
    done = roadstead("plans", cwd=None, ROADSTEAD_URL=address, NO_PROXY="", no_proxy="", **environment)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert "no connection with the proxy or the certificates that the environment names: " in done.stderr
    assert text in done.stderr
