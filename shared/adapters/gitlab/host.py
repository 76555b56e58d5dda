"""The repository of a project on GitLab, read by git, with its statuses, its issues and its merge requests.

GitLab's REST API has no size of a file in a tree, no commit with two parents, and no way to move a branch
only if it is where it was. Git has all of these, with the same token, and takes no call of the rate limit
for each page of a hundred files. So the content of the repository is read and written by git, as from any
git server, and the rest by the API.

Sources: docs.gitlab.com/api/commits ("Set commit pipeline status"), /api/issues, /api/notes,
/api/project_webhooks, /api/protected_branches, /api/projects.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from shared.adapters.answers import checked
from shared.adapters.gitlab.branches import GitLabBranches
from shared.adapters.gitlab.client import NEWEST, GitLabClient, page
from shared.adapters.gitlab.merge_requests import GitLabMergeRequests, pull_of
from shared.cluster.failures.errors import (
    Conflict,
    Dependency,
    InvalidManifest,
    Unauthenticated,
    Unauthorized,
)
from shared.frozen import replace
from shared.ports.git_host import BranchHead, Capability, CommitStatus, HookDelivery
from shared.ports.pull_requests import PLAN_STATUS, AutoMerge, auto_merge_of

log = logging.getLogger(__name__)

CAPABILITIES = frozenset(Capability) - {Capability.WRITTEN_CHECKS, Capability.FORMS}
_STATES = {"failure": "failed", "error": "failed"}
"""GitLab's names of states that differ from ours; "canceled" would say that a person stopped it."""
_ENDED = {"success": "success", "failed": "failure", "canceled": "cancelled", "skipped": "skipped"}
_MOST_TARGET = 255
"""Characters of the address in a status (app/models/generic_commit_status.rb of gitlab-org/gitlab)."""
_NO_TRANSITION = "cannot transition status"
_PIPELINES = "only_allow_merge_if_pipeline_succeeds"
_NO_BRANCH = "references for commit"
_RECEIVER = "/api/webhook"
"""How the address of the app's webhook ends; other hooks of the project are not ours."""


