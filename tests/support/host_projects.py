"""The fleet's repository on each git host, as a person sees it who opens, approves and merges changes there.

Each host is asked by its own API. What a person does and no API of a test's user can, such as an approval of
somebody else, is a control of the local host.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx

from localcloud.common.plain_http import NO_TLS
from localcloud.demo.checkout import Checkout
from tests.support.fleet_operator import Operator


class HostProject(ABC):
    """The repository on a host; close after use.

    ``failed`` is how the host calls a status that failed, and ``state`` the field that says so.
    """

    failed, state = "failed", "state"
    review: Mapping[str, Any] = {"event": "APPROVE"}
    account = "{}"
    """How the host calls a person."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self._local = httpx.Client(base_url=f"{operator.cloud.urls.github}/_local", trust_env=False)
        url, headers = self._address()
        self._api = httpx.Client(base_url=url, headers=headers, trust_env=False, verify=NO_TLS)

    def close(self) -> None:
        """Close the connections."""
        self._api.close()
        self._local.close()

    def call(self, method: str, path: str, **body: Any) -> Any:
        """Make a call of the host's API, and return its JSON."""
        return self._api.request(method, path, json=body or None).raise_for_status().json()

    def does(self, what: str, **given: Any) -> Any:
        """Do what a person does on the pages of the host."""
        return self._local.post(what, json=given).raise_for_status().json()

    def deliveries(self) -> list[dict[str, Any]]:
        """Return what the host has delivered to the app, with the status of each answer."""
        return list(self._local.get("deliveries").raise_for_status().json())

    def push(self, branch: str, files: Mapping[str, bytes]) -> str:
        """Push a new branch of main that has exactly these files; return its commit."""
        cloud = self.operator.cloud
        checkout = Checkout(cloud.remote, cloud.state / f"clone-{branch}", branch=branch)
        checkout.replace_all(files)
        return checkout.push("Propose a change")

    def approve(self, number: int, login: str) -> None:
        """Let somebody approve a pull request."""
        self.does("reviews", number=number, login=login, **self.review)

    def wait_for_status(self, commit: str, word: str) -> str:
        """Wait until the status of a commit begins with a word; return its description."""
        shown = f"{commit[:8]} is {word}"
        self.operator.wait(lambda: self.status(commit)[0] == word, shown, seconds=150)
        return self.status(commit)[1]

    def wait_for_text(self, number: int, text: str) -> None:
        """Wait until the one text of the app on a pull request contains something."""
        self.operator.wait(lambda: any(text in said for said in self.texts(number)), f"it says {text}")
        assert len(self.texts(number)) == 1

    def status(self, commit: str) -> tuple[str, str]:
        """Return the state and the description of the status of a commit."""
        found = self._statuses(commit)
        return (found[0][self.state], found[0]["description"]) if found else ("", "")

    def pages(self, commit: str, number: int) -> set[str]:
        """Return the pages of the app to which its texts on a commit and on a pull request lead."""
        said = f"{self._statuses(commit)} {self.texts(number)}"
        return set(re.findall(rf"{re.escape(self.operator.cloud.urls.functions)}([^\s'\")]*)", said))

    # What differs

    @abstractmethod
    def _address(self) -> tuple[str, dict[str, str]]:
        """Return the address of the host's API for this repository, and the headers of a person."""

    @abstractmethod
    def _statuses(self, commit: str) -> list[dict[str, Any]]:
        """Return the statuses of a commit, the newest first."""

    @abstractmethod
    def open(self, branch: str) -> int:
        """Open a pull request of a branch into main; return its number."""

    @abstractmethod
    def opened(self, branch: str) -> list[int]:
        """Return the numbers of the open pull requests of a branch."""

    @abstractmethod
    def texts(self, number: int) -> list[str]:
        """Return what people and apps have written on a pull request."""

    @abstractmethod
    def merge(self, number: int) -> str:
        """Merge a pull request; return the merge commit."""

    def kinds(self) -> set[str]:
        """Return the kinds of events that were delivered, and fail where the app refused one."""
        found = [sent for sent in self.deliveries() if sent["status"] is not None]
        assert {sent["status"] // 100 for sent in found} == {2}
        return {sent["event"] for sent in found}


class OnGitHub(HostProject):
    """A repository of GitHub."""

    failed, succeeded = "failure", "success"

    def _address(self) -> tuple[str, dict[str, str]]:
        cloud, token = self.operator.cloud, self.operator.cloud.settings["GITHUB_TOKEN"]
        return cloud.urls.github + self.operator.repository, {"Authorization": f"token {token}"}

    def _statuses(self, commit: str) -> list[dict[str, Any]]:
        return list(self.call("GET", f"/commits/{commit}/status")["statuses"])

    def open(self, branch: str) -> int:
        return int(self.call("POST", "/pulls", head=branch, base="main", title="A change")["number"])

    def opened(self, branch: str) -> list[int]:
        return [pull["number"] for pull in self.call("GET", "/pulls") if pull["head"]["ref"] == branch]

    def texts(self, number: int) -> list[str]:
        return [comment["body"] for comment in self.call("GET", f"/issues/{number}/comments")]

    def merge(self, number: int) -> str:
        return str(self.call("PUT", f"/pulls/{number}/merge", merge_method="merge")["sha"])

    def kinds(self) -> set[str]:
        found = self.deliveries()
        assert {sent["status_code"] // 100 for sent in found if sent["status_code"]} == {2}
        return {sent["event"] for sent in found}


class OnGitLab(HostProject):
    """A project of GitLab."""

    succeeded, state = "success", "status"

    def _address(self) -> tuple[str, dict[str, str]]:
        settings, url = self.operator.cloud.settings, self.operator.cloud.urls.github
        project = quote(settings["GITHUB_REPOSITORY"], safe="")
        return f"{url}/api/v4/projects/{project}", {"PRIVATE-TOKEN": settings["GIT_PASSWORD"]}

    def _statuses(self, commit: str) -> list[dict[str, Any]]:
        return list(reversed(self.call("GET", f"/repository/commits/{commit}/statuses")))

    def open(self, branch: str) -> int:
        given = {"source_branch": branch, "target_branch": "main", "title": "A change"}
        return int(self.call("POST", "/merge_requests", **given)["iid"])

    def opened(self, branch: str) -> list[int]:
        found = self.call("GET", f"/merge_requests?state=opened&source_branch={quote(branch, safe='')}")
        return [request["iid"] for request in found]

    def texts(self, number: int) -> list[str]:
        found = self.call("GET", f"/merge_requests/{number}/notes?per_page=100")
        return [note["body"] for note in found if not note["system"]]

    def merge(self, number: int) -> str:
        return str(self.call("PUT", f"/merge_requests/{number}/merge")["merge_commit_sha"])


class OnAzureDevOps(HostProject):
    """A repository of Azure DevOps, seen with a token that the local Entra issues."""

    succeeded, review, account = "succeeded", {"vote": 10}, "{}@example.com"

    def _address(self) -> tuple[str, dict[str, str]]:
        cloud = self.operator.cloud
        organization, _, rest = cloud.remote.partition("/example/")
        identity = httpx.get(
            cloud.settings["IDENTITY_ENDPOINT"],
            params={"resource": "499b84ac-1321-427f-aa17-267ca6975798", "api-version": "2019-08-01"},
            headers={"X-IDENTITY-HEADER": cloud.settings["IDENTITY_HEADER"]},
            trust_env=False,
        )
        api = f"{organization}/example/_apis/git/repositories/{rest.rpartition('/')[2]}"
        return api, {"Authorization": f"Bearer {identity.json()['access_token']}"}

    def get(self, path: str, **query: str) -> Any:
        """Return what a list has."""
        found = self._api.get(path, params={"api-version": "7.1", **query})
        return found.raise_for_status().json()["value"]

    def _statuses(self, commit: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(f"/commits/{commit}/statuses", latestOnly="true")
        assert all(status["context"]["genre"] == "roadstead" for status in found)
        return found

    def open(self, branch: str) -> int:
        return int(self.does("pulls", head=branch, base="main", title="A change")["pullRequestId"])

    def opened(self, branch: str) -> list[int]:
        found = self.get("/pullrequests", **{"searchCriteria.status": "active"})
        return [pull["pullRequestId"] for pull in found if pull["sourceRefName"] == f"refs/heads/{branch}"]

    def texts(self, number: int) -> list[str]:
        threads = self.get(f"/pullRequests/{number}/threads")
        return [str(thread["comments"][0]["content"]) for thread in threads]

    def merge(self, number: int) -> str:
        return str(self.does("merges", number=number)["lastMergeCommit"]["commitId"])
