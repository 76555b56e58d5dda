"""Issues in GitHub's REST API (docs.github.com/rest/issues/issues): list, create, open and close.

GitHub lists pull requests as issues, too, with the key ``pull_request``.
"""

from __future__ import annotations

from datetime import datetime

from werkzeug.wrappers import Request, Response

from localcloud.common.clock import in_seconds
from localcloud.common.http_server import json_response
from localcloud.git.world.issues import IssueRecord
from localcloud.git.world.people import PEOPLE
from localcloud.github.wire.github_auth import GitHubError
from localcloud.github.wire.github_json import (
    OPERATOR,
    JsonObject,
    Place,
    paged,
    person_json,
    read_object,
    refusing,
    repository_json,
)
from localcloud.github.wire.rest_pulls import comment as comment_pull
from localcloud.github.wire.rest_pulls import comments as comments_of_pull
from localcloud.github.wire.rest_pulls import pull_json

STATES = ("open", "closed")
REASONS = ("completed", "not_planned", "reopened", "duplicate", None)


def listed(place: Place, request: Request) -> Response:
    """List the issues and pull requests in a state, newest first, in pages."""
    state, pulls = request.args.get("state", "open"), place.repository.pulls
    found: list[tuple[datetime, int, JsonObject]] = [
        (issue.created_at, issue.number, issue_json(place, issue))
        for issue in pulls.issues.listed(state=state)
    ]
    for pull in pulls.listed(state=state):
        body = pull_json(place, pull)
        found.append((pull.created_at, pull.number, {**body, "pull_request": {"url": body["url"]}}))
    newest = [body for *_, body in sorted(found, key=lambda entry: entry[:2], reverse=True)]
    return paged(request, newest, lambda body: body)


def create(place: Place, request: Request) -> Response:
    """Create an issue."""
    return json_response(201, opened(place, read_object(request)))


def opened(place: Place, given: JsonObject) -> JsonObject:
    """Open the issue of {"title", "body"} as the caller, or as a person "login", and call the webhook."""
    title, body = str(given.get("title") or ""), str(given.get("body") or "")
    author = str(given.get("login") or place.caller["login"])
    with refusing("Issue"):
        record = place.repository.pulls.issues.create(title, body, author)
    issue = issue_json(place, record)
    event = {
        "action": "opened",
        "issue": issue,
        "repository": repository_json(place),
        "sender": issue["user"],
    }
    place.send("issues", event)
    return issue


def comments(place: Place, request: Request, number: int) -> Response:
    """List the comments of an issue, or of a pull request, oldest first, in pages."""
    record = place.repository.pulls.issues.get(number)
    if record is None:
        return comments_of_pull(place, request, number)
    pairs = [*zip(record.commenters, record.comments, strict=True)]
    found = [{"id": at, "user": {"login": by}, "body": body} for at, (by, body) in enumerate(pairs, 1)]
    return paged(request, found, lambda comment: comment)


def change(place: Place, request: Request, number: int) -> JsonObject:
    """Open or close an issue."""
    given = read_object(request)
    state, reason = given.get("state", "open"), given.get("state_reason")
    if state not in STATES or reason not in REASONS:
        raise GitHubError(422, "Validation Failed")
    with refusing("Issue"):
        record = place.repository.pulls.issues.change(number, state=state, state_reason=reason)
    return issue_json(place, record)


def comment(place: Place, request: Request, number: int) -> Response:
    """Write a comment on an issue, or on a pull request."""
    if place.repository.pulls.get(number) is not None:
        return comment_pull(place, request, number)
    text = str(read_object(request).get("body") or "")
    with refusing("Issue"):
        place.repository.pulls.issues.comment(number, text, place.caller["login"])
    return json_response(201, {"body": text, "user": place.caller})


def issue_json(place: Place, record: IssueRecord) -> JsonObject:
    """Write an issue; one without an author has none, as the schema allows.

    Source: "issue" of github.com/github/rest-api-description, whose ``user`` is a nullable-simple-user.
    """
    kind = "Bot" if record.author.endswith("[bot]") else "User"
    account = person_json(PEOPLE[record.author]) if record.author in PEOPLE else OPERATOR
    return {
        "id": record.number,
        "node_id": f"I_{record.number}",
        "number": record.number,
        "url": f"{place.api}/issues/{record.number}",
        "html_url": f"{place.html}/issues/{record.number}",
        "state": record.state,
        "state_reason": record.state_reason,
        "title": record.title,
        "body": record.body or None,
        "user": {**account, "login": record.author, "type": kind} if record.author else None,
        "comments": len(record.comments),
        "created_at": in_seconds(record.created_at),
        "updated_at": in_seconds(record.created_at),
    }
