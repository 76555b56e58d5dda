"""The payloads of GitLab's webhooks for pushes and merge requests.

Source: the examples of docs.gitlab.com/user/project/integrations/webhook_events, "Push events" (the newest 20
commits, how many there are) and "Merge request events" (``action``, ``oldrev`` with new commits).
"""

from __future__ import annotations

from typing import Any

from localcloud.git.world import repository_history as history
from localcloud.git.world.people import OPERATOR
from localcloud.git.world.pull_requests import PullRecord
from localcloud.git.world.ref_changes import ZERO, RefChange, Refs
from localcloud.gitlab.wire.gitlab_json import (
    JsonObject,
    ProjectPlace,
    merge_request_json,
    person_json,
    project_json,
)

MAX_COMMITS = 20
_ADDRESS = "[REDACTED]"
_ATTRIBUTES = (
    *("id", "iid", "title", "description", "state", "created_at", "source_branch", "target_branch"),
    *("source_project_id", "target_project_id"),
)


def push_event(place: ProjectPlace, change: RefChange, before: Refs) -> JsonObject:
    """Return the payload of a push to a branch; ``before`` are all references before it."""
    deleted, created = change.after == ZERO, change.before == ZERO
    branches = sorted({f"^{sha}" for ref, sha in before.items() if ref.startswith("refs/heads/")})
    excluded = branches if created else [f"^{change.before}"]
    path = place.project.path
    touched = {} if deleted else history.log(path, change.after, *excluded, limit=MAX_COMMITS)
    count = 0 if deleted else history.count(path, change.after, *excluded)
    return {
        "object_kind": "push",
        "event_name": "push",
        "before": change.before,
        "after": change.after,
        "ref": change.ref,
        "ref_protected": place.project.guards(change.ref.removeprefix("refs/heads/")),
        "checkout_sha": None if deleted else change.after,
        "message": None,
        **_user(),
        "project_id": place.project.id,
        "project": _project(place),
        "commits": [_commit(place, sha, paths) for sha, paths in touched.items()],
        "total_commits_count": count,
        "push_options": {},
        "repository": {"name": _project(place)["name"], "homepage": place.html},
    }


def merge_request_event(
    place: ProjectPlace, action: str, record: PullRecord, login: str = OPERATOR.login
) -> JsonObject:
    """Return the payload of what somebody did to a merge request."""
    written = merge_request_json(place, record)
    attributes: dict[str, Any] = {name: written[name] for name in _ATTRIBUTES}
    attributes |= {"action": action, "url": written["web_url"], "last_commit": {"id": record.sha}}
    # A fast-forward or a squash has no merge commit, and the event shows what the branch was then.
    attributes["merge_commit_sha"] = record.merge_commit or None
    return {
        "object_kind": "merge_request",
        "event_type": "merge_request",
        "user": {**person_json(login), "email": _ADDRESS},
        "project": _project(place),
        "object_attributes": attributes,
        "labels": [{"title": name} for name in record.labels],
        "changes": {},
        "repository": {"name": _project(place)["name"], "homepage": place.html},
    }


def _project(place: ProjectPlace) -> JsonObject:
    shown = project_json(place)
    names = ("id", "name", "web_url", "path_with_namespace", "default_branch")
    namespace = place.full_name.rpartition("/")[0].rpartition("/")[2]
    return {
        **{name: shown[name] for name in names},
        "namespace": namespace,
        "git_http_url": f"{place.html}.git",
    }


def _user() -> JsonObject:
    person = person_json(OPERATOR.login)
    return {f"user_{name}": person[name] for name in ("id", "name", "username")} | {"user_email": None}


def _commit(place: ProjectPlace, sha: str, touched: history.CommitPaths) -> JsonObject:
    stored = place.project.read(f"{sha}^{{commit}}")
    if stored is None:
        raise LookupError(f"no commit {sha}")
    found = history.parse_commit(stored)
    return {
        "id": sha,
        "message": found.message,
        "title": found.message.partition("\n")[0],
        "timestamp": found.committer.when.isoformat(),
        "url": f"{place.html}/-/commit/{sha}",
        "author": {"name": found.author.name, "email": _ADDRESS},
        "added": touched.added,
        "modified": touched.modified,
        "removed": touched.removed,
    }
