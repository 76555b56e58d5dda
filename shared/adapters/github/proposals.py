"""Branches of our own on GitHub, and their pull requests: docs.github.com/rest/git and /rest/pulls.

A commit is created before a branch points to it. A branch is never moved with ``force``: GitHub then refuses
to lose what somebody pushed to it, however late that came.
"""

from __future__ import annotations

from shared.adapters.github.client import GitHubClient, json_call
from shared.adapters.github.pulls import pull_of
from shared.jobs.failures.errors import Conflict, Dependency, InvalidManifest
from shared.ports import NewCommit, Pull, PullText

_NO_REFERENCE = "reference does not exist"


class GitHubProposing:
    """The ``Proposing`` port on GitHub."""

    def __init__(self, client: GitHubClient) -> None:
        self._client = client

    def tip(self, branch: str) -> str | None:
        """Return the commit that a branch points to, None when there is no such branch."""
        try:
            with self._client.calling(f"no branch {branch}", absent=(404, 409)) as api:
                return str(json_call(api, "GET", f"{api.url}/git/ref/heads/{branch}")["object"]["sha"])
        except Dependency:
            return None

    def add_commit(self, commit: NewCommit) -> str:
        """Create a commit: one call for its parent, one for the tree, one for the commit."""
        last = commit.parents[-1]
        with self._client.calling(f"no commit {last}", absent=(404, 409)) as api:
            base = json_call(api, "GET", f"{api.url}/git/commits/{last}")["tree"]["sha"]
        file = {"path": commit.path, "mode": "100644", "type": "blob", "content": commit.content.decode()}
        with self._client.calling(f"no tree {base}") as api:
            body = {"base_tree": base, "tree": [file]}
            tree = json_call(api, "POST", f"{api.url}/git/trees", body=body)["sha"]
        with self._client.calling(f"no tree {tree}") as api:
            body = {"message": commit.message, "tree": tree, "parents": list(commit.parents)}
            return str(json_call(api, "POST", f"{api.url}/git/commits", body=body)["sha"])

    def create_branch(self, branch: str, commit: str) -> None:
        """Create a branch; GitHub answers 422 when there is one of this name."""
        try:
            with self._client.calling(f"no commit {commit}") as api:
                body = {"ref": f"refs/heads/{branch}", "sha": commit}
                json_call(api, "POST", f"{api.url}/git/refs", body=body)
        except InvalidManifest as error:
            if "already exists" in str(error).lower():
                raise Conflict(str(error), request_id=error.request_id) from error
            raise

    def advance_branch(self, branch: str, commit: str) -> None:
        """Let a branch point to a descendant of its tip; GitHub answers 422 for any other commit."""
        try:
            with self._client.calling(f"no branch {branch}") as api:
                body = {"sha": commit, "force": False}
                json_call(api, "PATCH", f"{api.url}/git/refs/heads/{branch}", body=body)
        except InvalidManifest as error:
            if "fast forward" in str(error).lower() or _NO_REFERENCE in str(error).lower():
                raise Conflict(str(error), request_id=error.request_id) from error
            raise

    def delete_branch(self, branch: str) -> None:
        """Delete a branch; GitHub answers 422 when there is none."""
        try:
            with self._client.calling(f"no branch {branch}") as api:
                json_call(api, "DELETE", f"{api.url}/git/refs/heads/{branch}")
        except InvalidManifest as error:
            if _NO_REFERENCE not in str(error).lower():
                raise
        except Dependency:
            return

    def open_pull(self, branch: str, base: str, text: PullText) -> Pull:
        """Open a pull request; GitHub answers 422 when one is open, which takes another call to find."""
        try:
            with self._client.calling("no pull requests") as api:
                body = {"head": branch, "base": base, "title": text.title, "body": text.body}
                return pull_of(json_call(api, "POST", f"{api.url}/pulls", body=body))
        except InvalidManifest as error:
            if "already exists" not in str(error).lower():
                raise
        owner = self._client.name.partition("/")[0]
        query = {"state": "open", "head": f"{owner}:{branch}", "base": base}
        with self._client.calling("no pull requests") as api:
            found = [pull_of(item) for item in json_call(api, "GET", f"{api.url}/pulls", query=query)]
        if not found:
            raise Conflict(f"the pull request of {branch} was closed meanwhile")
        return found[0]

    def edit_pull(self, number: int, text: PullText) -> None:
        """Replace what a pull request says."""
        with self._client.calling(f"no pull request {number}") as api:
            body = {"title": text.title, "body": text.body}
            json_call(api, "PATCH", f"{api.url}/pulls/{number}", body=body)

    def close_pull(self, number: int) -> None:
        """Close a pull request."""
        with self._client.calling(f"no pull request {number}") as api:
            json_call(api, "PATCH", f"{api.url}/pulls/{number}", body={"state": "closed"})
