"""Merges, reviews, files and commits of pull requests, and members of teams, in GitHub's REST API.

Source: docs.github.com/rest, of each call the page of its name; the event ``pull_request_review`` as
github.com/octokit/webhooks describes it, with states in lower case.
"""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from localcloud.common.clock import in_seconds
from localcloud.git.world import repository_history as history
from localcloud.git.world.branches import ChangedFile
from localcloud.git.world.git_repository import MAX_PULL_COMMITS
from localcloud.git.world.people import PEOPLE, Person, Teams
from localcloud.git.world.pull_requests import PullRecord
from localcloud.git.world.ref_changes import RefChange, Refs
from localcloud.git.world.reviews import ReviewRecord
from localcloud.github.wire.github_auth import GitHubError
from localcloud.github.wire.github_json import (
    OPERATOR,
    JsonObject,
    Place,
    commit_json,
    paged,
    person_json,
    pull_of,
    read_object,
    repository_json,
)
from localcloud.github.wire.push_events import push_event
from localcloud.github.wire.rest_pulls import pull_json, send_pull_event
from localcloud.github.wire.rest_reads import resolve_commit
from shared.cluster.failures.errors import Conflict, Dependency, InvalidManifest


def merge(place: Place, request: Request, number: int) -> JsonObject:
    """Merge a pull request, and call the webhook: a push, and that it was closed."""
    wanted, before = read_object(request), history.refs(place.repository.path)
    method = wanted.get("merge_method", "merge")
    if method not in place.repository.pulls.methods:
        raise GitHubError(405, f"{str(method).capitalize()} merges are not allowed on this repository.")
    record = pull_of(place, number)
    if wanted.get("sha", record.sha) != record.sha:
        raise GitHubError(409, "Head branch was modified. Review and try the merge again.")
    try:
        merged = place.repository.pulls.merged_into_base(
            number, squash=method == "squash", message=_message(place, record, wanted)
        )
    except Conflict as error:
        raise GitHubError(405, str(error)) from error
    _send_merge(place, merged, before)
    return {"sha": merged.merge_commit, "merged": True, "message": "Pull Request successfully merged"}


def merge_what_waits(place: Place) -> None:
    """Merge each pull request with auto-merge whose required checks have passed, and call the webhook."""
    before = history.refs(place.repository.path)
    for merged in place.repository.pulls.merged_by_itself():
        _send_merge(place, merged, before)
        before = history.refs(place.repository.path)


def _send_merge(place: Place, merged: PullRecord, before: Refs) -> None:
    change = RefChange(f"refs/heads/{merged.base}", merged.onto, merged.merge_commit)
    place.send("push", push_event(place, change, before, merged.merged_at or merged.created_at))
    send_pull_event(place, "closed", merged)


def _message(place: Place, record: PullRecord, wanted: JsonObject) -> str:
    """Return the message of a merge: as it was asked for, or GitHub's default.

    Source: docs.github.com/pull-requests, "About merge methods on GitHub".
    """
    owner, own = place.full_name.partition("/")[0], list(place.repository.pulls.commits_of(record))
    title = f"Merge pull request #{record.number} from {owner}/{record.head}"
    text = record.title
    if wanted.get("merge_method") == "squash":
        first, _, rest = own[0].message.strip().partition("\n") if len(own) == 1 else (record.title, "", "")
        title = f"{first} (#{record.number})"
        text = rest.strip() if len(own) == 1 else "\n\n".join(f"* {c.message.strip()}" for c in own[::-1])
    title, text = wanted.get("commit_title") or title, wanted.get("commit_message", text)
    return f"{title}\n\n{text}".strip()


def listed(place: Place, request: Request, number: int) -> Response:
    """List the reviews of a pull request in pages, oldest first."""
    record = pull_of(place, number)
    return paged(request, place.repository.pulls.reviews.of(number), lambda r: review_json(place, record, r))


