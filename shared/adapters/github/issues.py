"""Issues of the fleet repository on GitHub: docs.github.com/rest/issues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.adapters.answers import checked, moment
from shared.adapters.github.client import PAGE, GitHubClient, json_call, require_answer
from shared.cluster.failures.errors import InvalidManifest
from shared.ports.git_host import Issue

_NEWEST = """
query ($owner: String!, $name: String!, $most: Int!) {
  repository(owner: $owner, name: $name) {
    issues(first: $most, states: [OPEN], orderBy: {field: CREATED_AT, direction: DESC}) {
      nodes { number body createdAt lastEditedAt author { __typename login ... on User { databaseId } } }
    }
  }
}
"""
"""docs.github.com/graphql/reference/objects, Issue: REST has no field of an edit of the text."""


class GitHubIssues:
    """The part of the port that is about issues."""

    _client: GitHubClient

    def newest_issues(self) -> Sequence[Issue]:
        """Return what people have opened, of the newest hundred open issues; one call of GraphQL."""
        owner, name = self._client.name.split("/")
        try:
            with self._client.calling("no issues") as api:
                query = {"owner": owner, "name": name, "most": PAGE}
                _, answer = api.requester.graphql_query(_NEWEST, query)
                found = answer["data"]["repository"]["issues"]["nodes"]
                people = [item for item in found if (item["author"] or {}).get("__typename") == "User"]
                return [_issue(item) for item in people]
        except InvalidManifest as error:
            require_answer(str(error), "give its GitHub App, or its token, the permission Issues: read")
            raise

    def find_issue(self, marker: str) -> int | None:
        """Return our newest open issue with the marker; older ones than the newest hundred are not found."""
        login = self._client.login
        query = {"state": "open", "sort": "created", "direction": "desc", "per_page": PAGE}
        with self._client.calling("no issues") as api:
            for item in json_call(api, "GET", f"{api.url}/issues", query=query):
                author = (item["user"] or {}).get("login")  # None for an account that GitHub no longer has
                if author == login and (item.get("body") or "").startswith(marker):
                    return int(item["number"])
        return None

    def open_issue(self, title: str, body: str) -> int:
        """Create an issue, and return its number."""
        with self._client.calling("no issues", absent=(404, 410)) as api:
            return int(
                json_call(api, "POST", f"{api.url}/issues", body={"title": title, "body": body})["number"]
            )

    def comment_issue(self, number: int, body: str) -> None:
        """Write a comment; GitHub answers 410 for an issue that was deleted."""
        with self._client.calling(f"no issue {number}", absent=(404, 410)) as api:
            json_call(api, "POST", f"{api.url}/issues/{number}/comments", body={"body": body})

    def close_issue(self, number: int) -> None:
        """Close an issue as completed."""
        with self._client.calling(f"no issue {number}", absent=(404, 410)) as api:
            body = {"state": "closed", "state_reason": "completed"}
            json_call(api, "PATCH", f"{api.url}/issues/{number}", body=body)


def _issue(item: Mapping[str, Any]) -> Issue:
    author, edited = item["author"], item["lastEditedAt"] is not None
    at = moment(item["createdAt"])
    return checked(Issue(item["number"], author["login"], author["databaseId"], item["body"], at, edited))
