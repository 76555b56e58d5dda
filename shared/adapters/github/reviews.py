"""Reviews, authors and files of pull requests, and the members of teams, from GitHub's REST API.

docs.github.com/rest: commits/commits "List pull requests associated with a commit", pulls/reviews,
pulls/pulls "List pull requests files" and "List commits on a pull request", teams/members "List team
members", which includes the members of child teams.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shared.adapters.answers import T, checked, moment
from shared.adapters.github.client import PAGE, GitHubClient, json_call
from shared.cluster.failures.errors import Dependency, Unauthorized
from shared.ports.git_host import Addressee, co_authors
from shared.ports.pull_requests import MergedPull, PullAuthors, Review, ReviewState

PAGES = 10
"""Our own bound: a longer list counts as unknown."""
COMMITS = 250
"""GitHub lists no more commits of a pull request, and does not say whether there are more."""
_GONE = ("removed", "renamed")
_STATES = frozenset(ReviewState)
_HIDDEN = "@users.noreply.github.com"
"""The end of an address that hides one (docs.github.com, "Setting your commit email address")."""
_ACCOUNT = re.compile(rf"(\d+)\+[^@]+{re.escape(_HIDDEN)}", re.IGNORECASE)
_PAGES = "noreply@github.com"
"""The committer of what GitHub's pages merge."""
_APPS = (f"[bot]{_HIDDEN}", f"+copilot{_HIDDEN}")
"""The ends of the addresses of GitHub Apps: no login of a person has brackets.

That of Copilot has none either. It is a co-author, as 223556219+Copilot, of what its tools helped with, and
writes by itself as 198982749+Copilot; GitHub shows the login as one of the type Bot.
"""


class GitHubReviews:
    """The part of the port that is about reviews. A list takes one call for each 100 entries."""

    _client: GitHubClient

    def addressee(self, address: str) -> Addressee:
        """Return whose an address in lower case is."""
        if address == _PAGES or address.endswith(_APPS):
            return Addressee.NOBODY
        return Addressee.HIDDEN if address.endswith(_HIDDEN) else Addressee.PERSON

    def merged_as(self, commit: str) -> Sequence[MergedPull]:
        """Return the merged pull requests that brought a commit: one call."""
        with self._client.calling(f"no commit {commit}", absent=(404, 409, 422)) as api:
            found = json_call(api, "GET", f"{api.url}/commits/{commit}/pulls", query={"per_page": PAGE})
            return [_merged(item) for item in found if item["merged_at"]]

    def reviews(self, number: int) -> Sequence[Review] | None:
        """Return the submitted reviews of a pull request, oldest first; None for too many."""
        return self._listed(f"/pulls/{number}/reviews", f"no pull request {number}", _reviews)

    def removed_files(self, number: int) -> frozenset[str] | None:
        """Return the paths that a pull request removes or renames; None for too many files."""
        found = self._listed(f"/pulls/{number}/files", f"no pull request {number}", _gone)
        return None if found is None else frozenset(found)

    def pull_authors(self, number: int) -> PullAuthors:
        """Return the accounts of the authors and committers of a pull request's commits.

        GitHub names no account of a co-author: it is known only of an address that hides it.
        """
        found = self._listed(f"/pulls/{number}/commits", f"no pull request {number}", _people) or []
        known = [account for people in found for account in people]
        complete = None not in known and 0 < len(found) < COMMITS
        return PullAuthors(frozenset(account for account in known if account is not None), complete=complete)

    def team_members(self, team: str) -> frozenset[int] | None:
        """Return the members of a team; None for too many."""
        owner, _, slug = team.partition("/")
        try:
            path = f"/orgs/{owner}/teams/{slug}/members"
            found = self._listed(path, f"no team {team}", _ids, root=True)
        except Dependency as error:
            raise Dependency(f"{error}; {self._permission(owner)}", request_id=error.request_id) from error
        except Unauthorized as error:
            raise Unauthorized(f"{error}; {self._permission(owner)}", request_id=error.request_id) from error
        return None if found is None else frozenset(found)

    def _permission(self, owner: str) -> str:
        """Return which permission lets us read the members of a team."""
        if self._client.is_app:
            return f"give the GitHub App the organization permission Members: read, and accept it for {owner}"
        return f"give the token the permission Members: read of {owner} (a classic token: read:org)"

    def _listed(
        self, path: str, missing: str, read: Callable[[list[Any]], list[T]], *, root: bool = False
    ) -> Sequence[T] | None:
        """Return what is read of a list of the repository (``root``: of GitHub), None for too many pages."""
        items: list[T] = []
        for page in range(1, PAGES + 1):
            with self._client.calling(missing) as api:
                url = path if root else f"{api.url}{path}"
                found = json_call(api, "GET", url, query={"per_page": PAGE, "page": page})
                items += read(found)
                if len(found) < PAGE:
                    return items
        return None


def _reviews(found: list[Any]) -> list[Review]:
    return [_review(item) for item in found if item["user"] and item["state"] in _STATES]


def _gone(found: list[Any]) -> list[str]:
    gone = (item for item in found if item["status"] in _GONE)
    return [str(item.get("previous_filename") or item["filename"]) for item in gone]


def _people(found: list[Any]) -> list[list[int | None]]:
    """Return the accounts of each commit, None for one that is not known."""
    people = []
    for item in found:
        accounts = [int(item[role]["id"]) if item[role] else None for role in ("author", "committer")]
        people.append(
            accounts + [account_behind(co_author) for co_author in co_authors(str(item["commit"]["message"]))]
        )
    return people


def account_behind(address: str) -> int | None:
    """Return the id of the account that hides behind an address of GitHub; None for any other address."""
    found = _ACCOUNT.fullmatch(address)
    return int(found[1]) if found else None


def _ids(found: list[Any]) -> list[int]:
    return [int(member["id"]) for member in found]


def _merged(item: Mapping[str, Any]) -> MergedPull:
    return checked(
        MergedPull(
            number=item["number"],
            head=item["head"]["sha"],
            base=item["base"]["ref"],
            repository=int(item["base"]["repo"]["id"]),
            merge_commit=item["merge_commit_sha"] or "",
            author=int((item["user"] or {}).get("id", 0)),
            at=moment(item["merged_at"]),
            labels=labels_of(item),
        )
    )


def labels_of(item: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the labels of a pull request."""
    return frozenset(str(label["name"]) for label in item.get("labels") or ())


def _review(item: Mapping[str, Any]) -> Review:
    return checked(
        Review(
            id=int(item["id"]),
            reviewer=int(item["user"]["id"]),
            login=str(item["user"]["login"]),
            state=ReviewState(item["state"]),
            commit=item["commit_id"] or "",
            at=moment(item["submitted_at"]),
            url=str(item["html_url"]),
            text=item["body"] or "",
        )
    )
