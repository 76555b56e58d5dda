"""The author of a pull request: pushes a branch, opens the request, reads what GitHub shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localcloud.demo.checkout import Checkout
from tests.support.fleet_operator import Operator


class Author:
    """Pushes to a branch of their own; reads what is written on their pull request."""

    def __init__(self, operator: Operator, branch: str) -> None:
        self.operator, self.branch = operator, branch
        folder = operator.cloud.state / f"clone-{branch}"
        self.checkout = Checkout(operator.cloud.remote, folder, branch=branch)
        self.number = 0

    def push(self, files: Mapping[str, bytes]) -> str:
        """Make the branch hold exactly these files; return the commit."""
        self.checkout.replace_all(files)
        return self.checkout.push("Propose a change")

    def propose(self, *, fork: bool = False) -> None:
        """Open a pull request of the branch into main, as from a fork or not."""
        wanted = {"head": self.branch, "base": "main", "title": "A change", "fork": fork}
        self.number = int(self._github("POST", "/pulls", json=wanted)["number"])

    def merge(self) -> str:
        """Merge the pull request; return the merge commit."""
        return str(self._github("PUT", f"/pulls/{self.number}/merge", json={})["sha"])

    def reviewed(self, login: str) -> str:
        """Let somebody approve the pull request; return the address of the review."""
        wanted = {"number": self.number, "login": login, "event": "APPROVE"}
        reply = self.operator.github.post("/_local/reviews", json=wanted)
        return str(reply.raise_for_status().json()["html_url"])

    def wait_for(self, text: str) -> dict[str, Any]:
        """Wait until the one comment on the pull request contains a text; return it."""
        self.operator.wait(
            lambda: any(text in comment["body"] for comment in self._comments()),
            f"the comment contains {text}",
        )
        (comment,) = self._comments()
        return comment

    def checks(self, commit: str) -> list[dict[str, Any]]:
        """Return the check runs of a commit, each with its ``annotations``."""
        found = self._github("GET", f"/commits/{commit}/check-runs")["check_runs"]
        return [run | {"annotations": self._annotations(run["id"])} for run in found]

    def _comments(self) -> list[dict[str, Any]]:
        return list(self._github("GET", f"/issues/{self.number}/comments"))

    def _annotations(self, run: int) -> list[dict[str, Any]]:
        return list(self._github("GET", f"/check-runs/{run}/annotations?per_page=100"))

    def _github(self, method: str, path: str, **options: Any) -> Any:
        reply = self.operator.github.request(method, self.operator.repository + path, **options)
        return reply.raise_for_status().json()
