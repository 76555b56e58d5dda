"""The API as the command sees it: pages are joined, and never those of two commits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from werkzeug.wrappers import Request, Response

from cli.fleet_api.client import Api, ApiError
from localcloud.common.http_server import HttpServer, json_response


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
