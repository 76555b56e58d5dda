"""Pull requests on GitHub: merge commits, comments, check runs, and our own branches.

Our comment is the oldest one with our login that begins with the marker; a marker in somebody else's comment
is ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any
from urllib.parse import quote

from github.Repository import Repository as GitHubApi

from shared.adapters.answers import checked
from shared.adapters.github.client import PAGE, GitHubClient, json_call, require_answer
from shared.adapters.github.reviews import GitHubReviews, labels_of
from shared.cluster.failures.errors import Conflict, Dependency, InvalidManifest, Unauthorized
from shared.ports.pull_requests import (
    Annotation,
    AutoMerge,
    Check,
    Comment,
    NewCommit,
    Pull,
    PullText,
    auto_merge_of,
)

log = logging.getLogger(__name__)

COMMENT_PAGES = 5
"""Our comment is among the first of a pull request, because it is written when the pull request opens."""

ANNOTATIONS_PER_CALL = 50
"""GitHub's limit (docs.github.com/rest/checks/runs); an update of the check run adds more."""

ANNOTATIONS = 1000
"""Our own bound, of 20 calls."""


class GitHubPullRequests(GitHubReviews):
    """The part of the port that is about pull requests."""

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

    def conclusions(self, commit: str, check: str) -> Sequence[str]:
        """Return what the newest check run of a name says, of each app that has one: one call.

        GitHub lists the newest of each check suite, and with Actions each run of a workflow has a suite: an
        earlier run for the same commit, which has failed, stays listed next to the one that succeeded.
        """
        query = {"check_name": check, "filter": "latest", "per_page": PAGE}
        with self._client.calling(f"no commit {commit}", absent=(404, 422)) as api:
            found = json_call(api, "GET", f"{api.url}/commits/{commit}/check-runs", query=query)
            runs = sorted((run for run in found["check_runs"] if run["name"] == check), key=itemgetter("id"))
            newest = {(run["app"] or {}).get("id"): _conclusion(run) for run in runs}
            return [*newest.values()]

    def write_check(self, commit: str, check: Check) -> None:
        """Create a check run: one call, and one more for each 50 annotations after the first 50.

        ``details_url`` is the page to which its "Details" lead: docs.github.com/rest/checks/runs.
        """
        if not self._client.is_app:
            raise Unauthorized("only a GitHub App may write check runs; set GITHUB_APP_ID and its key")
        notes = [_annotation(annotation) for annotation in check.annotations[:ANNOTATIONS]]
        output = {"title": check.title, "summary": check.summary}
        body: dict[str, Any] = {
            "name": check.name,
            "head_sha": commit,
            "status": "completed",
            "conclusion": check.conclusion,
            "output": {**output, "annotations": notes[:ANNOTATIONS_PER_CALL]},
            **({"details_url": check.target_url} if check.target_url else {}),
        }
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


def _tree_entry(path: str, content: bytes | None) -> dict[str, Any]:
    """Return a file of a new tree; one whose ``sha`` is null is removed (docs.github.com/rest/git/trees)."""
    entry = {"path": path, "mode": "100644", "type": "blob"}
    return {**entry, "sha": None} if content is None else {**entry, "content": content.decode()}


def _conclusion(run: Mapping[str, Any]) -> str:
    """Return how a check run ended, "" for one that has not."""
    return str(run["conclusion"] or "unknown") if run["status"] == "completed" else ""


def _annotation(annotation: Annotation) -> dict[str, Any]:
    return {
        "path": annotation.path,
        "start_line": annotation.line,
        "end_line": annotation.line,
        "annotation_level": "failure",
        "message": annotation.message,
    }


# Branches of our own on GitHub, and their pull requests: docs.github.com/rest/git and /rest/pulls.
#
# A commit is created before a branch points to it. A branch is never moved with ``force``: GitHub then
# refuses to lose what somebody pushed to it, however late that came.

