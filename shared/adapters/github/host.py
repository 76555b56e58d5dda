"""The fleet repository on GitHub: branches, trees, blobs, archives and commit statuses.

Every method makes one HTTP call (a cached blob, tree, comparison or history: none; an archive, of which a
file is not cached, or a head: two; the changes since a commit: one for each hundred).
GitHub counts those of a head only where the answer has changed, so each of thousands of deletes reads it.
Blobs are immutable, so the most recently used ones stay in memory, bounded by their bytes, and each is
verified by its id. So is the history of a commit: a comparison of two that exist, their files, and the
changes of a path up to one, stay in memory too, and so do the last trees: thousands of deletes ask for the
tree of one commit.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote

from github import Auth
from github.Commit import Commit

from shared.adapters.answers import checked, moment
from shared.adapters.github.archive import BlobCache, read_archive
from shared.adapters.github.client import (
    PAGE,
    TIMEOUT,
    GitHubClient,
    LastAnswers,
    json_call,
    readable,
)
from shared.adapters.github.issues import GitHubIssues
from shared.adapters.github.pulls import GitHubBranches, GitHubPullRequests
from shared.cluster.failures.errors import Dependency, Unauthorized, Unavailable
from shared.language.resolve.repository_layout import blob_id
from shared.ports.git_host import (
    BranchCommit,
    BranchHead,
    Capability,
    CommitStatus,
    HookDelivery,
    TreeEntry,
)

_PLAIN_MODES = ("100644", "100755")
_COMPARISONS = 1000
_HISTORIES = 200
_TREES = 2
_OTHERS = 50
"""So many other repositories keep what was read of them."""
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


class GitHubHost(GitHubPullRequests, GitHubBranches, GitHubIssues):
    """The repository "owner/name" on GitHub, or on a GitHub Enterprise Server at ``base_url``."""

    name, credential = "GitHub", "GITHUB_TOKEN"
    to_read_another = "add the repository to the installation of the GitHub App, or to the token"

    def __init__(
        self,
        repository: str,
        auth: Auth.Auth,
        *,
        base_url: str = "https://api.github.com",
        cache_bytes: int = 32 << 20,
    ) -> None:
        self._name = repository
        self._others = lru_cache(_OTHERS)(
            partial(GitHubHost, auth=auth, base_url=base_url, cache_bytes=1 << 20)
        )
        self._client = GitHubClient(repository, auth, base_url=base_url)
        self._blobs = BlobCache(cache_bytes)
        self._compared = lru_cache(_COMPARISONS)(self._compare)
        self._changes = lru_cache(_HISTORIES)(self._read_changes)
        self._files = lru_cache(_HISTORIES)(self._read_files)
        self._trees = lru_cache(_TREES)(self._read_tree)
        self._answers = LastAnswers()

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Everything; only Apps may write check runs."""
        return frozenset(Capability) - (set() if self._client.is_app else {Capability.WRITTEN_CHECKS})

    def permissions(self) -> Mapping[str, str] | None:
        """Return the permissions of the App's installation: docs.github.com/rest/apps/apps.

        Of a token GitHub says what the role of its account allows, and of a classic one its scopes:
        docs.github.com/rest/repos/repos, docs.github.com/apps/oauth-apps, "Scopes for OAuth apps".
        """
        found = self._client.as_app("/app/installations/{installation}")
        if found is None:
            self._check_token()
            return None
        with readable(self._name):
            return {str(name): str(level) for name, level in found["permissions"].items()}

    def _check_token(self) -> None:
        """Raise Unauthorized for a token of which GitHub says that it may write nothing."""
        with self._client.calling("it is not there") as api:
            headers, repository = self._answers.read(api, api.url)
            if not repository.get("permissions", {}).get("push", True):
                raise Unauthorized(
                    f"the account of {self.credential} has no role that writes to {self._name}"
                )
            scopes = {scope.strip() for scope in headers.get("x-oauth-scopes", "").split(",")} - {""}
            needed = {"repo"} if repository["private"] else {"repo", "public_repo"}
            if scopes and not scopes & needed:
                raise Unauthorized(
                    f"{self.credential} has the scopes {', '.join(sorted(scopes))}, and writes nothing "
                    f"without {' or '.join(sorted(needed))}"
                )

    def deliveries(self) -> Sequence[HookDelivery] | None:
        """Return the newest deliveries of the App's webhook: docs.github.com/rest/apps/webhooks."""
        found = self._client.as_app("/app/hook/deliveries", {"per_page": PAGE})
        with readable(self._name):
            return found and [
                checked(
                    HookDelivery(
                        item["guid"], item["event"], moment(item["delivered_at"]), item["status_code"]
                    )
                )
                for item in found
            ]

    def other(self, repository: str) -> GitHubHost:
        """Return another repository of the host, with the same credential."""
        return self._others(repository)

    def read_head(self, branch: str) -> BranchHead:
        """Return the commit that the branch points to; raise Dependency when there is no such branch."""
        # 409: the repository is empty, so it has no branches.
        with self._client.calling(f"no branch {branch}", absent=(404, 409)) as api:
            headers, ref = self._answers.read(api, f"{api.url}/git/ref/heads/{quote(branch)}")
            commit = ref["object"]["sha"]
            if not _COMMIT.fullmatch(commit):
                raise ValueError("not the id of a commit")
            at = moment(parsedate_to_datetime(headers["date"]).isoformat())
            ends = end_of_token(headers.get("github-authentication-token-expiration", ""))
            # Afterwards: a name that passes to another repository meanwhile then shows the other id.
            _, repository = self._answers.read(api, api.url)
            return checked(
                BranchHead(commit=commit, at=at, repository=repository["id"], credential_expires=ends)
            )

    def pushed_at(self, branch: str, commit: str) -> datetime | None:  # noqa: ARG002 - its webhook says it
        """Return None: the webhook of a push has its time."""
        return None

    def is_descendant(self, commit: str, earlier: str) -> bool:
        """Return whether a commit is a descendant of another, or equal to it; False for an unknown one."""
        try:
            return self._compared(commit, earlier) in ("ahead", "identical")
        except Dependency:
            return False

    def _compare(self, commit: str, earlier: str) -> str:
        """Return how a commit is related to another; raise Dependency for an unknown one."""
        # Only the first page of a comparison lists the changed files, which are not needed.
        page = {"per_page": 1, "page": 2}
        with self._client.calling(f"no commit {commit}", absent=(404, 422)) as api:
            comparison = json_call(api, "GET", f"{api.url}/compare/{earlier}...{commit}", query=page)
            return str(comparison["status"])

    def changes(self, commit: str, path: str, most: int) -> Sequence[BranchCommit]:
        """Return the newest commits that changed something at or below a path; raise Dependency."""
        return self._changes(commit, path, most)

    def _read_changes(self, commit: str, path: str, most: int) -> Sequence[BranchCommit]:
        newest = {"sha": commit, "per_page": most} | ({"path": path} if path else {})
        with self._client.calling(f"no commit {commit}", absent=(404, 409, 422)) as api:
            found = json_call(api, "GET", f"{api.url}/commits", query=newest)
            return [_change(entry) for entry in found]

    def changes_since(self, commit: str, earlier: str, most: int) -> Sequence[BranchCommit] | None:
        """Return the commits that an earlier one does not have; None for more than ``most``."""
        listed: list[BranchCommit] = []
        with self._client.calling(f"no commit {commit}, or {earlier}", absent=(404, 422)) as api:
            url, total, page = f"{api.url}/compare/{earlier}...{commit}", 1, 0
            while len(listed) < total:
                page += 1
                found = json_call(api, "GET", url, query={"per_page": PAGE, "page": page})
                total = int(found["total_commits"])
                if total > most:
                    return None
                if total and not found["commits"]:
                    raise ValueError("not all commits")
                listed += map(_change, found["commits"])
            if len({change.commit for change in listed}) != total:  # such as one page again and again
                raise ValueError("not all commits")
        return listed

    def files_between(self, commit: str, earlier: str) -> Sequence[str]:
        """Return the paths of the files that differ between a commit and an ancestor."""
        return self._files(commit, earlier)

    def _read_files(self, commit: str, earlier: str) -> Sequence[str]:
        with self._client.calling(f"no commit {commit}, or {earlier}", absent=(404, 422)) as api:
            found = json_call(api, "GET", f"{api.url}/compare/{earlier}...{commit}", query={"per_page": 1})
            names = ((file["filename"], file.get("previous_filename")) for file in found["files"])
            return sorted({str(name) for pair in names for name in pair if name})

    def tree(self, commit: str) -> Sequence[TreeEntry]:
        """Return every file at a commit; raise Unavailable when GitHub truncated the response."""
        return self._trees(commit)

    def _read_tree(self, commit: str) -> Sequence[TreeEntry]:
        with self._client.calling(f"no commit {commit}") as api:
            answer = api.get_git_tree(commit, recursive=True).raw_data
            if answer.get("truncated", True):
                raise Unavailable(
                    f"{self._name}: the tree of {commit} exceeds GitHub's limits for one response "
                    "(100,000 entries or 7 MB), and a truncated tree cannot be planned"
                )
            return tuple(_tree_entry(item) for item in answer["tree"] if item["type"] != "tree")

    def blob(self, sha: str) -> bytes:
        """Return a file's content by its blob id; raise Dependency when there is none."""
        data = self._blobs.get(sha)
        if data is None:
            with self._client.calling(f"no blob {sha}") as api:
                data = base64.b64decode(api.get_git_blob(sha).content)
            if blob_id(data) != sha:
                raise Unavailable(f"{self._name}: GitHub returned other content for the blob {sha}")
            self._blobs.put(sha, data)
        return data

    def archive(self, commit: str, paths: Collection[str]) -> Mapping[str, bytes]:
        """Return the plain files at these paths; raise Unavailable unless the tarball is complete.

        The tarball is asked for where a file is not in memory: so the plans of one commit ask once.
        """
        blobs = {entry.path: entry.sha for entry in self.tree(commit) if entry.plain}
        wanted = {path: blobs[path] for path in paths if path in blobs}
        known = {path: self._blobs.get(sha) for path, sha in wanted.items()}
        if None not in known.values():
            return {path: content for path, content in known.items() if content is not None}
        found = read_archive(self._client.archive_link(commit), paths, timeout=TIMEOUT)
        for path, content in found.items():
            if blob_id(content) == wanted.get(path):  # .gitattributes may have changed its line ends
                self._blobs.put(wanted[path], content)
        return found

    def set_status(self, commit: str, status: CommitStatus) -> None:
        """Create the commit status; raise InvalidManifest when GitHub rejects its content."""
        optional = {"target_url": status.target_url} if status.target_url else {}
        with self._client.calling(f"no commit {commit}") as api:
            attributes = {"sha": commit, "url": f"{api.url}/commits/{commit}"}
            Commit(api.requester, attributes=attributes, completed=True).create_status(
                status.state, description=status.description, context=status.context, **optional
            )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def end_of_token(header: str) -> datetime | None:
    """Return when a personal access token ends, "2027-01-31 09:00:00 UTC" or with "+0100"; None without that.

    Source: github.blog/changelog/2021-07-26-expiration-options-for-personal-access-tokens. GitHub sends no
    such header for a token without an end, and for that of an App, which the library renews.
    """
    try:
        return datetime.strptime(header.replace(" UTC", " +0000"), "%Y-%m-%d %H:%M:%S %z")
    except ValueError:
        return None


def _change(entry: Any) -> BranchCommit:
    people = [entry["commit"][role] or {"email": ""} for role in ("author", "committer")]
    author, committer = (str(person["email"]).lower() for person in people)
    parents = tuple(str(parent["sha"]) for parent in entry["parents"])
    return BranchCommit(str(entry["sha"]), author, committer, str(entry["commit"]["message"]), parents)


def _tree_entry(item: Mapping[str, Any]) -> TreeEntry:
    size, plain = item.get("size", 0), item["mode"] in _PLAIN_MODES
    return checked(TreeEntry(path=item["path"], sha=item["sha"], size=size, plain=plain))
