"""The JSON of GitLab's REST API: people, projects, merge requests, notes, issues and statuses.

Sources: the examples of docs.gitlab.com/api/users, /projects, /merge_requests, /notes, /issues and
/commits. Also how lists are paged (docs.gitlab.com/api/rest, "Offset-based pagination") and how the body of
a call is read.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from werkzeug.wrappers import Request, Response

from localcloud.common.http_server import json_response
from localcloud.git.world.commit_statuses import StatusRecord
from localcloud.git.world.issues import IssueRecord
from localcloud.git.world.people import OPERATOR, PEOPLE
from localcloud.git.world.pull_requests import CheckRecord, CommentRecord, PullRecord
from localcloud.gitlab.world.project import Project
from shared.cluster.failures.errors import Dependency

JsonObject = dict[str, Any]
T = TypeVar("T")
FORK = 1
"""What is added to the number of a project for that of its fork."""


class GitLabError(Exception):
    """An answer that is no success; ``body`` is its JSON, or its text."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(str(body))
        self.status, self.body, self.headers = status, body, dict(headers or {})


def not_found(what: str) -> GitLabError:
    """Return GitLab's answer to what there is not, or what the caller may not see."""
    return GitLabError(404, {"message": f"404 {what} Not Found"})


@dataclass(frozen=True)
class ProjectPlace:
    """A project as a caller addresses it; ``send`` delivers an event to the webhooks."""

    project: Project
    full_name: str
    base: str
    send: Callable[[str, JsonObject], None]

    @property
    def html(self) -> str:
        """The page of the project."""
        return f"{self.base}/{self.full_name}"


def read_object(request: Request) -> JsonObject:
    """Return the body of a call; a call without one has the parameters of its URL."""
    text = request.get_data()
    try:
        body = json.loads(text) if text else dict(request.args)
    except ValueError as error:
        raise GitLabError(400, {"error": "body is invalid"}) from error
    if not isinstance(body, dict):
        raise GitLabError(400, {"error": "body is invalid"})
    return body


def paged(request: Request, records: Sequence[T], write: Callable[[T], Any]) -> Response:
    """Write the page of a list that was asked for, with the headers of offset-based pagination."""
    size = min(max(1, request.args.get("per_page", 20, int)), 100)
    page, pages = max(1, request.args.get("page", 1, int)), max(1, -(-len(records) // size))
    shown = [write(record) for record in records[(page - 1) * size : page * size]]
    headers = {
        "x-next-page": str(page + 1) if page < pages else "",
        "x-page": str(page),
        "x-per-page": str(size),
        "x-prev-page": str(page - 1) if page > 1 else "",
        "x-total": str(len(records)),
        "x-total-pages": str(pages),
    }
    if page < pages:
        headers["Link"] = f'<{request.base_url}?page={page + 1}&per_page={size}>; rel="next"'
    return json_response(200, shown, headers)


def at_json(at: datetime) -> str:
    """Write a time as GitLab does, in milliseconds."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def person_json(login: str) -> JsonObject:
    """Write an account."""
    known = PEOPLE.get(login)
    number = known.id if known else 1000 + zlib.crc32(login.encode()) % 1000
    return {"id": number, "username": login, "name": login.capitalize(), "state": "active", "locked": False}


def user_json() -> JsonObject:
    """Write the account of the token, which is that of the operator."""
    address = "operator@example.invalid"
    return {**person_json(OPERATOR.login), "email": address, "commit_email": address, "bot": True}


def project_json(place: ProjectPlace) -> JsonObject:
    """Write a project."""
    namespace, _, path = place.full_name.rpartition("/")
    return {
        "id": place.project.id,
        "name": path,
        "path": path,
        "path_with_namespace": place.full_name,
        "namespace": {"full_path": namespace},
        "default_branch": place.project.default_branch,
        "web_url": place.html,
        "http_url_to_repo": f"{place.html}.git",
        "visibility": "private",
        "only_allow_merge_if_pipeline_succeeds": bool(place.project.pulls.required_checks),
    }


def merge_request_json(place: ProjectPlace, record: PullRecord) -> JsonObject:
    """Write a merge request; ``sha`` is its newest commit."""
    number = place.project.id
    merged, squashed = record.merge_commit or None, None
    if merged:
        parents = place.project.changes(merged, "", 1)[0].parents
        merged, squashed = (merged, None) if record.sha in parents else (None, merged)
    return {
        "id": 1000 + record.number,
        "iid": record.number,
        "project_id": number,
        "title": record.title,
        "description": record.body or None,
        "state": "merged" if record.merged else {"open": "opened"}.get(record.state, record.state),
        "created_at": at_json(record.created_at),
        "updated_at": at_json(record.created_at),
        "merged_at": at_json(record.merged_at) if record.merged_at else None,
        "target_branch": record.base,
        "source_branch": record.head,
        "source_project_id": number + FORK if record.fork else number,
        "target_project_id": number,
        "author": person_json(record.author),
        "labels": list(record.labels),
        "draft": False,
        "merge_when_pipeline_succeeds": bool(record.auto_merge),
        "sha": record.sha,
        "merge_commit_sha": None if merged == record.sha else merged,
        "squash_commit_sha": None if squashed == record.sha else squashed,
        "web_url": f"{place.html}/-/merge_requests/{record.number}",
    }


def note_json(record: CommentRecord) -> JsonObject:
    """Write a note on a merge request."""
    return {
        "id": record.id,
        "body": record.body,
        "author": person_json(record.author),
        "created_at": at_json(record.created_at),
        "updated_at": at_json(record.updated_at),
        "system": False,
        "noteable_iid": record.pull,
        "noteable_type": "MergeRequest",
    }


def issue_json(place: ProjectPlace, record: IssueRecord) -> JsonObject:
    """Write an issue; one of a deleted account belongs to the ghost, and here to nobody."""
    return {
        "id": 2000 + record.number,
        "iid": record.number,
        "project_id": place.project.id,
        "title": record.title,
        "description": record.body or None,
        "state": "opened" if record.state == "open" else "closed",
        "author": person_json(record.author) if record.author else None,
        "created_at": at_json(record.created_at),
        "web_url": f"{place.html}/-/issues/{record.number}",
    }


def status_json(sha: str, job: StatusRecord) -> JsonObject:
    """Write a commit status."""
    return {
        "id": job.id,
        "sha": sha,
        "ref": job.ref,
        "status": job.status.state,
        "name": job.status.context,
        "target_url": job.status.target_url or None,
        "description": job.status.description or None,
        "created_at": at_json(job.created_at),
        "allow_failure": False,
        "author": person_json(OPERATOR.login),
    }


_ENDED = {"success": "success", "failure": "failed", "cancelled": "canceled", "skipped": "skipped"}


def job_json(record: CheckRecord) -> JsonObject:
    """Write a job as a status of its commit; one of another pipeline has another branch."""
    running = "running" if record.status == "in_progress" else "pending"
    return {
        "id": 10_000 + record.id,
        "sha": record.sha,
        "ref": "main" if record.app == 1 else f"refs/merge-requests/{record.app}/head",
        "status": _ENDED.get(record.conclusion or "", "failed") if record.conclusion else running,
        "name": record.name,
        "target_url": record.details_url,
        "description": None,
        "created_at": at_json(record.created_at),
        "allow_failure": False,
        "author": person_json("reviewer"),
    }


def head_of(project: Project, branch: str) -> str:
    """Return the commit of a branch, "" for none."""
    try:
        return project.head(branch)
    except Dependency:
        return ""
