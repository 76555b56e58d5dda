"""The commit statuses of GitHub's REST API: write one, list them, and their combination."""

from __future__ import annotations

from typing import Any

from werkzeug.wrappers import Request, Response

from localcloud.common.http_server import json_response
from localcloud.git.world import commit_statuses
from localcloud.github.wire.github_auth import GitHubError
from localcloud.github.wire.github_json import (
    Place,
    invalid,
    paged,
    read_object,
    repository_json,
    status_json,
)
from localcloud.github.wire.rest_reads import resolve_commit
from localcloud.github.wire.rest_reviews import merge_what_waits
from shared.cluster.failures.errors import InvalidManifest
from shared.ports import CommitStatus


def create(place: Place, request: Request, sha: str) -> Response:
    """Write a status; 422 for what GitHub refuses."""
    body = read_object(request)
    status = CommitStatus(
        state=str(body.get("state", "")),
        description=str(body.get("description") or ""),
        context=str(body.get("context") or "default"),
        target_url=str(body.get("target_url") or ""),
    )
    try:
        place.repository.set_status(sha, status)
    except InvalidManifest as error:
        if str(error).startswith("No commit found"):
            raise GitHubError(422, str(error)) from error
        raise invalid("Status", str(error)) from error
    merge_what_waits(place)
    written = place.repository.statuses.history(sha)[0]
    return json_response(201, status_json(place, sha, written), {"Location": f"{place.api}/statuses/{sha}"})


def listed(place: Place, request: Request, ref: str) -> Response:
    """List every status of a commit, newest first, in pages."""
    sha = resolve_commit(place, ref).sha
    records = place.repository.statuses.history(sha)
    return paged(request, records, lambda record: status_json(place, sha, record))


def combined(place: Place, _: Request, ref: str) -> dict[str, Any]:
    """Write the newest status of each context and their combined state."""
    sha = resolve_commit(place, ref).sha
    records = place.repository.statuses.latest(sha)
    return {
        "state": commit_statuses.combined(records),
        "statuses": [status_json(place, sha, record) for record in records],
        "sha": sha,
        "total_count": len(records),
        "repository": repository_json(place),
        "commit_url": f"{place.api}/commits/{sha}",
        "url": f"{place.api}/commits/{sha}/status",
    }
