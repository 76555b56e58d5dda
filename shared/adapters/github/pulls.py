"""Pull requests on GitHub: what they would merge, our comments on them, and check runs.

Our comment is the oldest of our own that begins with a marker: a marker in a comment of somebody else
leads nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.adapters.github.client import GitHubClient, json_call
from shared.jobs.errors import Dependency, Unauthorized
from shared.ports import Annotation, Check, Comment, Pull

PAGE = 100
"""The most that GitHub lists in one answer."""

COMMENT_PAGES = 5
"""A comment of ours is among the first of a pull request, for it is written when that is opened."""

ANNOTATIONS_A_CALL = 50
"""GitHub's limit; further ones are added by updating the check run."""

ANNOTATIONS = 1000


class GitHubPullRequests:
    """The pull requests of the client's repository."""

    def __init__(self, client: GitHubClient) -> None:
        self._client = client

    @property
    def can_check(self) -> bool:
        """Whether we are a GitHub App: nobody else may write check runs."""
        return self._client.is_app

    def open_pulls(self, base: str) -> Sequence[Pull]:
        """Return the open ones into a branch, newest first, at most 100."""
        query = {"state": "open", "base": base, "sort": "created", "direction": "desc", "per_page": PAGE}
        with self._client.calling("no pull requests") as api:
            return [_pull(item) for item in json_call(api, "GET", f"{api.url}/pulls", query=query)]

    def pull(self, number: int) -> Pull | None:
        """Return a pull request, or None; asking makes GitHub prepare the merge commit."""
        try:
            with self._client.calling(f"no pull request {number}") as api:
                item = json_call(api, "GET", f"{api.url}/pulls/{number}")
        except Dependency:
            return None
        return _pull(item)

    def comment(self, number: int, marker: str) -> Comment | None:
        """Return our oldest comment that begins with the marker, or None."""
        login = self._client.login
        for page in range(1, COMMENT_PAGES + 1):
            with self._client.calling(f"no pull request {number}") as api:
                url, query = f"{api.url}/issues/{number}/comments", {"per_page": PAGE, "page": page}
                items = json_call(api, "GET", url, query=query)
            for item in items:
                body = item.get("body") or ""
                if body.startswith(marker) and (item.get("user") or {}).get("login") == login:
                    return Comment(item["id"], body)
            if len(items) < PAGE:
                break
        return None

    def write_comment(self, number: int, body: str, *, over: Comment | None) -> None:
        """Write a new comment, or over one."""
        with self._client.calling(f"no pull request {number}") as api:
            if over is None:
                json_call(api, "POST", f"{api.url}/issues/{number}/comments", body={"body": body})
            else:
                json_call(api, "PATCH", f"{api.url}/issues/comments/{over.id}", body={"body": body})

    def check(self, commit: str, check: Check) -> None:
        """Write a check run: one call, and one more for each 50 annotations after the first 50."""
        if not self.can_check:
            raise Unauthorized("only a GitHub App may write check runs; set GITHUB_APP_ID and its key")
        notes = [_annotation(annotation) for annotation in check.annotations[:ANNOTATIONS]]
        output = {"title": check.title, "summary": check.summary}
        body: dict[str, Any] = {
            "name": check.name,
            "head_sha": commit,
            "status": "completed",
            "conclusion": check.conclusion,
            "output": {**output, "annotations": notes[:ANNOTATIONS_A_CALL]},
        }
        if check.details_url:
            body["details_url"] = check.details_url
        with self._client.calling(f"no commit {commit}") as api:
            run = json_call(api, "POST", f"{api.url}/check-runs", body=body)
        for start in range(ANNOTATIONS_A_CALL, len(notes), ANNOTATIONS_A_CALL):
            more = {"output": {**output, "annotations": notes[start : start + ANNOTATIONS_A_CALL]}}
            with self._client.calling(f"no check run of {commit}") as api:
                json_call(api, "PATCH", f"{api.url}/check-runs/{run['id']}", body=more)


def _pull(item: Mapping[str, Any]) -> Pull:
    head, base = item["head"], item["base"]
    mergeable = item.get("mergeable")  # only in the answer for one pull request
    source = head.get("repo") or {}  # a fork may have been deleted
    return Pull(
        number=item["number"],
        head=head["sha"],
        base=base["ref"],
        merge=None if mergeable is None else (item.get("merge_commit_sha") or "") if mergeable else "",
        fork=source.get("full_name", "").lower() != base["repo"]["full_name"].lower(),
        open=item["state"] == "open",
    )


def _annotation(annotation: Annotation) -> dict[str, Any]:
    return {
        "path": annotation.path,
        "start_line": annotation.line,
        "end_line": annotation.line,
        "annotation_level": annotation.level,
        "message": annotation.message,
    }
