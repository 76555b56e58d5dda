"""Branches of our own on Azure DevOps, and the pull requests that propose them.

A commit is created in the folder of this instance, and comes to Azure DevOps with the push of its branch. An
instance that ends in between loses it, and nothing else: whoever proposes makes another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote
from uuid import UUID

from dulwich.graph import can_fast_forward
from dulwich.object_store import commit_tree_changes
from dulwich.objects import Blob, Commit, ObjectID

from shared.adapters.azure_devops.client import DevOpsClient
from shared.adapters.azure_devops.pulls import pull_of
from shared.adapters.azure_devops.transfer import DevOpsGit
from shared.adapters.git import GitServerHost
from shared.cluster.failures.errors import Conflict, InvalidManifest, ReconcileError
from shared.masking import cut
from shared.ports.pull_requests import AutoMerge, NewCommit, Pull, PullText, auto_merge_of

MAX_TITLE, MAX_BODY = 256, 65_536
"""Characters, as the port has them; Azure DevOps takes 400 of a title."""
MAX_DESCRIPTION = 4000
"""Characters of a description that Azure DevOps takes: github.com/scala-steward-org/scala-steward/issues/3543
has its refusal."""
_AUTHOR = b"Roadstead <roadstead@azure-devops.invalid>"
_FILE = 0o100644
_EXISTS, _ENDED = "TF401179", "TF401181"
"""An active pull request of these branches, and one that is completed or abandoned."""


class DevOpsBranches(GitServerHost):
    """The part of the port that is about our own branches."""

    _client: DevOpsClient
    _git: DevOpsGit

    def tip(self, branch: str) -> str | None:
        """Return the commit that a branch points to, None when there is no such branch."""
        with self._lock:
            return self._git.references().get(branch)

    def branches(self, prefix: str) -> Mapping[str, str]:
        """Return the branches with a prefix."""
        with self._lock:
            found = self._git.references()
        return {branch: commit for branch, commit in found.items() if branch.startswith(prefix)}

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
        base = [self._commit(parent) for parent in commit.parents][-1]
        with self._reading():
            changes = [(path.encode(), *self._blob_of(content)) for path, content in commit.files.items()]
            try:
                tree = commit_tree_changes(self._store, base.tree, changes)
            except KeyError as error:
                raise InvalidManifest(f"no file {error}") from error
            created = Commit()
            created.tree, created.parents = tree, [ObjectID(parent.encode()) for parent in commit.parents]
            created.author = created.committer = _AUTHOR
            created.author_time = created.commit_time = int(self._git.said_at.timestamp())
            created.author_timezone = created.commit_timezone = 0
            created.message = commit.message.encode()
            self._store.add_object(created)
            return created.id.decode()

    def _blob_of(self, content: bytes | None) -> tuple[int | None, ObjectID | None]:
        """Store the content of a file; return its mode and its id, nothing for one that is removed."""
        if content is None:
            return None, None
        blob = Blob.from_string(content)
        self._store.add_object(blob)
        return _FILE, blob.id

    def move_branch(self, branch: str, tip: str | None, commit: str) -> None:
        """Let a branch point to a commit that comes after its ``tip``."""
        created = self._commit(commit)
        before = self._commit(tip) if tip else None
        with self._reading():
            if before is not None and not can_fast_forward(self._repo, before.id, created.id):
                raise Conflict(f"{commit} does not come after {tip}, to which {branch} points")
            self._git.push(self._store, branch, tip, commit)

    def delete_branch(self, branch: str) -> None:
        """Delete a branch, as it is now."""
        with self._reading():
            tip = self._git.references().get(branch)
            if tip is not None:
                self._git.push(self._store, branch, tip, None)

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
