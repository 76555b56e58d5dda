"""Issues of the fleet repository: docs.github.com/rest/issues."""

from __future__ import annotations

from shared.adapters.github.client import PAGE, GitHubClient, json_call


class GitHubIssues:
    """The ``Issues`` port on GitHub."""

    def __init__(self, client: GitHubClient) -> None:
        self._client = client

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
