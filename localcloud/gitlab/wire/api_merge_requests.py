"""Merge requests in GitLab's REST API, their notes, approvals, versions and files, and their webhooks.

Sources: docs.gitlab.com/api/merge_requests, /notes and /merge_request_approvals; for the commits,
/api/graphql/reference, "MergeRequest"; for conflicts and merges that are not tried yet,
app/services/merge_requests/mergeability_check_service.rb of gitlab-org/gitlab. People who no longer approve
are listed no more.
"""

from __future__ import annotations

from typing import Any

from werkzeug.wrappers import Request, Response

from localcloud.common.http_server import json_response
from localcloud.git.world import repository_history as history
from localcloud.git.world.people import OPERATOR, PEOPLE, account_of
from localcloud.git.world.pull_requests import PullRecord, PushEffect
from localcloud.git.world.ref_changes import RefChange, Refs
from localcloud.gitlab.wire.gitlab_events import merge_request_event, push_event
from localcloud.gitlab.wire.gitlab_json import (
    GitLabError,
    JsonObject,
    ProjectPlace,
    at_json,
    head_of,
    merge_request_json,
    note_json,
    paged,
    person_json,
    read_object,
)
from shared.cluster.failures.errors import Conflict

_STATES = {"opened": "open", "closed": "closed", "merged": "closed", "all": "all"}
PUSH, MERGE_REQUEST = "Push Hook", "Merge Request Hook"


def _found(place: ProjectPlace, number: int) -> PullRecord:
    record = place.project.pulls.get(number)
    if record is None:
        raise GitLabError(404, {"message": "404 Not found"})
    return record


def listed(place: ProjectPlace, request: Request) -> Response:
    """List merge requests, newest first."""
    args = request.args
    found = place.project.pulls.listed(
        state=_STATES[args.get("state", "all")],
        base=args.get("target_branch", ""),
        head=args.get("source_branch", ""),
    )
    shown = [merge_request_json(place, record) for record in found]
    state = args.get("state", "all")
    return paged(request, [body for body in shown if state in ("all", body["state"])], lambda body: body)


def single(place: ProjectPlace, _: Request, number: int) -> JsonObject:
    """Write one merge request, with how many files it changes."""
    record = _found(place, number)
    count = len(place.project.pulls.files(record))
    return {**merge_request_json(place, record), "changes_count": str(count) if count else None}


def create(place: ProjectPlace, request: Request) -> Response:
    """Open a merge request of a branch."""
    body = read_object(request)
    head, base = str(body.get("source_branch") or ""), str(body.get("target_branch") or "")
    open_one = place.project.pulls.listed(head=head, base=base)
    if open_one:
        text = f"Another open merge request already exists for this source branch: !{open_one[0].number}"
        raise GitLabError(409, {"message": [text]})
    for role, branch in (("source", head), ("target", base)):
        if not head_of(place.project, branch):
            raise GitLabError(400, {"message": {f"{role}_branch": [f'"{branch}" does not exist']}})
    title, text = str(body.get("title") or ""), str(body.get("description") or "")
    record = place.project.pulls.open(title, head, base, author=OPERATOR.login, body=text)
    point_head(place, record)
    place.send(MERGE_REQUEST, merge_request_event(place, "open", record))
    return json_response(201, merge_request_json(place, record))


def point_head(place: ProjectPlace, record: PullRecord) -> None:
    """Let the reference of a merge request point to its newest commit."""
    place.project.point(f"refs/merge-requests/{record.number}/head", record.sha)


def change(place: ProjectPlace, request: Request, number: int) -> JsonObject:
    """Change what a merge request says, or its state."""
    body, before = read_object(request), _found(place, number)
    changes: dict[str, Any] = {ours: body[name] for name, ours in _FIELDS.items() if name in body}
    event = body.get("state_event")
    if event in ("close", "reopen") and before.merged:
        raise GitLabError(405, {"message": "405 Method Not Allowed"})
    if event in ("close", "reopen"):
        changes["state"] = "closed" if event == "close" else "open"
    after = place.project.pulls.change(number, **changes)
    if before.state != after.state:
        place.send(MERGE_REQUEST, merge_request_event(place, str(event), after))
    return merge_request_json(place, after)


