"""Check runs in GitHub's REST API: written by GitHub Apps alone, read by everyone."""

from __future__ import annotations

from typing import Any

from werkzeug.wrappers import Request, Response

from localcloud.common.clock import in_seconds
from localcloud.common.http_server import json_response
from localcloud.git.world.pull_requests import CheckRecord
from localcloud.github.wire.github_auth import GitHubError
from localcloud.github.wire.github_json import JsonObject, Place, paged, read_object, refusing
from localcloud.github.wire.rest_reads import resolve_commit
from localcloud.github.wire.rest_reviews import merge_what_waits


def create(place: Place, request: Request) -> Response:
    """Make a check run; 403 for a token, as at GitHub."""
    _refuse_tokens(place)
    body = read_object(request)
    sha = resolve_commit(place, str(body.get("head_sha") or "")).sha
    with refusing("CheckRun"):
        record = place.repository.pulls.write_check(sha, body)
    merge_what_waits(place)
    return json_response(201, check_json(place, record))


def change(place: Place, request: Request, number: int) -> JsonObject:
    """Change a check run; its annotations are added."""
    _refuse_tokens(place)
    with refusing("CheckRun"):
        record = place.repository.pulls.edit_check(number, read_object(request))
    merge_what_waits(place)
    return check_json(place, record)


def listed(place: Place, request: Request, ref: str) -> dict[str, Any]:
    """List the newest check run of each name and suite of a commit, or of one name with ``?check_name=``.

    A second run of a workflow has a suite of its own, so that the first one's check runs stay listed
    (lewagon/wait-on-check-action#156, netresearch/git-workflow-skill#223).
    """
    newest: dict[tuple[int, int, str], CheckRecord] = {}
    for record in place.repository.pulls.checks(resolve_commit(place, ref).sha):
        newest.setdefault((record.app, record.suite, record.name), record)
    wanted = request.args.get("check_name", "")
    found = [check_json(place, check) for check in newest.values() if wanted in ("", check.name)]
    return {"total_count": len(found), "check_runs": found}


def annotated(place: Place, request: Request, number: int) -> Response:
    """List the annotations of a check run, in pages."""
    record = place.repository.pulls.get_check(number)
    if record is None:
        raise GitHubError(404, "Not Found")
    return paged(request, record.annotations, dict)


def check_json(place: Place, record: CheckRecord) -> JsonObject:
    """Write a check run."""
    url = f"{place.api}/check-runs/{record.id}"
    count = {"annotations_count": len(record.annotations), "annotations_url": f"{url}/annotations"}
    return {
        "id": record.id,
        "node_id": f"CR_{record.id}",
        "head_sha": record.sha,
        "url": url,
        "html_url": f"{place.html}/runs/{record.id}",
        "details_url": record.details_url,
        "name": record.name,
        "status": record.status,
        "conclusion": record.conclusion,
        "started_at": in_seconds(record.created_at),
        "completed_at": in_seconds(record.created_at) if record.conclusion else None,
        "output": {"title": None, "summary": None, "text": None, **record.output, **count},
        "check_suite": {"id": record.suite},
        "app": {"id": record.app, "slug": place.caller["login"].removesuffix("[bot]"), "name": "Roadstead"},
    }


def _refuse_tokens(place: Place) -> None:
    if place.caller["type"] != "Bot":
        raise GitHubError(403, "You must authenticate via a GitHub App.")
