"""Pull requests on GitHub: their merge commits, our comments on them, and check runs.

Our comment is the oldest one with our login that begins with the marker; a marker in somebody else's comment
is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from shared.adapters.github.client import PAGE, GitHubClient, checked, json_call
from shared.adapters.github.reviews import GitHubReviews, labels_of
from shared.jobs.failures.errors import Dependency, Unauthorized
from shared.ports import Annotation, Check, CheckRun, Comment, Pull

COMMENT_PAGES = 5
"""Our comment is among the first of a pull request, because it is written when the pull request opens."""

ANNOTATIONS_PER_CALL = 50
"""GitHub's limit; an update of the check run adds more."""

ANNOTATIONS = 1000


class GitHubPullRequests(GitHubReviews):
    """The ``PullRequests`` port on GitHub."""

    def __init__(self, client: GitHubClient) -> None:
        self._client = client

    @property
    def can_check(self) -> bool:
        """Whether the credential is a GitHub App's: only Apps may write check runs."""
        return self._client.is_app

    def open_pulls(self, base: str) -> Sequence[Pull]:
        """Return the open pull requests into a branch, newest first, at most 100."""
        query = {"state": "open", "base": base, "sort": "created", "direction": "desc", "per_page": PAGE}
        with self._client.calling("no pull requests") as api:
            return [pull_of(item) for item in json_call(api, "GET", f"{api.url}/pulls", query=query)]

    def pull(self, number: int) -> Pull | None:
        """Return a pull request, or None; reading it makes GitHub create the test merge commit."""
        try:
            with self._client.calling(f"no pull request {number}") as api:
                return pull_of(json_call(api, "GET", f"{api.url}/pulls/{number}"))
        except Dependency:
            return None

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
                        return checked(Comment(id=item["id"], body=body))
                if len(items) < PAGE:
                    break
        return None

    def write_comment(self, number: int, body: str, *, over: Comment | None) -> None:
        """Create a comment, or replace ``over``."""
        with self._client.calling(f"no pull request {number}") as api:
            if over is None:
                json_call(api, "POST", f"{api.url}/issues/{number}/comments", body={"body": body})
            else:
                json_call(api, "PATCH", f"{api.url}/issues/comments/{over.id}", body={"body": body})

    def check_runs(self, commit: str, name: str) -> Sequence[CheckRun]:
        """Return the newest check run of each app that has one of a name of a commit: one call.

        GitHub lists the newest of each check suite, and with Actions each run of a workflow has a suite: an
        earlier run for the same commit, which has failed, stays listed next to the one that succeeded.
        """
        query = {"check_name": name, "filter": "latest", "per_page": PAGE}
        with self._client.calling(f"no commit {commit}", absent=(404, 422)) as api:
            found = json_call(api, "GET", f"{api.url}/commits/{commit}/check-runs", query=query)
            runs = sorted(
                (each for each in found["check_runs"] if each["name"] == name), key=itemgetter("id")
            )
            newest = {(each["app"] or {}).get("id"): each for each in runs}
            return [
                CheckRun(str(each["name"]), str(each["status"]), str(each["conclusion"] or ""))
                for each in newest.values()
            ]

    def check(self, commit: str, check: Check) -> None:
        """Create a check run: one call, and one more for each 50 annotations after the first 50."""
        if not self.can_check:
            raise Unauthorized("only a GitHub App may write check runs; set GITHUB_APP_ID and its key")
        notes = [_annotation(annotation) for annotation in check.annotations[:ANNOTATIONS]]
        output = {"title": check.title, "summary": check.summary}
        body: dict[str, Any] = {
            "name": check.name,
            "head_sha": commit,
            "status": "completed",
            "conclusion": check.conclusion,
            "output": {**output, "annotations": notes[:ANNOTATIONS_PER_CALL]},
        }
        if check.details_url:
            body["details_url"] = check.details_url
        with self._client.calling(f"no commit {commit}") as api:
            run = int(json_call(api, "POST", f"{api.url}/check-runs", body=body)["id"])
        for start in range(ANNOTATIONS_PER_CALL, len(notes), ANNOTATIONS_PER_CALL):
            more = {"output": {**output, "annotations": notes[start : start + ANNOTATIONS_PER_CALL]}}
            with self._client.calling(f"no check run of {commit}") as api:
                json_call(api, "PATCH", f"{api.url}/check-runs/{run}", body=more)


def pull_of(item: Mapping[str, Any]) -> Pull:
    """Return a pull request from GitHub's JSON."""
    head, base = item["head"], item["base"]
    mergeable = item.get("mergeable")  # present only in the response for a single pull request
    source = head.get("repo") or {}  # None when the fork was deleted
    return checked(
        Pull(
            number=item["number"],
            head=head["sha"],
            base=base["ref"],
            merge=None if mergeable is None else (item.get("merge_commit_sha") or "") if mergeable else "",
            fork=source.get("full_name", "").lower() != base["repo"]["full_name"].lower(),
            open=item["state"] == "open",
            merged=bool(item.get("merged_at")),
            url=item["html_url"],
            labels=labels_of(item),
        )
    )


def _annotation(annotation: Annotation) -> dict[str, Any]:
    return {
        "path": annotation.path,
        "start_line": annotation.line,
        "end_line": annotation.line,
        "annotation_level": annotation.level,
        "message": annotation.message,
    }