_NO_REFERENCE = "reference does not exist"
_PERMISSIONS = "give its GitHub App, or its token, the permissions Contents: write and Pull requests: write"
_NOT_MOVED = ("already exists", "fast forward", _NO_REFERENCE)
_REFUSALS = {
    "auto merge is not allowed": AutoMerge.NOT_ALLOWED,
    "protected branch rules not configured": AutoMerge.NO_RULES,
    "is in clean status": AutoMerge.NO_RULES,
    "is in unstable status": AutoMerge.NO_RULES,
    "is closed": AutoMerge.CLOSED,
    "head branch was modified": AutoMerge.MOVED,
}
"""What GitHub says, as peter-evans/enable-pull-request-automerge#343, #355 and #1060, and iterative/cml#955
have it: no page of its documentation does."""
_ENABLE = "enablePullRequestAutoMerge"
_METHODS = ("MERGE", "SQUASH", "REBASE")
_NOT_THIS_METHOD = "not allowed on this repository"


class GitHubBranches:
    """The part of the port that is about our own branches."""

    _client: GitHubClient

    @contextmanager
    def _writing(self, missing: str, *, absent: Sequence[int] = (404,)) -> Iterator[GitHubApi]:
        """Lend the API for one call; a refusal says which permissions it takes."""
        try:
            with self._client.calling(missing, absent=absent) as api:
                yield api
        except Unauthorized as error:
            raise Unauthorized(f"{error}; {_PERMISSIONS}", request_id=error.request_id) from error

    def tip(self, branch: str) -> str | None:
        """Return the commit that a branch points to, None when there is no such branch."""
        try:
            with self._client.calling(f"no branch {branch}", absent=(404, 409)) as api:
                return str(json_call(api, "GET", f"{api.url}/git/ref/heads/{branch}")["object"]["sha"])
        except Dependency:
            return None

    def branches(self, prefix: str) -> Mapping[str, str]:
        """Return the branches with a prefix; an empty repository, which GitHub answers with 409, has none."""
        try:
            with self._client.calling("no branches", absent=(404, 409)) as api:
                found = api.get_git_matching_refs(f"heads/{prefix}")
                return {ref.ref.removeprefix("refs/heads/"): ref.object.sha for ref in found}
        except Dependency:
            return {}

    def is_guarded(self, branch: str) -> bool:
        """Return whether a ruleset restricts updates; docs.github.com/rest/repos/rules, Metadata: read."""
        with self._client.calling("no rules") as api:
            query = {"per_page": PAGE}
            rules = json_call(api, "GET", f"{api.url}/rules/branches/{quote(branch, safe='')}", query=query)
            return any(rule["type"] == "update" for rule in rules)

    def add_commit(self, commit: NewCommit) -> str:
        """Create a commit: one call for its parent, one for the tree, one for the commit."""
        last = commit.parents[-1]
        with self._writing(f"no commit {last}", absent=(404, 409)) as api:
            base = json_call(api, "GET", f"{api.url}/git/commits/{last}")["tree"]["sha"]
        with self._writing(f"no tree {base}") as api:
            body = {"base_tree": base, "tree": [_tree_entry(*file) for file in commit.files.items()]}
            tree = json_call(api, "POST", f"{api.url}/git/trees", body=body)["sha"]
        with self._writing(f"no tree {tree}") as api:
            body = {"message": commit.message, "tree": tree, "parents": list(commit.parents)}
            return str(json_call(api, "POST", f"{api.url}/git/commits", body=body)["sha"])

    def move_branch(self, branch: str, tip: str | None, commit: str) -> None:
        """Let a branch point to a commit; GitHub answers 422 where that would lose what it points to."""
        try:
            with self._writing(f"no commit {commit}, or no branch {branch}") as api:
                if tip is None:
                    body = {"ref": f"refs/heads/{branch}", "sha": commit}
                    json_call(api, "POST", f"{api.url}/git/refs", body=body)
                else:
                    forward = {"sha": commit, "force": False}
                    json_call(api, "PATCH", f"{api.url}/git/refs/heads/{branch}", body=forward)
        except InvalidManifest as error:
            if any(text in str(error).lower() for text in _NOT_MOVED):
                raise Conflict(str(error), request_id=error.request_id) from error
            raise

    def delete_branch(self, branch: str) -> None:
        """Delete a branch; GitHub answers 422 when there is none."""
        try:
            with self._writing(f"no branch {branch}") as api:
                json_call(api, "DELETE", f"{api.url}/git/refs/heads/{branch}")
        except InvalidManifest as error:
            if _NO_REFERENCE not in str(error).lower():
                raise
        except Dependency:
            return

    def open_pull(self, branch: str, base: str, text: PullText) -> Pull:
        """Open a pull request; GitHub answers 422 when one is open, which takes another call to find."""
        try:
            with self._writing("no pull requests") as api:
                body = {"head": branch, "base": base, "title": text.title, "body": text.body}
                return pull_of(json_call(api, "POST", f"{api.url}/pulls", body=body))
        except InvalidManifest as error:
            if "already exists" not in str(error).lower():
                raise
        owner = self._client.name.partition("/")[0]
        query = {"state": "open", "head": f"{owner}:{branch}", "base": base}
        with self._writing("no pull requests") as api:
            listed = [pull_of(item) for item in json_call(api, "GET", f"{api.url}/pulls", query=query)]
        found = next((pull for pull in listed if not pull.fork), None)  # the owner may have a fork, too
        if found is None:
            raise Conflict(f"the pull request of {branch} was closed meanwhile")
        return found

    def enable_auto_merge(self, number: int, head: str) -> AutoMerge:
        """Enable auto-merge, with the first method that the repository allows; two calls at least.

        Source: docs.github.com/graphql/reference/mutations, enablePullRequestAutoMerge, whose
        ``expectedHeadOid`` binds it to a commit; a pull request that has it says so as ``auto_merge``.
        """
        with self._writing(f"no pull request {number}") as api:
            item = json_call(api, "GET", f"{api.url}/pulls/{number}")
            found, node = pull_of(item), str(item["node_id"])
        shown = auto_merge_of(found, head, enabled=bool(item.get("auto_merge")))
        if shown is not None:
            return shown
        said = ""
        for method in _METHODS:
            try:
                with self._writing(f"no pull request {number}") as api:
                    wanted = {"pullRequestId": node, "mergeMethod": method, "expectedHeadOid": head}
                    api.requester.graphql_named_mutation(_ENABLE, wanted, "clientMutationId")
            except InvalidManifest as error:  # GraphQL answers each refusal with 200 and a sentence
                said = str(error)
            else:
                return AutoMerge.ENABLED
            if _NOT_THIS_METHOD not in said.lower():
                break
        return _refused(number, said)

    def edit_pull(self, number: int, text: PullText) -> None:
        """Replace what a pull request says."""
        with self._writing(f"no pull request {number}") as api:
            body = {"title": text.title, "body": text.body}
            json_call(api, "PATCH", f"{api.url}/pulls/{number}", body=body)

    def close_pull(self, number: int) -> None:
        """Close a pull request."""
        with self._writing(f"no pull request {number}") as api:
            json_call(api, "PATCH", f"{api.url}/pulls/{number}", body={"state": "closed"})


def _refused(number: int, said: str) -> AutoMerge:
    """Return what a refusal of GraphQL means; raise Throttled or Unauthorized for what is no decision."""
    require_answer(said, _PERMISSIONS)
    lower = said.lower()
    meant = next((found for text, found in _REFUSALS.items() if text in lower), AutoMerge.REFUSED)
    if meant is AutoMerge.REFUSED:
        log.warning("GitHub refuses auto-merge of pull request %d: %s", number, said)
    return meant
