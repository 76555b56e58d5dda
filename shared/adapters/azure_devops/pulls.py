"""Pull requests on Azure DevOps: test merges, comments, and the statuses that stand for checks.

Source: github.com/MicrosoftDocs/vsts-rest-api-specs, specification/git/7.1. A comment is a thread. Ours is
the oldest thread whose first comment is our identity's and begins with the marker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.adapters.answers import checked
from shared.adapters.azure_devops.client import DevOpsClient, RepositoryAddress
from shared.cluster.failures.errors import Dependency, InvalidManifest
from shared.ports.pull_requests import Comment, Pull

PAGE = 100
"""Our own bound of a list: Azure DevOps lists 101 pull requests where nobody asks for a number."""
MAX_COMMENT = 65_536
"""Characters, as the port has them; github.com/runatlantis/atlantis/pull/1585: Azure DevOps takes 150,000."""
_NO_MERGE_YET = ("notSet", "queued")
HEADS = "refs/heads/"
_CONCLUSIONS: Mapping[str, str] = {
    "notSet": "",
    "pending": "",
    "succeeded": "success",
    "failed": "failure",
    "error": "error",
    "notApplicable": "neutral",
}


class DevOpsPulls:
    """The part of the port that is about pull requests."""

    _client: DevOpsClient

    def open_pulls(self, base: str) -> Sequence[Pull]:
        """Return the open pull requests into a branch, newest first, at most 100."""
        query = {
            "searchCriteria.status": "active",
            "searchCriteria.targetRefName": f"{HEADS}{base}",
            "$top": PAGE,
        }
        with self._client.calling("no pull requests") as call:
            found = call("GET", "/pullrequests", query=query)["value"]
            pulls = [pull_of(item, self._client.address, listed=True) for item in found]
        return sorted(pulls, key=lambda pull: -pull.number)

    def pull(self, number: int) -> Pull | None:
        """Return a pull request, or None."""
        try:
            with self._client.calling(f"no pull request {number}") as call:
                return pull_of(call("GET", f"/pullrequests/{number}"), self._client.address)
        except Dependency:
            return None

    def comment(self, number: int, marker: str) -> Comment | None:
        """Return our oldest comment that begins with the marker, or None."""
        user = self._client.user
        with self._client.calling(f"no pull request {number}") as call:
            for thread in sorted(_threads(call, number), key=lambda thread: int(thread["id"])):
                first = (thread.get("comments") or [{}])[0]
                body = first.get("content") or ""
                deleted = thread.get("isDeleted") or first.get("isDeleted")
                if not deleted and body.startswith(marker) and first["author"]["id"] == user:
                    return checked(Comment(id=thread["id"], body=body))
        return None

    def write_comment(self, number: int, body: str, *, over: Comment | None) -> None:
        """Create a thread, or replace what the first comment of one says.

        A new thread is closed: a policy that asks for resolved comments must not wait for ours.
        """
        if len(body) > MAX_COMMENT:
            raise InvalidManifest(f"the comment is too long (maximum is {MAX_COMMENT} characters)")
        threads = f"/pullRequests/{number}/threads"
        with self._client.calling(f"no pull request {number}") as call:
            if over is not None:
                call("PATCH", f"{threads}/{over.id}/comments/1", body={"content": body})
                return
            comment = {"parentCommentId": 0, "content": body, "commentType": "text"}
            call("POST", threads, body={"comments": [comment], "status": "closed"})

    def conclusions(self, commit: str, check: str) -> Sequence[str]:
        """Return what the newest statuses of a name say of a commit, of each genre that has one: one call.

        ``check`` is the name, or GENRE/NAME.
        """
        query = {"latestOnly": "true", "top": 1000}
        with self._client.calling(f"no commit {commit}") as call:
            found = call("GET", f"/commits/{commit}/statuses", query=query)["value"]
            return [_CONCLUSIONS[item["state"]] for item in found if check in _names(item["context"])][:PAGE]


def _threads(call: Any, number: int) -> list[Any]:
    return list(call("GET", f"/pullRequests/{number}/threads")["value"])


def _names(context: Mapping[str, Any]) -> tuple[str, str]:
    return context["name"], f"{context.get('genre') or ''}/{context['name']}"


def branch_of(ref: str) -> str:
    """Return the branch of a full name of a reference; raise ValueError for another reference."""
    if not ref.startswith(HEADS):
        raise ValueError("not a branch")
    return ref.removeprefix(HEADS)


def labels_of(found: Any) -> frozenset[str]:
    """Return the names of the labels that count."""
    return frozenset(str(label["name"]) for label in found or () if label.get("active", True))


def pull_of(item: Mapping[str, Any], address: RepositoryAddress, *, listed: bool = False) -> Pull:
    """Return a pull request; ``listed`` says that it comes from a list, which shows older test merges.

    Its head is the one of the last test merge, which Azure DevOps makes after each push.
    """
    state = item["mergeStatus"] if item["status"] == "active" else "succeeded"
    merge = (item.get("lastMergeCommit") or {}).get("commitId")
    if listed or state in _NO_MERGE_YET:
        merge = None
    elif state != "succeeded":
        merge = ""
    number = item["pullRequestId"]
    return checked(
        Pull(
            number=number,
            head=item["lastMergeSourceCommit"]["commitId"],
            base=branch_of(item["targetRefName"]),
            merge=merge,
            fork=bool(item.get("forkSource")),
            open=item["status"] == "active",
            merged=item["status"] == "completed",
            url=f"{address.url}/pullrequest/{number}",
            labels=labels_of(item.get("labels")),
        )
    )