class GitLabHost(GitLabMergeRequests, GitLabBranches):
    """The project at an address, with one access token."""

    name, credential = "GitLab", "GIT_PASSWORD"
    to_read_another = "give GIT_PASSWORD a token that reads both projects, such as a group access token"

    def __init__(self, url: str, username: str = "", token: str = "") -> None:
        super().__init__(url, username or "roadstead", token)
        self._client = GitLabClient(url, token)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Everything but checks of our own, since a job has no annotations."""
        return CAPABILITIES

    def permissions(self) -> Mapping[str, str] | None:
        """Return None: the names of the scopes of a token are not those of permissions."""
        return None

    def _new_other(self, repository: str) -> GitLabHost:
        ending = ".git" if self._url.endswith(".git") else ""
        return GitLabHost(f"{self._client.origin}/{repository}{ending}", *self._sign_in)

    def close(self) -> None:
        """Close the connections, and delete the folders, those of other projects too."""
        super().close()
        self._client.close()

    def _is_elsewhere(self, sha: str) -> bool:
        try:
            with self._client.calling(f"no commit {sha}") as project:
                return bool(project.commits.get(sha).id == sha)
        except Dependency:
            return False

    def read_head(self, branch: str) -> BranchHead:
        """Return the commit that the branch points to, with the id of the project; raise Dependency."""
        head = super().read_head(branch)
        # Afterwards: a name that passes to another project meanwhile then shows the other id.
        with self._client.calling("no such project"):
            number = self._client.api.projects.get(self._client.name).id
            return checked(replace(head, repository=number, credential_expires=self._client.token_ends()))

    def set_status(self, commit: str, status: CommitStatus) -> None:
        """Write the commit status; raise InvalidManifest when GitLab rejects its content.

        GitLab changes a status only with its state: "pending" becomes "running" once, and after that a text
        waits for the end. It takes none for a commit that no branch of the project has, such as a fork's.
        """
        states = ("pending", "running") if status.state == "pending" else (status.state,)
        for state in states:
            try:
                return self._write_status(commit, replace(status, state=_STATES.get(state, state)))
            except InvalidManifest as error:
                if _NO_TRANSITION not in str(error).lower():
                    raise
        return None

    def _write_status(self, commit: str, status: CommitStatus) -> None:
        body = {"state": status.state, "name": status.context}
        body |= {"description": status.description} if status.description else {}
        body |= {"target_url": status.target_url} if 0 < len(status.target_url) <= _MOST_TARGET else {}
        try:
            with self._client.calling(f"no commit {commit}", absent=()) as project:
                project.commits.get(commit, lazy=True).statuses.create(body)
        except Dependency as error:
            if _NO_BRANCH not in str(error).lower():
                raise InvalidManifest(f"No commit found for SHA: {commit}") from error

    def enable_auto_merge(self, number: int, head: str) -> AutoMerge:
        """Have it merged when its pipeline succeeds, which begins with our first status: three calls, or six.

        That takes the project's "Pipelines must succeed": without it GitLab merges at once what has no
        pipeline yet, as before the plan. A push ends it. Sources: docs.gitlab.com/api/merge_requests, "Merge
        a merge request" (405 for what cannot be merged so), and app/services/auto_merge of gitlab-org/gitlab.
        """
        with self._client.calling(f"no merge request {number}") as project:
            request = project.mergerequests.get(number)
            waits = bool(request.attributes.get("merge_when_pipeline_succeeds"))
            shown = auto_merge_of(pull_of(request.attributes), head, enabled=waits)
            if shown is not None:
                return shown
            if not self._client.read(f"/projects/{project.encoded_id}")[_PIPELINES]:
                return AutoMerge.NO_RULES
        try:
            try:
                return self._merge_after_pipeline(number, head)
            except InvalidManifest:
                if self.conclusions(head, PLAN_STATUS):
                    raise
                self.set_status(head, CommitStatus("pending", "it is not planned yet", PLAN_STATUS))
                return self._merge_after_pipeline(number, head)
        except Conflict:
            return AutoMerge.MOVED
        except (InvalidManifest, Unauthenticated) as error:  # 401 is for who may not merge
            log.warning("GitLab does not merge the merge request %d by itself: %s", number, error)
            return AutoMerge.REFUSED

    def _merge_after_pipeline(self, number: int, head: str) -> AutoMerge:
        """Ask for the merge; raise InvalidManifest for what GitLab does not merge so.

        GitLab answers 405 while there is no pipeline (gitlab-org/gitlab!228142). A status makes
        one, and that of the merge request at once: lib/api/commit_statuses.rb.
        """
        with self._client.calling(f"no merge request {number}") as project:
            path = f"/projects/{project.encoded_id}/merge_requests/{number}/merge"
            wanted = {"sha": head, "auto_merge": True, "merge_when_pipeline_succeeds": True}
            merged: Any = self._client.api.http_put(path, post_data=wanted)
            return AutoMerge.MERGED if merged["state"] == "merged" else AutoMerge.ENABLED

    def conclusions(self, commit: str, check: str) -> Sequence[str]:
        """Return what the newest job or status of a name says, of each branch that has one.

        "" is for one that has not ended (docs.gitlab.com/api/jobs).
        """
        with self._client.calling(f"no commit {commit}") as project:
            found = page(project.commits.get(commit, lazy=True).statuses, name=check)
            runs = sorted((run for run in found if run["name"] == check), key=lambda run: int(run["id"]))
            return [*{str(run["ref"]): _ENDED.get(str(run["status"]), "") for run in runs}.values()]

    def deliveries(self) -> Sequence[HookDelivery] | None:
        """Return none: GitLab lists them without their times; raise Dependency for a disabled webhook.

        None for a token that may not see webhooks, which takes the role Maintainer. Four failures without a
        success disable a webhook for a while, forty for good:
        docs.gitlab.com/user/project/integrations/webhooks, "Auto-disabled webhooks".
        """
        try:
            with self._client.calling("no webhooks") as project:
                hooks = page(project.hooks)
                ours = [hook for hook in hooks if str(hook["url"]).rstrip("/").endswith(_RECEIVER)]
                disabled = [hook for hook in ours if hook.get("alert_status", "executable") != "executable"]
                for hook in disabled:
                    until = hook.get("disabled_until")
                    lasts = f"until {until}" if until else "until somebody tests it"
                    raise Dependency(
                        f"GitLab has disabled the webhook {hook['id']} after failures, {lasts}: timers find "
                        "what is pushed meanwhile. Let it reach the app, and send a test from its page"
                    )
                return ()
        except Unauthorized:
            return None

    # Issues: docs.gitlab.com/api/issues.

    def find_issue(self, marker: str) -> int | None:
        """Return our newest open issue with the marker; older ones than the newest hundred are not found."""
        user = self._client.user.id
        with self._client.calling("no issues") as project:
            for issue in page(project.issues, state="opened", author_id=user, **NEWEST):
                author = (issue["author"] or {}).get("id")
                if author == user and (issue.get("description") or "").startswith(marker):
                    return int(issue["iid"])
        return None

    def open_issue(self, title: str, body: str) -> int:
        """Create an issue, and return its number."""
        with self._client.calling("no issues") as project:
            return int(project.issues.create({"title": title, "description": body}).iid)

    def comment_issue(self, number: int, body: str) -> None:
        """Write a comment; raise Dependency for an issue that no longer exists."""
        with self._client.calling(f"no issue {number}") as project:
            project.issues.get(number, lazy=True).notes.create({"body": body})

    def close_issue(self, number: int) -> None:
        """Close an issue; one that is closed is success."""
        with self._client.calling(f"no issue {number}") as project:
            project.issues.update(number, {"state_event": "close"})
