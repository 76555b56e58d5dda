"""Branches of our own on Azure DevOps, and the pull requests that propose them.

A commit is created in the folder of this instance, and comes to Azure DevOps with the push of its branch. An
instance that ends in between loses it, and nothing else: whoever proposes makes another one.
"""

from __future__ import annotations

from urllib.parse import quote
from uuid import UUID

from shared.adapters.azure_devops.client import NO_PERMISSION, DevOpsClient
from shared.adapters.azure_devops.pulls import pull_of
from shared.adapters.git.writing import WritableGit
from shared.cluster.failures.errors import Conflict, InvalidManifest, ReconcileError
from shared.masking import cut
from shared.ports.pull_requests import AutoMerge, NewCommit, Pull, PullText, auto_merge_of

MAX_TITLE, MAX_BODY = 256, 65_536
"""Characters, as the port has them; no page of Microsoft states a limit of a title."""
MAX_DESCRIPTION = 4000
"""Characters of a description that Azure DevOps takes: github.com/scala-steward-org/scala-steward/issues/3543
has its refusal."""
_AUTHOR = "Roadstead <roadstead@azure-devops.invalid>"
_EXISTS, _ENDED = "TF401179", "TF401181"
"""An active pull request of these branches, and one that is completed or abandoned."""


class DevOpsBranches(WritableGit):
    """The part of the port that is about our own branches."""

    _client: DevOpsClient
    to_write = NO_PERMISSION

    def is_guarded(self, branch: str) -> bool:
        """Return whether a blocking policy applies to a branch: it then changes by pull requests alone.

        learn.microsoft.com/azure/devops/repos/git/branch-policies. Two calls: a policy is asked for by the id
        of the repository.
        """
        with self._client.calling("no policies") as call:
            address = self._client.address
            repository = str(UUID(call("GET", "")["id"]))
            query = {"repositoryId": repository, "refName": f"refs/heads/{branch}"}
            url = f"{address.organization}/{quote(address.project)}/_apis/git/policy/configurations"
            found = call("GET", url, query=query)["value"]
            return any(rule["isEnabled"] and rule["isBlocking"] for rule in found)

    def add_commit(self, commit: NewCommit) -> str:
        """Create a commit in the folder of this instance, and return its id."""
        return self._made(commit, _AUTHOR, int(self._server.said_at.timestamp()))

    def delete_branch(self, branch: str) -> None:
        """Delete a branch, as it is now."""
        tip = self.tip(branch)
        if tip is not None:
            with self._permitted():
                self._push({f"refs/heads/{branch}": (tip, None)})

    def open_pull(self, branch: str, base: str, text: PullText) -> Pull:
        """Open a pull request; Azure DevOps answers TF401179 when one is open, which takes another call.

        One without a commit of its own is refused here: Azure DevOps may open it.
        """
        _check(text)
        heads = self.branches("")
        if not {branch, base} <= heads.keys() or self.is_descendant(heads[base], heads[branch]):
            raise InvalidManifest(f"there are no commits of {branch} that {base} lacks")
        refs = {"sourceRefName": f"refs/heads/{branch}", "targetRefName": f"refs/heads/{base}"}
        with self._client.calling("no pull requests") as call:
            try:
                opened = call("POST", "/pullrequests", body={**refs, **_shown(text)})
            except ReconcileError as error:
                if error.code != _EXISTS:
                    raise
            else:
                return pull_of(opened, self._client.address)
            query = {f"searchCriteria.{name}": ref for name, ref in refs.items()}
            items = call("GET", "/pullrequests", query=query | {"searchCriteria.status": "active"})["value"]
            listed = (pull_of(item, self._client.address) for item in items)
            found = next((pull for pull in listed if not pull.fork), None)  # anybody names a branch of a fork
            if found is None:
                raise Conflict(f"the pull request of {branch} was closed meanwhile")
            return found

    def enable_auto_merge(self, number: int, head: str) -> AutoMerge:
        """Set auto-complete, which always waits for the blocking policies of the branch: five calls at most.

        Without such a policy Azure DevOps would merge at once. Nothing binds it to a commit. Sources:
        learn.microsoft.com/javascript/api/azure-devops-extension-api, "GitPullRequestCompletionOptions", and
        autoCompleteSetBy in MicrosoftDocs/vsts-rest-api-specs, git/7.1.
        """
        with self._client.calling(f"no pull request {number}") as call:
            item = call("GET", f"/pullrequests/{number}")
            pull = pull_of(item, self._client.address)
        shown = auto_merge_of(pull, head, enabled=bool(item.get("autoCompleteSetBy")))
        if shown is None and not self.is_guarded(pull.base):
            shown = AutoMerge.NO_RULES
        if shown is None:
            with self._client.calling(f"no pull request {number}") as call:
                body = {"autoCompleteSetBy": {"id": self._client.user}}
                call("PATCH", f"/pullrequests/{number}", body=body)
        return shown or AutoMerge.ENABLED

    def edit_pull(self, number: int, text: PullText) -> None:
        """Replace what a pull request says."""
        _check(text)
        with self._client.calling(f"no pull request {number}") as call:
            call("PATCH", f"/pullrequests/{number}", body=_shown(text))

    def close_pull(self, number: int) -> None:
        """Abandon a pull request; one that is completed or abandoned stays as it is."""
        with self._client.calling(f"no pull request {number}") as call:
            try:
                call("PATCH", f"/pullrequests/{number}", body={"status": "abandoned"})
            except ReconcileError as error:
                if error.code != _ENDED:
                    raise


def _check(text: PullText) -> None:
    if not 1 <= len(text.title) <= MAX_TITLE or len(text.body) > MAX_BODY:
        raise InvalidManifest(f"title or body is too long (maximum is {MAX_TITLE} and {MAX_BODY} characters)")


def _shown(text: PullText) -> dict[str, str]:
    return {"title": text.title, "description": cut(text.body, MAX_DESCRIPTION, "\n...")}
