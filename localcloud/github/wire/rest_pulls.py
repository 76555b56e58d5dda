"""Pull requests and their comments in GitHub's REST API, and their webhook events."""

from __future__ import annotations

from typing import Any

from werkzeug.wrappers import Request, Response

from localcloud.common.clock import in_seconds
from localcloud.common.http_server import json_response
from localcloud.git.world.people import PEOPLE
from localcloud.git.world.pull_requests import CommentRecord, PullRecord, PushEffect
from localcloud.git.world.ref_changes import ZERO, RefChange
from localcloud.github.wire.github_auth import GitHubError
from localcloud.github.wire.github_json import (
    APP_BOT,
    OPERATOR,
    JsonObject,
    Place,
    invalid,
    paged,
    person_json,
    pull_of,
    read_object,
    refusing,
    repository_json,
)
from shared.cluster.failures.errors import Dependency

FORK_OWNER = "contributor"
"""The owner of the fork that a pull request reports as the repository of its branch."""
_CHANGEABLE = ("title", "body", "base", "state")


def listed(place: Place, request: Request) -> Response:
    """List pull requests, newest first, in pages."""
    head = request.args.get("head", "").rpartition(":")[2]
    records = place.repository.pulls.listed(
        state=request.args.get("state", "open"), base=request.args.get("base", ""), head=head
    )
    return paged(request, records, lambda record: pull_json(place, record))


def one(place: Place, _: Request, number: int) -> JsonObject:
    """Write one pull request, with the commit that a merge would create."""
    record = pull_of(place, number)
    mergeable, merge = place.repository.pulls.merge(record)
    commit = record.merge_commit or merge
    return {**pull_json(place, record), "mergeable": mergeable, "merge_commit_sha": commit}


def create(place: Place, request: Request) -> Response:
    """Open a pull request of a branch of this repository."""
    return json_response(201, opened(place, read_object(request)))


def opened(place: Place, wanted: JsonObject) -> JsonObject:
    """Open the pull request of {"head", "base", "title", "fork"}, and call the webhook."""
    head = str(wanted.get("head") or "").rpartition(":")[2]
    base = str(wanted.get("base") or place.repository.default_branch)
    title = str(wanted.get("title") or "")
    if not title:
        raise invalid("PullRequest", "title is missing")
    with refusing("PullRequest"):
        record = place.repository.pulls.open(
            title,
            head,
            base,
            fork=bool(wanted.get("fork")),
            author=place.caller["login"],
            body=str(wanted.get("body") or ""),
        )
    place.repository.point(f"refs/pull/{record.number}/head", record.sha)
    send_pull_event(place, "opened", record)
    return pull_json(place, record)


def change(place: Place, request: Request, number: int) -> JsonObject:
    """Change the title, the text, the base or the state of a pull request, and call the webhook."""
    pulls, wanted = place.repository.pulls, read_object(request)
    before = pull_of(place, number)
    with refusing("PullRequest"):
        after = pulls.change(number, **{k: v for k, v in wanted.items() if k in _CHANGEABLE})
    if before.state != after.state:
        send_pull_event(place, "closed" if after.state == "closed" else "reopened", after)
    changes: JsonObject = {}
    if before.title != after.title:
        changes["title"] = {"from": before.title}
    if before.body != after.body:
        changes["body"] = {"from": before.body}
    if before.base != after.base:
        changes["base"] = {"ref": {"from": before.base}, "sha": {"from": _base_sha(place, before)}}
    if changes:
        send_pull_event(place, "edited", after, changes=changes)
    return pull_json(place, after)


def add_labels(place: Place, request: Request, number: int) -> Response:
    """Add labels to a pull request (docs.github.com/rest/issues/labels)."""
    pulls, wanted = place.repository.pulls, read_object(request).get("labels")
    record = pull_of(place, number)
    if not isinstance(wanted, list) or not all(isinstance(name, str) and name for name in wanted):
        raise GitHubError(422, "Validation Failed")
    after = pulls.change(number, labels=tuple(dict.fromkeys((*record.labels, *wanted))))
    return json_response(200, pull_json(place, after)["labels"])


