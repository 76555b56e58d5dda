"""Merge requests on GitLab: their test merges, notes, approvals, files and authors.

Our note is the oldest one of the token's user that begins with the marker; a marker in somebody else's note
is ignored. Sources: docs.gitlab.com/api/merge_requests, /api/notes, /api/merge_request_approvals,
/api/group_members; /api/graphql/reference, "MergeRequest".
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

from shared.adapters.answers import checked, moment
from shared.adapters.gitlab.client import NEWEST, OLDEST, PAGE, PAGES, GitLabClient, page
from shared.cluster.failures.errors import (
    Dependency,
    InvalidManifest,
    Unauthorized,
)
from shared.ports.git_host import Addressee, Capability, co_authors
from shared.ports.pull_requests import (
    Check,
    Comment,
    MergedPull,
    Pull,
    PullAuthors,
    Review,
    ReviewState,
)

_NOTE_PAGES = 5
"""Our note is among the first of a merge request, because it is written when the merge request opens."""
_NOT_MERGEABLE = "not mergeable"
"""What GitLab says of a conflict; "Failed to obtain a lock" is said while it still tries
(app/services/merge_requests/mergeability_check_service.rb of gitlab-org/gitlab)."""
_APPROVED = "approved this merge request"
"""The note that GitLab itself writes (app/services/system_notes/merge_requests_service.rb)."""
_BOT = re.compile(r"(project|group)_\d+_bot(_[0-9a-f]+)?@noreply\..+|service_account_.+@noreply\..+")
"""docs.gitlab.com/user/project/settings/project_access_tokens, "Bot users for projects"."""
_HIDDEN = re.compile(r"(\d+)-[^@]+@users\.noreply\..+")
"""docs.gitlab.com/user/profile, "Use an automatically-generated private commit email"."""
_LONG_AGO = datetime.fromtimestamp(0, UTC)
_AUTHORS = """
query ($path: ID!, $iid: String!, $after: String) {
  project(fullPath: $path) {
    mergeRequest(iid: $iid) {
      committers(first: 100) { nodes { id } }
      commits(first: 100, after: $after) {
        pageInfo { hasNextPage endCursor }
        nodes { message authorEmail committerEmail author { id } }
      }
    }
  }
}
"""


class GitLabMergeRequests:
    """The part of the port that is about merge requests. A list takes one call for each 100 entries."""

    _client: GitLabClient

    def open_pulls(self, base: str) -> Sequence[Pull]:
        """Return the open merge requests into a branch, newest first, at most 100."""
        with self._client.calling("no merge requests") as project:
            found = page(project.mergerequests, state="opened", target_branch=base, **NEWEST)
            return [pull_of(item) for item in found]

    def pull(self, number: int) -> Pull | None:
        """Return a merge request, or None; asking for its test merge makes GitLab create that."""
        try:
            with self._client.calling(f"no merge request {number}") as project:
                found = project.mergerequests.get(number)
                pull = pull_of(found.attributes)
            return pull_of(found.attributes, self._merge_of(number)) if pull.open else pull
        except Dependency:
            return None

    def _merge_of(self, number: int) -> str | None:
        try:
            with self._client.calling(f"no merge request {number}") as project:
                made: Any = project.mergerequests.get(number, lazy=True).merge_ref()
                return str(made["commit_id"])
        except InvalidManifest as error:
            return "" if _NOT_MERGEABLE in str(error) else None

    def comment(self, number: int, marker: str) -> Comment | None:
        """Return our oldest note that begins with the marker, or None."""
        user = self._client.user.id
        for number_of_page in range(1, _NOTE_PAGES + 1):
            with self._client.calling(f"no merge request {number}") as project:
                notes = project.mergerequests.get(number, lazy=True).notes
                found = page(notes, page=number_of_page, **OLDEST)
                for note in found:
                    text, author = str(note.get("body") or ""), (note.get("author") or {}).get("id")
                    if text.startswith(marker) and author == user and not note.get("system"):
                        return checked(Comment(id=note["id"], body=text))
                if len(found) < PAGE:
                    break
        return None

    def write_comment(self, number: int, body: str, *, over: Comment | None) -> None:
        """Create a note, or replace ``over``."""
        with self._client.calling(f"no merge request {number}") as project:
            notes = project.mergerequests.get(number, lazy=True).notes
            if over is None:
                notes.create({"body": body})
            else:
                notes.update(over.id, {"body": body})

    def write_check(self, commit: str, check: Check) -> None:  # noqa: ARG002 - GitLab has none
        """Refuse: a job of GitLab has no annotations."""
        raise Unauthorized(f"GitLab has no {Capability.WRITTEN_CHECKS.value}")

    def merged_as(self, commit: str) -> Sequence[MergedPull]:
        """Return the merged merge requests that brought a commit: one call."""
        try:
            with self._client.calling(f"no commit {commit}") as project:
                path = f"{project.encoded_id}/repository/commits/{commit}/merge_requests"
                found = self._client.read(f"/projects/{path}", state="merged", per_page=PAGE)
                return [_merged(item) for item in found if item["state"] == "merged"]
        except Dependency:
            return ()

    def reviews(self, number: int) -> Sequence[Review] | None:
        """Return who approves, and who requested changes, oldest first: three calls.

        GitLab says when somebody approved, and not what they saw: that is the newest version of the merge
        request then. Where it does not say when, it is in GitLab's own notes. Without a time the commit is
        "", and such a review counts for no commit.
        """
        with self._client.calling(f"no merge request {number}") as project:
            request = project.mergerequests.get(number, lazy=True)
            approved = request.approvals.get().attributes["approved_by"]
            asked = [item for item in page(request.reviewer_details) if item["state"] == "requested_changes"]
            versions = page(request.diffs)
        url = f"{self._client.origin}/{self._client.name}/-/merge_requests/{number}"
        with self._client.calling(f"no merge request {number}"):
            seen = sorted((moment(item["created_at"]), str(item["head_commit_sha"])) for item in versions)
            against = {item["user"]["id"] for item in asked}
            approved = [item for item in approved if item["user"]["id"] not in against]
            if any(item.get("approved_at") is None for item in approved):
                approved = self._with_times(number, approved)
            found = [_review(item, ReviewState.APPROVED, item["approved_at"], seen, url) for item in approved]
            for item in asked:
                found.append(_review(item, ReviewState.CHANGES_REQUESTED, item["created_at"], seen, url))
            return sorted(found, key=lambda review: review.at)

    def _with_times(self, number: int, approved: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return approvals with the times of GitLab's own notes, which instances before 18 have alone."""
        with self._client.calling(f"no merge request {number}") as project:
            notes = project.mergerequests.get(number, lazy=True).notes
            at: dict[Any, str] = {}
            for note in page(notes, **NEWEST):
                if note["system"] is True and note["body"] == _APPROVED:
                    at.setdefault(note["author"]["id"], note["created_at"])
            return [
                {**item, "approved_at": item.get("approved_at") or at.get(item["user"]["id"])}
                for item in approved
            ]

    def removed_files(self, number: int) -> frozenset[str] | None:
        """Return the paths that a merge request removes or renames; None for too many files.

        GitLab says how many files change, and with a + that it shows no more of them.
        """
        with self._client.calling(f"no merge request {number}") as project:
            count = str(project.mergerequests.get(number).attributes["changes_count"] or "0")
            path = f"/projects/{project.encoded_id}/merge_requests/{number}/diffs"
        gone, seen = set[str](), 0
        for number_of_page in range(1, PAGES + 1):
            with self._client.calling(f"no merge request {number}"):
                files = self._client.read(path, page=number_of_page, per_page=PAGE)
                gone |= {
                    str(file["old_path"]) for file in files if file["deleted_file"] or file["renamed_file"]
                }
                seen += len(files)
                if len(files) < PAGE:
                    return frozenset(gone) if count == str(seen) else None
        return None

    def pull_authors(self, number: int) -> PullAuthors:
        """Return the accounts of the authors and committers of a merge request's commits, by GraphQL.

        GitLab names the account of each author, and all accounts that committed, without their addresses. Of
        the committers whose address is no author's, all are known where there are as many accounts.
        """
        commits, committers = self._commits_of(number)
        with self._client.calling(f"no merge request {number}"):
            authors = {_address(item["authorEmail"]): item["author"] for item in commits}
            known = {address: _account(author["id"]) for address, author in authors.items() if author}
            addresses = {_address(item["committerEmail"]) for item in commits} - {self._pages}
            unknown = {address for address in addresses if address not in known and not _hidden(address)}
            others = committers - {known.get(address) or _hidden(address) for address in addresses - unknown}
            people = ({*authors} | addresses - unknown) - {self._pages}
            people |= {address for item in commits for address in co_authors(str(item["message"]))}
        accounts = {known.get(address) or _hidden(address) for address in people}
        complete = bool(commits) and None not in accounts and len(unknown) == len(others)
        return PullAuthors(frozenset(filter(None, accounts)) | committers, complete=complete)

    def _commits_of(self, number: int) -> tuple[list[Mapping[str, Any]], frozenset[int]]:
        """Return the commits of a merge request, none for too many, and the accounts that committed."""
        commits: list[Mapping[str, Any]] = []
        after = None
        for _ in range(PAGES):
            with self._client.calling(f"no merge request {number}"):
                variables = {"path": self._client.name, "iid": str(number), "after": after}
                body = {"query": _AUTHORS, "variables": variables}
                answer: Any = self._client.api.http_post(f"{self._client.origin}/api/graphql", post_data=body)
                request = (answer["data"]["project"] or {}).get("mergeRequest")
                if request is None:
                    raise Dependency(f"{self._client.name}: no merge request {number}")
                commits += request["commits"]["nodes"]
                following = request["commits"]["pageInfo"]
                if following["hasNextPage"] is not True:
                    return commits, frozenset(_account(user["id"]) for user in request["committers"]["nodes"])
                after = str(following["endCursor"])
        return [], frozenset()

    @property
    def _pages(self) -> str:
        """The committer of what GitLab's own pages commit."""
        return f"noreply@{self._client.host}"

    def addressee(self, address: str) -> Addressee:
        """Return whose an address in lower case is."""
        if address == self._pages or _BOT.fullmatch(address):
            return Addressee.NOBODY
        return Addressee.HIDDEN if _HIDDEN.fullmatch(address) else Addressee.PERSON

    def team_members(self, team: str) -> frozenset[int] | None:
        """Return the direct members of a group, by its whole path; None for too many.

        Those of the groups above it are no members: everybody in the company may be one there.
        """
        found: list[Mapping[str, Any]] = []
        for number in range(1, PAGES + 1):
            try:
                with self._client.calling(f"no team {team}"):
                    group = self._client.api.groups.get(team, lazy=True)
                    members = page(group.members, page=number)
                    found += [member for member in members if member["state"] == "active"]
                    if len(members) < PAGE:
                        return frozenset(int(member["id"]) for member in found)
            except (Dependency, Unauthorized) as error:
                who = f"a user who is a member of {team}, such as a group access token of it"
                message = f"{error}; give GIT_PASSWORD the token of {who}"
                raise type(error)(message, request_id=error.request_id) from error
        return None


