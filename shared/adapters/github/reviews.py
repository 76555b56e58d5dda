"""Reviews, authors and files of pull requests, and the members of teams, from GitHub's REST API.

docs.github.com/rest: commits/commits "List pull requests associated with a commit", pulls/reviews,
pulls/pulls "List pull requests files" and "List commits on a pull request", teams/members "List team
members", which includes the members of child teams.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from shared.adapters.github.client import PAGE, GitHubClient, json_call
from shared.jobs.failures.errors import Dependency, Unauthorized
from shared.ports.github import (
    MergedPull,
    PullAuthors,
    Review,
    ReviewState,
    account_behind,
    co_authors,
)

PAGES = 10
COMMITS = 250
"""GitHub lists no more commits of a pull request, and does not say whether there are more."""
_GONE = ("removed", "renamed")
_STATES = frozenset(ReviewState)


class GitHubReviews:
    """The part of the PullRequests port that is about reviews. A list takes one call for each 100 entries."""

    _client: GitHubClient

    def merged_as(self, commit: str) -> Sequence[MergedPull]:
        """Return the merged pull requests that brought a commit: one call."""
        with self._client.calling(f"no commit {commit}", absent=(404, 409, 422)) as api:
            found = json_call(api, "GET", f"{api.url}/commits/{commit}/pulls", query={"per_page": PAGE})
            return [_merged(item) for item in found if item["merged_at"]]

    def reviews(self, number: int) -> Sequence[Review] | None:
        """Return the submitted reviews of a pull request, oldest first; None for too many."""
        found = self._listed(f"/pulls/{number}/reviews", f"no pull request {number}")
        if found is None:
            return None
        return [_review(item) for item in found if item["user"] and item["state"] in _STATES]

    def removed_files(self, number: int) -> frozenset[str] | None:
        """Return the paths that a pull request removes or renames; None for too many files."""
        found = self._listed(f"/pulls/{number}/files", f"no pull request {number}")
        if found is None:
            return None
        gone = (item for item in found if item["status"] in _GONE)
        return frozenset(str(item.get("previous_filename") or item["filename"]) for item in gone)

    def pull_authors(self, number: int) -> PullAuthors:
        """Return the accounts of the authors and committers of a pull request's commits.

        GitHub names no account of a co-author: it is known only of an address that hides it.
        """
        found = self._listed(f"/pulls/{number}/commits", f"no pull request {number}") or []
        people = [item[role] for item in found for role in ("author", "committer")]
        known = [int(person["id"]) if person else None for person in people]
        messages = (str(item["commit"]["message"]) for item in found)
        known += [account_behind(address) for message in messages for address in co_authors(message)]
        complete = None not in known and 0 < len(found) < COMMITS
        return PullAuthors(frozenset(each for each in known if each is not None), complete=complete)

    def team_members(self, team: str) -> frozenset[int] | None:
        """Return the members of a team; None for too many."""
        owner, _, slug = team.partition("/")
        try:
            found = self._listed(f"/orgs/{owner}/teams/{slug}/members", f"no team {team}", root=True)
        except Dependency as error:
            raise Dependency(f"{error}; {self._permission(owner)}", request_id=error.request_id) from error
        except Unauthorized as error:
            raise Unauthorized(f"{error}; {self._permission(owner)}", request_id=error.request_id) from error
        return None if found is None else frozenset(int(member["id"]) for member in found)

    def _permission(self, owner: str) -> str:
        """Return which permission lets us read the members of a team."""
        if self._client.is_app:
            return f"give the GitHub App the organization permission Members: read, and accept it for {owner}"
        return f"give the token the permission Members: read of {owner} (a classic token: read:org)"

    def _listed(self, path: str, missing: str, *, root: bool = False) -> Sequence[Mapping[str, Any]] | None:
        """Return a list of the repository (``root``: of GitHub), None when it has too many pages."""
        items: list[Mapping[str, Any]] = []
        for page in range(1, PAGES + 1):
            with self._client.calling(missing) as api:
                url = path if root else f"{api.url}{path}"
                found = json_call(api, "GET", url, query={"per_page": PAGE, "page": page})
            items += found
            if len(found) < PAGE:
                return items
        return None


def _merged(item: Mapping[str, Any]) -> MergedPull:
    return MergedPull(
        number=item["number"],
        head=item["head"]["sha"],
        base=item["base"]["ref"],
        repository=int(item["base"]["repo"]["id"]),
        merge_commit=item["merge_commit_sha"] or "",
        author=int((item["user"] or {}).get("id", 0)),
        at=datetime.fromisoformat(item["merged_at"]),
        labels=labels_of(item),
    )


def labels_of(item: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the labels of a pull request."""
    return frozenset(str(label["name"]) for label in item.get("labels") or ())


def _review(item: Mapping[str, Any]) -> Review:
    return Review(
        id=int(item["id"]),
        reviewer=int(item["user"]["id"]),
        login=str(item["user"]["login"]),
        state=ReviewState(item["state"]),
        commit=item["commit_id"] or "",
        at=datetime.fromisoformat(item["submitted_at"]),
        url=str(item["html_url"]),
        text=item["body"] or "",
    )
