"""Pull requests in the REST API of Azure DevOps: threads, iterations, votes, and what a push does to them.

An iteration is known here by the commits that somebody voted on, and by the newest one. The refusals have the
codes of the service: TF401179 an active pull request exists, TF401180 there is none, TF401181 it has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from werkzeug.wrappers import Request, Response

from localcloud.azure_devops.devops_json import (
    VOTES,
    DevOpsError,
    DevOpsPlace,
    JsonObject,
    identity_json,
    labels_json,
    pull_json,
    reviewers_json,
    time_text,
)
from localcloud.azure_devops.devops_repository import (
    commit_json,
    invalid,
    status_of,
    values,
)
from localcloud.common.http_server import json_response
from localcloud.git.world.people import OPERATOR, PEOPLE
from localcloud.git.world.pull_requests import CommentRecord, PullRecord
from localcloud.git.world.ref_changes import ZERO, RefChange
from localcloud.git.world.repository_history import parse_commit
from localcloud.git.world.reviews import ReviewRecord
from shared.cluster.failures.errors import Conflict, Dependency, InvalidManifest

Send = Callable[[DevOpsPlace, str, JsonObject], None]
"""Delivers an event, with its type and its resource."""
MAX_TITLE, MAX_DESCRIPTION, MAX_COMMENT = 400, 4000, 150_000
"""The second and the third are in refusals of the service (scala-steward-org/scala-steward#3543,
runatlantis/atlantis#1585); no page states the first, which is chosen here."""
_VOTE_THREADS = 1_000_000
"""Added to the number of a vote, for that of its thread."""
_STATES = {"active": "open", "abandoned": "closed", "completed": "closed", "all": "all"}


def _record(place: DevOpsPlace, number: int) -> PullRecord:
    found = place.repository.pulls.get(number)
    if found is None:
        raise DevOpsError(
            404,
            f"TF401180: The requested pull request {number} was not found.",
            "GitPullRequestNotFoundException",
        )
    return found


def listed(place: DevOpsPlace, request: Request) -> Response:
    """List pull requests, newest first; the text of each is cut after 400 characters."""
    given = {name: request.args.get(f"searchCriteria.{name}", "") for name in ("status", "sourceRefName")}
    base = request.args.get("searchCriteria.targetRefName", "").removeprefix("refs/heads/")
    found = place.repository.pulls.listed(
        state=_STATES[given["status"] or "active"],
        base=base,
        head=given["sourceRefName"].removeprefix("refs/heads/"),
    )
    top = int(request.args.get("$top", 101))
    shown = (pull_json(place, record) for record in found[:top])
    return values([pull | {"description": pull["description"][:400]} for pull in shown])


def one(place: DevOpsPlace, _: Request, number: int) -> JsonObject:
    """Write one pull request, with its test merge."""
    return pull_json(place, _record(place, number), with_merge=True)


def create(place: DevOpsPlace, request: Request, send: Send) -> Response:
    """Open a pull request."""
    wanted = request.get_json()
    refs = [str(wanted.get(name) or "") for name in ("sourceRefName", "targetRefName")]
    if not all(ref.startswith("refs/heads/") for ref in refs):
        raise invalid("A source and a target branch are needed.")
    head, base = (ref.removeprefix("refs/heads/") for ref in refs)
    given = {"head": head, "base": base, "title": wanted.get("title"), "body": wanted.get("description")}
    return json_response(201, opened(place, given, send))


def opened(place: DevOpsPlace, wanted: JsonObject, send: Send) -> JsonObject:
    """Open the pull request of {"head", "base", "title", "body", "fork"}, and deliver the event."""
    head, base, title, body = (str(wanted.get(name) or "") for name in ("head", "base", "title", "body"))
    _check(title, body)
    if place.repository.pulls.listed(head=head, base=base):
        raise DevOpsError(
            409,
            "TF401179: An active pull request for the source and target branch already exists.",
            "GitPullRequestExistsException",
        )
    try:
        record = place.repository.pulls.open(title, head, base, body=body, fork=bool(wanted.get("fork")))
    except InvalidManifest as error:
        raise invalid(str(error)) from error
    send(place, "git.pullrequest.created", pull_json(place, record))
    return pull_json(place, record)


def _check(title: str, body: str) -> None:
    if not 1 <= len(title) <= MAX_TITLE:
        raise invalid(f"A title for a pull request must not be longer than {MAX_TITLE} characters.")
    if len(body) > MAX_DESCRIPTION:
        raise invalid(
            f"A description for a pull request must not be longer than {MAX_DESCRIPTION} characters."
        )


def change(place: DevOpsPlace, request: Request, number: int, send: Send) -> JsonObject:
    """Change the text of a pull request, or complete or abandon it."""
    wanted, record = request.get_json(), _record(place, number)
    if record.state != "open":
        raise DevOpsError(
            409,
            "TF401181: The pull request cannot be edited due to its state.",
            "GitPullRequestNotEditableException",
        )
    status = wanted.get("status")
    if status == "completed":
        seen = str((wanted.get("lastMergeSourceCommit") or {}).get("commitId"))
        strategy = (wanted.get("completionOptions") or {}).get("mergeStrategy")
        return completed(place, number, seen, send, squash=strategy == "squash")
    if "autoCompleteSetBy" in wanted:
        if wanted["autoCompleteSetBy"].get("id") != identity_json(OPERATOR.login)["id"]:
            raise invalid("Auto-complete can be set by the caller alone.")
        place.repository.pulls.change(number, auto_merge=OPERATOR.login)
        complete_what_waits(place, send)
        return pull_json(place, _record(place, number))
    _check(wanted.get("title", record.title), wanted.get("description", record.body))
    changes = {"title": wanted.get("title"), "body": wanted.get("description")}
    given = {name: text for name, text in changes.items() if text is not None}
    if status == "abandoned":
        given["state"] = "closed"
    after = place.repository.pulls.change(number, **given)
    send(place, "git.pullrequest.updated", pull_json(place, after))
    return pull_json(place, after)


def completed(place: DevOpsPlace, number: int, seen: str, send: Send, *, squash: bool) -> JsonObject:
    """Merge a pull request, if its newest commit is what the caller has seen."""
    record = _record(place, number)
    if seen != record.sha:
        raise DevOpsError(409, "TF401192: The pull request has changed.", "GitPullRequestStaleException")
    before = place.repository.head(record.base)
    try:
        merged = place.repository.pulls.merged_into_base(record.number, squash=squash)
    except Conflict as error:
        raise DevOpsError(409, f"{error}", "GitPullRequestCannotBeMergedException") from error
    pushed(place, RefChange(f"refs/heads/{record.base}", before, merged.merge_commit), send)
    shown = pull_json(place, merged)
    for kind in ("git.pullrequest.updated", "git.pullrequest.merged"):
        send(place, kind, shown)
    return shown


def pushed(place: DevOpsPlace, changed: RefChange, send: Send) -> None:
    """Deliver the event of a push, and what it does to pull requests: new commits, or their end."""
    if not changed.ref.startswith("refs/heads/"):
        return
    new = () if changed.after == ZERO else place.repository.changes(changed.after, "", 1)
    update = {"name": changed.ref, "oldObjectId": changed.before, "newObjectId": changed.after}
    push = {
        "commits": [commit_json(found) for found in new],
        "refUpdates": [update],
        "pushedBy": identity_json(OPERATOR.login),
    }
    send(place, "git.push", push)
    for _, record in place.repository.pulls.pushed(changed):
        send(place, "git.pullrequest.updated", pull_json(place, record))


# Threads: comments, and the votes as the system writes them.


def threads(place: DevOpsPlace, _: Request, number: int) -> Response:
    """List all threads of a pull request."""
    _record(place, number)
    pulls = place.repository.pulls
    votes = [review for review in pulls.reviews.of(number) if review.given in VOTES]
    return values([*map(_thread_json, pulls.comments(number)), *map(_vote_json, votes)])


def create_thread(place: DevOpsPlace, request: Request, number: int) -> Response:
    """Write a thread with a comment."""
    _record(place, number)
    content = str(request.get_json()["comments"][0].get("content") or "")
    _check_comment(content)
    return json_response(
        200, _thread_json(place.repository.pulls.write_comment(number, OPERATOR.login, content))
    )


def edit_comment(place: DevOpsPlace, request: Request, number: int, thread: int) -> JsonObject:
    """Replace the first comment of a thread."""
    _record(place, number)
    content = str(request.get_json().get("content") or "")
    _check_comment(content)
    try:
        return _comment_json(place.repository.pulls.edit_comment(thread, content))
    except Dependency as error:
        raise DevOpsError(404, f"{error}", "DiscussionThreadNotFoundException") from error


def _check_comment(content: str) -> None:
    if not content or len(content) > MAX_COMMENT:
        raise invalid(f"A discussion comment cannot be longer than {MAX_COMMENT} characters.")


def _thread_json(record: CommentRecord) -> JsonObject:
    return {
        "id": record.id,
        "publishedDate": time_text(record.created_at),
        "lastUpdatedDate": time_text(record.updated_at),
        "comments": [_comment_json(record)],
        "status": "closed",
        "properties": {},
        "identities": None,
        "isDeleted": False,
    }


def _comment_json(record: CommentRecord) -> JsonObject:
    return {
        "id": 1,
        "parentCommentId": 0,
        "author": identity_json(record.author),
        "content": record.body,
        "commentType": "text",
    }


def _vote_json(review: ReviewRecord) -> JsonObject:
    voter, vote = identity_json(review.author.login), VOTES[review.given]
    said = {
        "CodeReviewThreadType": "VoteUpdate",
        "CodeReviewVoteResult": str(vote),
        "CodeReviewVotedByIdentity": "1",
    }
    comment = {
        "id": 1,
        "parentCommentId": 0,
        "author": voter,
        "content": f"{voter['displayName']} voted {vote}",
        "commentType": "system",
    }
    return {
        "id": _VOTE_THREADS + review.id,
        "publishedDate": time_text(review.at),
        "comments": [comment],
        "properties": {name: {"$type": "System.String", "$value": text} for name, text in said.items()},
        "identities": {"1": voter},
        "isDeleted": False,
    }


def reviewers(place: DevOpsPlace, _: Request, number: int) -> Response:
    """List the reviewers with their votes."""
    _record(place, number)
    return values(reviewers_json(place, number))


def vote(place: DevOpsPlace, request: Request, number: int, reviewer: str) -> JsonObject:
    """Vote as somebody, or take the vote back."""
    person = next((p for p in PEOPLE.values() if identity_json(p.login)["id"] == reviewer), None)
    if person is None:
        raise invalid("There is no such reviewer.")
    voted(place, number, person.login, int(request.get_json()["vote"]))
    return next(r for r in reviewers_json(place, number) if r["id"] == reviewer)


def voted(place: DevOpsPlace, number: int, login: str, given: int) -> None:
    """Give a reviewer another vote, for the newest commit; 0 takes the last one back."""
    record, reviews = _record(place, number), place.repository.pulls.reviews
    if given:
        event = "APPROVE" if given > 0 else "REQUEST_CHANGES"
        reviews.submit(record, PEOPLE[login], event, f"voted {given}")
        return
    for review in reviews.of(number):
        if review.author.login == login and review.state in VOTES:
            reviews.dismiss(review.id)


# Iterations, commits, labels, statuses, and the search for a commit.


def iterations(place: DevOpsPlace, _: Request, number: int) -> Response:
    """List the iterations of a pull request, oldest first."""
    record = _record(place, number)
    author = identity_json(record.author)
    return values(
        [
            {
                "id": id_,
                "createdDate": time_text(at),
                "author": author,
                "sourceRefCommit": {"commitId": sha},
                "reason": "push",
            }
            for id_, (sha, at) in enumerate(_iterations(place, record), 1)
        ]
    )


def _iterations(place: DevOpsPlace, record: PullRecord) -> Sequence[tuple[str, datetime]]:
    found: list[tuple[str, datetime]] = []
    last = record.created_at
    for review in place.repository.pulls.reviews.of(record.number):
        if not found or found[-1][0] != review.commit:
            found.append((review.commit, review.at if found else record.created_at))
        last = review.at
    if not found or found[-1][0] != record.sha:
        stored = place.repository.read(record.sha)
        when = parse_commit(stored).committer.when if stored else last
        found.append((record.sha, max(when, last + timedelta(microseconds=1)) if found else last))
    return found


def changes(place: DevOpsPlace, request: Request, number: int, iteration: int) -> JsonObject:
    """List the files that a pull request changes, in pages of at most 2,000."""
    record = _record(place, number)
    if iteration != len(_iterations(place, record)):
        raise invalid("Only the newest iteration is compared here.")
    found, top = place.repository.pulls.files(record), min(int(request.args.get("$top", 100)), 2000)
    kinds = {"added": "add", "removed": "delete", "renamed": "rename"}
    entries: list[JsonObject] = []
    for id_, file in enumerate(found[:top], 1):
        before = {"originalPath": f"/{file.previous}"} if file.previous else {}
        kind, item = kinds.get(file.status, "edit"), {"path": f"/{file.path}"}
        entries.append({"changeTrackingId": id_, "item": item, "changeType": kind, **before})
    more = {"nextSkip": top, "nextTop": top} if len(found) > top else {}
    return {"changeEntries": entries, **more}


def commits(place: DevOpsPlace, request: Request, number: int) -> Response:
    """List the commits of a pull request in pages."""
    found = place.repository.pulls.commits_of(_record(place, number))
    top, start = int(request.args.get("$top", 100)), int(request.args.get("continuationToken", 0))
    more = {"x-ms-continuationtoken": str(start + top)} if len(found) > start + top else {}
    return values([commit_json(entry) for entry in found[start : start + top]], more)


def labels(place: DevOpsPlace, _: Request, number: int) -> Response:
    """List the labels of a pull request."""
    return values(labels_json(_record(place, number)))


def create_status(place: DevOpsPlace, request: Request, number: int, send: Send) -> Response:
    """Create the status of a pull request; it is stored with its newest commit."""
    record, wanted = _record(place, number), request.get_json()
    status_of(wanted)
    place.pull_statuses.setdefault(number, []).append(wanted | {"commit": record.sha})
    complete_what_waits(place, send)
    return json_response(200, wanted)


def complete_what_waits(place: DevOpsPlace, send: Send) -> None:
    """Complete each pull request with auto-complete whose branch policies are met: here, statuses of it.

    A policy asks for the newest commit (learn.microsoft.com/azure/devops/repos/git/pull-request-status).
    """
    pulls = place.repository.pulls
    for record in pulls.listed() if pulls.required_checks else ():
        written = place.pull_statuses.get(record.number, [])
        shown = [status_of(found) for found in written if found["commit"] == record.sha]
        states = {status.context: status.state for status in shown}
        if record.auto_merge and all(states.get(name) == "success" for name in pulls.required_checks):
            completed(place, record.number, record.sha, send, squash=False)


def statuses(place: DevOpsPlace, _: Request, number: int) -> Response:
    """List the statuses of a pull request."""
    _record(place, number)
    return values(place.pull_statuses.get(number, []))


def query(place: DevOpsPlace, request: Request) -> JsonObject:
    """Find the pull requests of commits: those whose merge is one, or that brought one."""
    results = []
    for wanted in request.get_json()["queries"]:
        result: JsonObject = {}
        for sha in wanted["items"]:
            found = [p for p in place.repository.pulls.with_commit(sha) if p.merged]
            if wanted["type"] == "lastMergeCommit":
                found = [p for p in found if p.merge_commit == sha]
            if found:
                result[sha] = [pull_json(place, record) for record in found]
        results.append(result)
    return {"queries": request.get_json()["queries"], "results": results}
