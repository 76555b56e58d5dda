"""The author of a merge request on the local GitLab: pushes a branch, opens it, reads what GitLab shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx

from localcloud.common.plain_http import NO_TLS
from localcloud.demo.checkout import Checkout
from tests.support.fleet_operator import Operator


class GitLabProject:
    """The fleet's project, as a person with a token sees it; close after use."""

    def __init__(self, operator: Operator) -> None:
        settings, url = operator.cloud.settings, operator.cloud.urls.github
        self.operator = operator
        self._api = httpx.Client(
            base_url=f"{url}/api/v4/projects/{quote(settings['GITHUB_REPOSITORY'], safe='')}",
            headers={"PRIVATE-TOKEN": settings["GIT_PASSWORD"]},
            trust_env=False,
            verify=NO_TLS,
        )

    def call(self, method: str, path: str, **body: Any) -> Any:
        """Make a call, and return its JSON."""
        reply = self._api.request(method, path, json=body or None)
        return reply.raise_for_status().json()

    def status(self, commit: str) -> str:
        """Return the status of a commit as "state: description", "" when there is none."""
        found = self.call("GET", f"/repository/commits/{commit}/statuses")
        return f"{found[-1]['status']}: {found[-1]['description']}" if found else ""

    def wait_for_status(self, commit: str, state: str) -> str:
        """Wait until the status of a commit has a state; return the status."""
        self.operator.wait(
            lambda: self.status(commit).startswith(state), f"{commit[:8]} is {state}", seconds=150
        )
        return self.status(commit)

    def approve(self, number: int, login: str) -> None:
        """Let somebody approve a merge request."""
        body = {"number": number, "login": login, "event": "APPROVE"}
        url = f"{self.operator.cloud.urls.github}/_local/reviews"
        httpx.post(url, json=body, trust_env=False).raise_for_status()

    def deliveries(self) -> list[tuple[str, int | None]]:
        """Return the event of each delivery of the webhook, and the status of its answer."""
        url = f"{self.operator.cloud.urls.github}/_local/deliveries"
        found = httpx.get(url, trust_env=False).raise_for_status().json()
        return [(attempt["event"], attempt["status"]) for attempt in found]

    def opened(self, branch: str) -> list[int]:
        """Return the numbers of the open merge requests of a branch."""
        found = self.call("GET", f"/merge_requests?state=opened&source_branch={quote(branch, safe='')}")
        return [request["iid"] for request in found]

    def notes(self, number: int) -> list[str]:
        """Return what people and apps have written on a merge request."""
        found = self.call("GET", f"/merge_requests/{number}/notes?per_page=100")
        return [note["body"] for note in found if not note["system"]]

    def close(self) -> None:
        """Close the connections."""
        self._api.close()


class MergeRequest:
    """A merge request of a branch into main."""

    def __init__(self, project: GitLabProject, branch: str, files: Mapping[str, bytes]) -> None:
        self.project, cloud = project, project.operator.cloud
        checkout = Checkout(cloud.remote, cloud.state / f"clone-{branch}", branch=branch)
        checkout.replace_all(files)
        self.head = checkout.push("Propose a change")
        opened = project.call(
            "POST", "/merge_requests", source_branch=branch, target_branch="main", title="A change"
        )
        self.number = int(opened["iid"])

    def merge(self) -> str:
        """Merge it; return the merge commit."""
        return str(self.project.call("PUT", f"/merge_requests/{self.number}/merge")["merge_commit_sha"])

    def wait_for(self, text: str) -> str:
        """Wait until the one note of the app contains a text; return it."""
        self.project.operator.wait(
            lambda: any(text in note for note in self._notes()), f"a note contains {text}"
        )
        (note,) = self._notes()
        return note

    def _notes(self) -> list[str]:
        return self.project.notes(self.number)