def create(place: Place, request: Request, number: int) -> JsonObject:
    """Submit a review of the caller, and call the webhook."""
    if place.caller["login"] not in PEOPLE:
        raise GitHubError(403, "Resource not accessible by integration")
    return submitted(place, number, PEOPLE[place.caller["login"]], read_object(request))


def submitted(place: Place, number: int, author: Person, wanted: JsonObject) -> JsonObject:
    """Submit the review {"event", "body"} of somebody."""
    record, event = pull_of(place, number), str(wanted.get("event") or "")
    try:
        review = place.repository.pulls.reviews.submit(record, author, event, str(wanted.get("body") or ""))
    except InvalidManifest as error:
        raise GitHubError(422, f"Unprocessable Entity: {error}") from error
    _send_review_event(place, "submitted", record, review)
    return review_json(place, record, review)


def dismiss(place: Place, request: Request, number: int, review: int) -> JsonObject:
    """Dismiss a review, and call the webhook."""
    record = pull_of(place, number)
    if not read_object(request).get("message"):
        raise GitHubError(422, 'Invalid request. "message" wasn\'t supplied.')
    try:
        dismissed = place.repository.pulls.reviews.dismiss(review)
    except Dependency as error:
        raise GitHubError(404, "Not Found") from error
    except InvalidManifest as error:
        raise GitHubError(422, str(error)) from error
    _send_review_event(place, "dismissed", record, dismissed)
    return review_json(place, record, dismissed)


def files(place: Place, request: Request, number: int) -> Response:
    """List the files of a pull request in pages; one that was renamed has its former name."""
    found = place.repository.pulls.files(pull_of(place, number))

    def write(file: ChangedFile) -> JsonObject:
        former = {"previous_filename": file.previous} if file.previous else {}
        return {"filename": file.path, "status": file.status, **former}

    return paged(request, found, write)


def commits(place: Place, request: Request, number: int) -> Response:
    """List the commits of a pull request in pages, oldest first, and no more than GitHub does."""
    base, head = place.repository.pulls.span(pull_of(place, number))
    found = history.rev_list(place.repository.path, f"{base}..{head}", limit=MAX_PULL_COMMITS)[::-1]
    return paged(request, found, lambda sha: commit_json(place, resolve_commit(place, sha)))


def of_commit(place: Place, request: Request, ref: str) -> Response:
    """List the merged pull requests that brought a commit, otherwise the open ones that have it."""
    found = place.repository.pulls.with_commit(resolve_commit(place, ref).sha)
    return paged(request, found, lambda record: pull_json(place, record))


def members(teams: Teams, request: Request, team: str) -> Response:
    """List the members of a team in pages."""
    found = teams.of(team)
    if found is None:
        raise GitHubError(404, "Not Found")
    return paged(request, found, person_json)


def review_json(place: Place, pull: PullRecord, record: ReviewRecord) -> JsonObject:
    """Write a review."""
    html, api = f"{place.html}/pull/{pull.number}", f"{place.api}/pulls/{pull.number}"
    link = f"{html}#pullrequestreview-{record.id}"
    return {
        "id": record.id,
        "node_id": f"PRR_{record.id}",
        "user": person_json(record.author),
        "body": record.body or None,
        "commit_id": record.commit,
        "submitted_at": in_seconds(record.at),
        "state": record.state,
        "html_url": link,
        "pull_request_url": api,
        "author_association": "MEMBER",
        "_links": {"html": {"href": link}, "pull_request": {"href": api}},
    }


def _send_review_event(place: Place, action: str, pull: PullRecord, record: ReviewRecord) -> None:
    review = review_json(place, pull, record)
    event = {
        "action": action,
        "review": {**review, "state": record.state.lower()},
        "pull_request": {k: v for k, v in pull_json(place, pull).items() if k != "merged"},
        "repository": repository_json(place),
        "sender": OPERATOR if action == "dismissed" else review["user"],
    }
    place.send("pull_request_review", event)