_FIELDS = {"title": "title", "description": "body", "target_branch": "base"}


def merge(place: ProjectPlace, request: Request, number: int) -> JsonObject:
    """Merge a merge request, and call the webhook: a push, and that it was merged."""
    body, record = read_object(request), _found(place, number)
    if body.get("sha", record.sha) != record.sha:
        raise GitLabError(409, {"message": "SHA does not match HEAD of source branch"})
    if place.project.pulls.waits(record):
        has_pipeline = place.project.statuses.latest(record.sha)
        if not body.get("auto_merge") or not has_pipeline:
            raise GitLabError(405, {"message": "405 Method Not Allowed"})
        return merge_request_json(place, place.project.pulls.change(number, auto_merge="merge"))
    before, squash = history.refs(place.project.path), str(body.get("squash", "false")).lower() == "true"
    message = f"Merge branch '{record.head}' into '{record.base}'\n\n{record.title}"
    text = record.title if squash else message
    try:
        merged = place.project.pulls.merged_into_base(number, squash=squash, message=text)
    except Conflict as error:
        raise GitLabError(422, {"message": "Branch cannot be merged"}) from error
    _send_merge(place, merged, before)
    return merge_request_json(place, merged)


def merge_what_waits(place: ProjectPlace) -> None:
    """Merge what was to be merged once its pipeline has succeeded."""
    before = history.refs(place.project.path)
    for merged in place.project.pulls.merged_by_itself():
        _send_merge(place, merged, before)


def _send_merge(place: ProjectPlace, merged: PullRecord, before: Refs) -> None:
    moved = RefChange(f"refs/heads/{merged.base}", merged.onto, merged.merge_commit)
    place.send(PUSH, push_event(place, moved, before))
    place.send(MERGE_REQUEST, merge_request_event(place, "merge", merged))


def merge_ref(place: ProjectPlace, _: Request, number: int) -> JsonObject:
    """Make the commit that a merge would make; 400 with conflicts, or while somebody else tries."""
    tried, made = place.project.pulls.merge(_found(place, number))
    if tried is None:
        raise GitLabError(400, {"message": "Failed to obtain a lock"})
    if made is None:
        raise GitLabError(400, {"message": "Merge request is not mergeable"})
    place.project.point(f"refs/merge-requests/{number}/merge", made)
    return {"commit_id": made}


def notes(place: ProjectPlace, request: Request, number: int) -> Response:
    """List the notes of a merge request, and those that GitLab writes itself."""
    _found(place, number)
    shown = [note_json(record) for record in place.project.pulls.comments(number)]
    shown += [
        {
            **{"id": 50_000 + review.id, "body": "approved this merge request", "system": True},
            **{"author": person_json(review.author.login), "created_at": at_json(review.at)},
        }
        for review in place.project.pulls.reviews.of(number)
        if review.state == "APPROVED"
    ]
    newest = request.args.get("sort", "desc") == "desc"
    return paged(
        request, sorted(shown, key=lambda n: (n["created_at"], n["id"]), reverse=newest), lambda note: note
    )


def create_note(place: ProjectPlace, request: Request, number: int) -> Response:
    """Write a note."""
    _found(place, number)
    body = str(read_object(request).get("body") or "")
    return json_response(201, note_json(place.project.pulls.write_comment(number, OPERATOR.login, body)))


def change_note(place: ProjectPlace, request: Request, number: int, note: int) -> JsonObject:
    """Write over a note."""
    _found(place, number)
    return note_json(place.project.pulls.edit_comment(note, str(read_object(request).get("body") or "")))


