"""Pull requests over the wire: status and comment, edited by a second push, out of date when main moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from localcloud.demo.checkout import Checkout
from localcloud.options import Options
from tests import fleetfiles
from tests.e2e.conftest import Start
from tests.e2e.operator import Operator

QUICK = {"POLL_SECONDS": "0.5"}


def github(operator: Operator, path: str, **changes: Any) -> Any:
    """Ask the local GitHub; with ``json``, post."""
    settings = operator.cloud.settings
    root = f"{operator.cloud.urls.github}/repos/{settings['GITHUB_REPOSITORY']}"
    headers = {"Authorization": f"token {settings['GITHUB_TOKEN']}"}
    method = "POST" if changes else "GET"
    reply = httpx.request(method, root + path, headers=headers, trust_env=False, **changes)
    return reply.raise_for_status().json()


class Author:
    """Somebody with a branch of their own."""

    def __init__(self, operator: Operator, branch: str) -> None:
        self.operator, self.branch = operator, branch
        folder = operator.cloud.state / f"clone-{branch}"
        self.checkout = Checkout(operator.cloud.remote, folder, branch=branch)

    def push(self, files: Mapping[str, bytes]) -> str:
        self.checkout.replace_all(files)
        return self.checkout.push("Propose a change")

    def propose(self) -> int:
        wanted = {"head": self.branch, "base": "main", "title": "A change"}
        return int(github(self.operator, "/pulls", json=wanted)["number"])

    def comments(self, number: int) -> list[str]:
        return [comment["body"] for comment in github(self.operator, f"/issues/{number}/comments")]

    def wait_for(self, number: int, words: str) -> str:
        """Wait for the one comment to say something; return it."""

        def said() -> bool:
            return any(words in body for body in self.comments(number))

        self.operator.wait(said, f"the comment says {words}")
        (body,) = self.comments(number)
        return body


def test_a_pull_request_is_told_what_it_would_do_and_when_that_is_out_of_date(start: Start) -> None:
    operator = start(Options(create_seconds=1, extra=QUICK))
    operator.wait_for_status(operator.push(fleetfiles.fleet("one")), "success")
    author = Author(operator, "topic")
    first = author.push(fleetfiles.fleet("one", "two"))
    number = author.propose()
    author.wait_for(number, "**1 create, 1 unchanged**")
    operator.wait_for_status(first, "success")
    assert operator.status(first) == "success: 1 create, 1 unchanged"
    second = author.push(fleetfiles.fleet("one", "two", "three"))
    author.wait_for(number, "**2 create, 1 unchanged**")
    operator.wait_for_status(second, "success")
    assert operator.phases() == {"one": "Ready"}
    operator.wait_for_status(operator.push(fleetfiles.fleet("one", "four")), "success")
    author.wait_for(number, "**Out of date**")


def test_mistakes_in_a_pull_request_are_told_with_their_place_and_change_nothing(start: Start) -> None:
    operator = start(Options(create_seconds=1, extra=QUICK))
    operator.wait_for_status(operator.push(fleetfiles.fleet("one")), "success")
    author = Author(operator, "typo")
    files = fleetfiles.fleet("one")
    files["clusters/one/cluster.yaml"] = files["clusters/one/cluster.yaml"].replace(b"location", b"loaction")
    commit = author.push(files)
    author.wait_for(author.propose(), "did you mean location?")
    assert operator.wait_for_status(commit, "failure") == ("failure: 1 invalid; 1 mistake in the manifests")
    assert operator.phases() == {"one": "Ready"}
