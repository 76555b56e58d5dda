"""Projects, commits, statuses, branches and issues in GitLab's REST API.

Sources: docs.gitlab.com/api/projects, /commits, /branches, /protected_branches, /issues and
/notes; app/services/ci/create_commit_status_service.rb of gitlab-org/gitlab for "References for commit".
"""

from __future__ import annotations

from typing import Any

from werkzeug.wrappers import Request, Response

from localcloud.common.http_server import json_response
from localcloud.git.world.git_commands import run_git
from localcloud.git.world.people import OPERATOR
from localcloud.git.world.repository_history import CommitInfo, parse_commit
from localcloud.gitlab.wire.api_merge_requests import merge_what_waits
from localcloud.gitlab.wire.gitlab_json import (
    GitLabError,
    JsonObject,
    ProjectPlace,
    head_of,
    issue_json,
    job_json,
    merge_request_json,
    not_found,
    paged,
    project_json,
    read_object,
    status_json,
)
from shared.ports import CommitStatus

MAINTAINER = 40


def project(place: ProjectPlace, _: Request) -> JsonObject:
    """Write the project."""
    return project_json(place)


def find_commit(place: ProjectPlace, sha: str) -> CommitInfo:
    """Return a commit by its id or its branch; 404 without one."""
    stored = place.project.read(f"{head_of(place.project, sha) or sha}^{{commit}}")
    if stored is None:
        raise not_found("Commit")
    return parse_commit(stored)


def commit(place: ProjectPlace, _: Request, sha: str) -> JsonObject:
    """Write a commit."""
    found = find_commit(place, sha)
    return {
        "id": found.sha,
        "short_id": found.sha[:8],
        "title": found.message.partition("\n")[0],
        "message": found.message,
        "parent_ids": list(found.parents),
        "author_email": found.author.email,
        "committer_email": found.committer.email,
        "committed_date": found.committer.when.isoformat(),
    }


def merge_requests_of(place: ProjectPlace, request: Request, sha: str) -> Response:
    """List the merge requests that a commit came with, or is in."""
    found = place.project.pulls.with_commit(find_commit(place, sha).sha)
    wanted = request.args.get("state", "")
    shown = [merge_request_json(place, record) for record in found]
    return paged(request, [body for body in shown if wanted in ("", body["state"])], lambda body: body)


def statuses(place: ProjectPlace, request: Request, sha: str) -> Response:
    """List the newest status and job of each name."""
    found, name = find_commit(place, sha).sha, request.args.get("name", "")
    shown = [status_json(found, job) for job in place.project.statuses.latest(found)]
    newest = {(run.app, run.suite, run.name): run for run in reversed(place.project.pulls.checks(found))}
    shown += [job_json(run) for run in newest.values()]
    shown.sort(key=lambda body: int(body["id"]))
    return paged(request, [body for body in shown if name in ("", body["name"])], lambda body: body)


def set_status(place: ProjectPlace, request: Request, sha: str) -> Response:
    """Write a status; 404 for a commit that no branch has."""
    body, found = read_object(request), find_commit(place, sha).sha
    ref = str(body.get("ref") or "") or next(iter(_branches_with(place, found)), "")
    if not ref:
        raise not_found("References for commit")
    status = CommitStatus(
        str(body.get("state") or ""),
        str(body.get("description") or ""),
        str(body.get("name") or body.get("context") or "default"),
        str(body.get("target_url") or ""),
    )
    written = status_json(found, place.project.statuses.add(found, status, ref))
    merge_what_waits(place)
    return json_response(201, written)


def _branches_with(place: ProjectPlace, commit: str) -> list[str]:
    found = run_git(place.project.path, "branch", "--contains", commit, "--format=%(refname:short)")
    return found.decode().split()


def delete_branch(place: ProjectPlace, _: Request, branch: str) -> Response:
    """Delete a branch, and close its merge requests; a Maintainer may delete one that a rule protects."""
    if not head_of(place.project, branch):
        raise not_found("Branch")
    place.project.delete(branch)
    place.project.pulls.branch_deleted(branch)
    return Response(status=204)


def protected(place: ProjectPlace, request: Request) -> Response:
    """List the rules of branches."""
    levels = [{"id": 1, "access_level": MAINTAINER, "access_level_description": "Maintainers"}]
    return paged(
        request,
        place.project.guarded,
        lambda name: {"id": 1, "name": name, "push_access_levels": levels, "allow_force_push": False},
    )


def issues(place: ProjectPlace, request: Request) -> Response:
    """List the issues in a state, newest first."""
    state = {"opened": "open"}.get(request.args.get("state", "all"), request.args.get("state", "all"))
    shown = [issue_json(place, record) for record in place.project.pulls.issues.listed(state=state)]
    author = request.args.get("author_id", 0, int)
    return paged(
        request, [body for body in shown if not author or _id(body["author"]) == author], lambda body: body
    )


def _id(person: Any) -> int:
    return int(person["id"]) if person else 0


def create_issue(place: ProjectPlace, request: Request) -> Response:
    """Create an issue."""
    body = read_object(request)
    title, text = str(body.get("title") or ""), str(body.get("description") or "")
    record = place.project.pulls.issues.create(title, text, OPERATOR.login)
    return json_response(201, issue_json(place, record))


def change_issue(place: ProjectPlace, request: Request, number: int) -> JsonObject:
    """Close or reopen an issue."""
    event = read_object(request).get("state_event")
    if event not in ("close", "reopen"):
        raise GitLabError(400, {"error": "state_event does not have a valid value"})
    state = "closed" if event == "close" else "open"
    reason = "completed" if event == "close" else None
    return issue_json(place, place.project.pulls.issues.change(number, state=state, state_reason=reason))


def comment_issue(place: ProjectPlace, request: Request, number: int) -> Response:
    """Write a note on an issue."""
    text = str(read_object(request).get("body") or "")
    place.project.pulls.issues.comment(number, text, OPERATOR.login)
    return json_response(201, {"id": 1, "body": text})
