"""Votes, authors and files of pull requests on Azure DevOps, and the members of teams.

Source: github.com/MicrosoftDocs/vsts-rest-api-specs: specification/git/7.1 (pull request query, iterations,
commits), core/7.1 (team members), ims/7.1 (identities by mail address).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote
from uuid import UUID

from shared.adapters.answers import checked, moment
from shared.adapters.azure_devops.client import DevOpsClient
from shared.adapters.azure_devops.pulls import branch_of, labels_of
from shared.adapters.azure_devops.votes import reviews_of
from shared.cluster.failures.errors import Dependency, ReconcileError, Unauthorized
from shared.ports.git_host import co_authors
from shared.ports.pull_requests import MergedPull, PullAuthors, Review

PAGE, PAGES = 100, 10
MOST_REVIEWS = 1000
MOST_FILES = 1000
MOST_MEMBERS = 1000
MOST_AUTHORS = 50
"""Our own bounds, as on the other hosts: a longer list counts as unknown. Each author takes a call."""


class DevOpsReviews:
    """The part of the port that is about reviews."""

    _client: DevOpsClient

    def merged_as(self, commit: str) -> Sequence[MergedPull]:
        """Return the completed pull requests that brought a commit: one call, and one for each found."""
        queries = [{"type": kind, "items": [commit]} for kind in ("lastMergeCommit", "commit")]
        with self._client.calling(f"no commit {commit}") as call:
            results = call("POST", "/pullrequestquery", body={"queries": queries})["results"]
            found = {
                item["pullRequestId"]: item
                for result in results
                for items in (result or {}).values()
                for item in items
                if item["status"] == "completed"
            }
            return [self._merged(call, item) for item in list(found.values())[:PAGE]]

    def _merged(self, call: Any, item: Any) -> MergedPull:
        number = item["pullRequestId"]
        return checked(
            MergedPull(
                number=number,
                head=item["lastMergeSourceCommit"]["commitId"],
                base=branch_of(item["targetRefName"]),
                repository=UUID(item["repository"]["id"]).int,
                merge_commit=(item.get("lastMergeCommit") or {}).get("commitId") or "",
                author=UUID(item["createdBy"]["id"]).int,
                at=moment(item["closedDate"]).replace(microsecond=0),
                labels=labels_of(call("GET", f"/pullRequests/{number}/labels")["value"]),
            )
        )

    def reviews(self, number: int) -> Sequence[Review] | None:
        """Return the votes on a pull request, oldest first: three calls; None for too many."""
        pull = f"/pullRequests/{number}"
        with self._client.calling(f"no pull request {number}") as call:
            # The votes that count are read last: one that is reset meanwhile counts no more.
            threads, iterations = (
                call("GET", f"{pull}/{what}")["value"] for what in ("threads", "iterations")
            )
            reviewers = call("GET", f"{pull}/reviewers")["value"]
            url = f"{self._client.address.url}/pullrequest/{number}"
            found = reviews_of(threads, iterations, reviewers, url)
        return found if len(found) <= MOST_REVIEWS else None

    def removed_files(self, number: int) -> frozenset[str] | None:
        """Return the paths that a pull request removes or renames: two calls; None for too many files."""
        pull = f"/pullRequests/{number}/iterations"
        with self._client.calling(f"no pull request {number}") as call:
            newest = max(int(item["id"]) for item in call("GET", pull)["value"])
            query = {"$top": MOST_FILES, "$compareTo": 0}
            found = call("GET", f"{pull}/{newest}/changes", query=query)
            if found.get("nextSkip"):
                return None
            return frozenset(path for entry in found["changeEntries"] for path in _gone(entry))

    def pull_authors(self, number: int) -> PullAuthors:
        """Return the accounts of those who wrote, committed or pushed the commits of a pull request.

        Git has their addresses alone: an identity of the organization with that mail address is one of them,
        which takes a call for each address. An address of nobody makes the result incomplete.
        """
        pull = f"/pullRequests/{number}"
        with self._client.calling(f"no pull request {number}") as call:
            iterations = call("GET", f"{pull}/iterations")["value"]
            pushers = frozenset(UUID(item["author"]["id"]).int for item in iterations)
            commits, whole = _commits(call, f"{pull}/commits")
            addresses = {address for commit in commits for address in _addresses(commit)}
            complete = whole and all(addresses) and not any(map(_is_cut, commits))
        known = [self._account(address) for address in sorted(addresses)[:MOST_AUTHORS] if address]
        complete = complete and len(addresses) <= MOST_AUTHORS
        accounts = pushers | frozenset(filter(None, known))
        return PullAuthors(accounts, complete=complete and bool(commits) and None not in known)

    def _account(self, address: str) -> int | None:
        """Return the identity with a mail address; None for none, and for several."""
        with self._client.calling("no identities") as call:
            query = {"searchFilter": "MailAddress", "filterValue": address}
            found = call("GET", f"{self._client.address.identities}/_apis/identities", query=query)["value"]
            people = {UUID(person["id"]).int for person in found if not person.get("isContainer")}
        return people.pop() if len(people) == 1 else None

    def team_members(self, team: str) -> frozenset[int] | None:
        """Return the members of the team "project/team"; None for too many.

        Groups in a team are left out, so their members are none of it: whose approval is to count is a member
        of the team itself.
        """
        project, _, name = team.partition("/")
        organization = self._client.address.organization
        url = f"{organization}/_apis/projects/{quote(project)}/teams/{quote(name)}/members"
        try:
            with self._client.calling(f"no team {team}") as call:
                found = call("GET", url, query={"$top": MOST_MEMBERS + 1})["value"]
                people = [item["identity"] for item in found]
                members = [UUID(person["id"]).int for person in people if not person.get("isContainer")]
        except (Dependency, Unauthorized) as error:
            raise _naming_the_right(error, project) from error
        return frozenset(members) if len(found) <= MOST_MEMBERS else None


def _naming_the_right(error: ReconcileError, project: str) -> ReconcileError:
    text = f"{error}; add the identity of the app to the group Readers of the project {project}"
    return type(error)(text, code=error.code, request_id=error.request_id)


def _commits(call: Any, path: str) -> tuple[list[Any], bool]:
    """Return the commits of a pull request, and whether they are all."""
    commits: list[Any] = []
    query: dict[str, Any] = {"$top": PAGE}
    for _ in range(PAGES):
        found = call("GET", path, query=query)
        commits += found["value"]
        token = found.get("continuation")
        if not token:
            return commits, True
        query["continuationToken"] = token
    return commits, False


def _addresses(commit: Any) -> frozenset[str]:
    people = (commit["author"]["email"], commit["committer"]["email"])
    return frozenset(address.lower() for address in people) | co_authors(commit["comment"])


def _is_cut(commit: Any) -> bool:
    return bool(commit.get("commentTruncated"))


def _gone(entry: Any) -> list[str]:
    """Return the path that a change removes, none for another change; a list of kinds is in one text."""
    kinds = {kind.strip() for kind in entry["changeType"].split(",")}
    if "rename" in kinds:
        path = entry.get("originalPath") or entry["sourceServerItem"]
    elif kinds & {"delete", "sourceRename"}:
        path = entry.get("originalPath") or entry["item"]["path"]
    else:
        return []
    return [path.removeprefix("/")]