def pull_of(item: Mapping[str, Any], merge: str | None = None) -> Pull:
    """Return a merge request from GitLab's JSON."""
    return checked(
        Pull(
            number=item["iid"],
            head=item["sha"],
            base=item["target_branch"],
            merge=merge,
            fork=item["source_project_id"] != item["target_project_id"],
            open=item["state"] in ("opened", "locked"),
            merged=item["state"] == "merged",
            url=item["web_url"],
            labels=_labels(item),
        )
    )


def _labels(item: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(str(label) for label in item.get("labels") or ())


def _merged(item: Mapping[str, Any]) -> MergedPull:
    """Return a merged one: what its branch then was is a merge, a squash, or the head itself."""
    return checked(
        MergedPull(
            number=item["iid"],
            head=item["sha"],
            base=item["target_branch"],
            repository=item["target_project_id"],
            merge_commit=item["merge_commit_sha"] or item.get("squash_commit_sha") or item["sha"],
            author=int((item["author"] or {}).get("id", 0)),
            at=moment(item["merged_at"]).replace(microsecond=0),
            labels=_labels(item),
        )
    )


def _review(
    item: Mapping[str, Any], state: ReviewState, at: Any, seen: Sequence[tuple[datetime, str]], url: str
) -> Review:
    """Return a review; ``seen`` has the heads of the merge request, and since when."""
    user, when = item["user"], _LONG_AGO if at is None else moment(at)
    before = bisect_right(seen, when, key=itemgetter(0))
    return checked(
        Review(
            id=user["id"],
            reviewer=user["id"],
            login=user["username"],
            state=state,
            commit=seen[before - 1][1] if before else "",
            at=when.replace(microsecond=0),
            url=url,
        )
    )


def _address(text: Any) -> str:
    return str(text or "").strip().lower()


def _account(name: Any) -> int:
    """Return the number of "gid://gitlab/User/7"."""
    return int(str(name).removeprefix("gid://gitlab/User/"))


def _hidden(address: str) -> int | None:
    found = _HIDDEN.fullmatch(address)
    return int(found[1]) if found else None