def approvals(place: ProjectPlace, _: Request, number: int) -> JsonObject:
    """Write who approves a merge request."""
    record = _found(place, number)
    approved = [
        {"user": person_json(review.author.login), "approved_at": at_json(review.at)}
        for review in place.project.pulls.said(number, "APPROVED")
    ]
    body = {"iid": number, "state": merge_request_json(place, record)["state"], "approved": bool(approved)}
    return {**body, "approved_by": approved}


def reviewers(place: ProjectPlace, request: Request, number: int) -> Response:
    """List the reviewers of a merge request with what each one says."""
    record = _found(place, number)
    found = place.project.pulls.said(number, "CHANGES_REQUESTED")
    return paged(
        request,
        found,
        lambda review: {
            "user": person_json(review.author.login),
            "state": "requested_changes",
            "created_at": at_json(record.created_at),
        },
    )


def approve(place: ProjectPlace, login: str, number: int, event: str) -> JsonObject:
    """Let somebody approve a merge request, or request changes; KeyError for an unknown person."""
    record = _found(place, number)
    place.project.pulls.reviews.submit(
        record, PEOPLE[login], event, "" if event == "APPROVE" else "Please change"
    )
    if event == "APPROVE":
        place.send(MERGE_REQUEST, merge_request_event(place, "approved", record, login))
    return approvals(place, Request({}), number)


def versions(place: ProjectPlace, request: Request, number: int) -> Response:
    """List the versions of a merge request, newest first."""
    _found(place, number)
    found = place.project.pulls.versions(number)
    return paged(
        request, found, lambda version: {"created_at": at_json(version[0]), "head_commit_sha": version[1]}
    )


def files(place: ProjectPlace, request: Request, number: int) -> Response:
    """List the files that a merge request changes."""
    found = place.project.pulls.files(_found(place, number))
    return paged(
        request,
        found,
        lambda file: {
            "old_path": file.previous or file.path,
            "new_path": file.path,
            "new_file": file.status == "added",
            "renamed_file": file.status == "renamed",
            "deleted_file": file.status == "removed",
            "diff": "",
        },
    )


def graphql(place: ProjectPlace, variables: JsonObject) -> JsonObject:
    """Answer the query of the commits of a merge request; an account has any of its addresses."""
    record = place.project.pulls.get(int(str(variables.get("iid") or 0)))
    if record is None:
        return {"mergeRequest": None}
    commits = place.project.pulls.commits_of(record)
    start = int(variables.get("after") or 0)
    nodes = []
    for found in commits[start : start + 100]:
        author = account_of(found.author)
        nodes.append(
            {
                "message": found.message,
                "authorEmail": found.author,
                "committerEmail": found.committer,
                "author": {"id": f"gid://gitlab/User/{author.id}"} if author else None,
            }
        )
    following = start + 100 < len(commits)
    page = {"hasNextPage": following, "endCursor": str(start + 100) if following else None}
    committed = {person.id for found in commits if (person := account_of(found.committer))}
    committers = {"nodes": [{"id": f"gid://gitlab/User/{number}"} for number in sorted(committed)]}
    return {"mergeRequest": {"commits": {"nodes": nodes, "pageInfo": page}, "committers": committers}}


_ACTIONS = {PushEffect.CLOSED: "close", PushEffect.RENEWED: "update", PushEffect.MERGED: "merge"}


def pushed(place: ProjectPlace, change: RefChange) -> None:
    """Call the webhook for each merge request that a push changes: new commits, a merge, or its end."""
    for effect, record in place.project.pulls.pushed(change):
        if effect is PushEffect.RENEWED:
            point_head(place, record)
        event = merge_request_event(place, _ACTIONS[effect], record)
        if effect is PushEffect.RENEWED:
            event["object_attributes"]["oldrev"] = change.before
        place.send(MERGE_REQUEST, event)