def pushed(place: Place, change: RefChange) -> None:
    """Call the webhook for each pull request that a push changes: new commits, a merge, or its end."""
    for effect, record in place.repository.pulls.pushed(change):
        if effect is PushEffect.RENEWED:
            place.repository.point(f"refs/pull/{record.number}/head", record.sha)
            send_pull_event(place, "synchronize", record, before=change.before, after=change.after)
        else:
            send_pull_event(place, "closed", record)


def comments(place: Place, request: Request, number: int) -> Response:
    """List the comments of a pull request, oldest first, in pages."""
    found = place.repository.pulls.comments(pull_of(place, number).number)
    return paged(request, found, lambda record: comment_json(place, record))


def comment(place: Place, request: Request, number: int) -> Response:
    """Write a comment."""
    body = str(read_object(request).get("body") or "")
    with refusing("IssueComment"):
        record = place.repository.pulls.write_comment(number, place.caller["login"], body)
    return json_response(201, comment_json(place, record))


def edit_comment(place: Place, request: Request, number: int) -> JsonObject:
    """Write over a comment; anyone who may write may edit every comment, as at GitHub."""
    body = str(read_object(request).get("body") or "")
    with refusing("IssueComment"):
        return comment_json(place, place.repository.pulls.edit_comment(number, body))


def pull_json(place: Place, record: PullRecord) -> JsonObject:
    """Write a pull request."""
    url, name = f"{place.api}/pulls/{record.number}", place.full_name.partition("/")[2]
    repository = repository_json(place)
    fork = {**repository, "full_name": f"{FORK_OWNER}/{name}", "fork": True, "id": repository["id"] + 1}
    source = fork if record.fork else {**repository, "fork": False}
    return {
        "url": url,
        "id": record.number,
        "node_id": f"PR_{place.repository.id}_{record.number}",
        "number": record.number,
        "html_url": f"{place.html}/pull/{record.number}",
        "issue_url": f"{place.api}/issues/{record.number}",
        "comments_url": f"{place.api}/issues/{record.number}/comments",
        "state": record.state,
        "locked": False,
        "title": record.title,
        "user": person_json(PEOPLE[record.author]) if record.author in PEOPLE else APP_BOT,
        "body": record.body or None,
        "draft": False,
        "auto_merge": {"enabled_by": APP_BOT, "merge_method": record.auto_merge}
        if record.auto_merge
        else None,
        "labels": [{"id": number, "name": name} for number, name in enumerate(record.labels, 1)],
        "merged": record.merged,
        "merged_at": in_seconds(record.merged_at) if record.merged_at else None,
        "created_at": in_seconds(record.created_at),
        "updated_at": in_seconds(record.created_at),
        "merge_commit_sha": record.merge_commit or None,
        "head": _side(record.head, record.sha, source),
        "base": _side(record.base, _base_sha(place, record), {**repository, "fork": False}),
    }


def comment_json(place: Place, record: CommentRecord) -> JsonObject:
    """Write a comment."""
    kind = "Bot" if record.author.endswith("[bot]") else "User"
    return {
        "id": record.id,
        "node_id": f"IC_{record.id}",
        "url": f"{place.api}/issues/comments/{record.id}",
        "html_url": f"{place.html}/pull/{record.pull}#issuecomment-{record.id}",
        "issue_url": f"{place.api}/issues/{record.pull}",
        "user": {**OPERATOR, "login": record.author, "type": kind},
        "created_at": in_seconds(record.created_at),
        "updated_at": in_seconds(record.updated_at),
        "body": record.body,
    }


def send_pull_event(place: Place, action: str, record: PullRecord, **more: Any) -> None:
    """Call the webhook with the event of a pull request."""
    event = {
        "action": action,
        "number": record.number,
        "pull_request": pull_json(place, record),
        **more,
        "repository": repository_json(place),
        "sender": OPERATOR,
    }
    place.send("pull_request", event)


def _side(branch: str, sha: str, repository: JsonObject) -> JsonObject:
    owner = repository["full_name"].partition("/")[0]
    return {"label": f"{owner}:{branch}", "ref": branch, "sha": sha, "repo": repository}


def _base_sha(place: Place, record: PullRecord) -> str:
    try:
        return place.repository.head(record.base)
    except Dependency:
        return ZERO
