"""Repositories, commits, statuses, policies, teams and identities in the REST API of Azure DevOps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from werkzeug.wrappers import Request, Response

from localcloud.azure_devops.devops_json import (
    DevOpsError,
    DevOpsPlace,
    JsonObject,
    identity_json,
    repository_json,
    time_text,
)
from localcloud.common.http_server import json_response
from localcloud.git.world.git_commands import run_git
from localcloud.git.world.people import OPERATOR, Teams, account_of
from localcloud.git.world.pull_requests import CheckRecord
from localcloud.git.world.ref_changes import ZERO
from shared.cluster.failures.errors import InvalidManifest
from shared.ports import CommitStatus

STATES = {"pending": "pending", "succeeded": "success", "failed": "failure", "error": "error"}
_SHOWN = {ours: theirs for theirs, ours in STATES.items()}


def values(found: list[Any], headers: dict[str, str] | None = None) -> Response:
    """Write a list as Azure DevOps does."""
    answer = json_response(200, {"count": len(found), "value": found})
    answer.headers.extend(headers or {})
    return answer


def repository(place: DevOpsPlace, _: Request) -> JsonObject:
    """Write a repository."""
    return repository_json(place)


def commit(place: DevOpsPlace, _: Request, sha: str) -> JsonObject:
    """Write a commit."""
    require_commit(place, sha)
    (found,) = place.repository.changes(sha, "", 1)
    return commit_json(found)


def commit_json(found: Any) -> JsonObject:
    """Write a commit with its people and its message."""
    return {
        "commitId": found.commit,
        "author": {"name": found.author, "email": found.author},
        "committer": {"name": found.committer, "email": found.committer},
        "comment": found.message,
        "parents": list(found.parents),
    }


def pushes(place: DevOpsPlace, request: Request) -> Response:
    """List the pushes of a branch, newest first: git's log of its reference has them."""
    ref = request.args.get("searchCriteria.refName", "")
    if request.args.get("searchCriteria.includeRefUpdates") != "true" or not ref:
        raise invalid("Pushes are listed here for one reference, with its updates.")
    if not place.repository.target(ref):
        return values([])
    log = run_git(place.repository.path, "reflog", "show", "--date=unix", "--format=%H %gd", ref, "--")
    entries = [line.split() for line in log.decode().splitlines()]
    commits = [*(commit for commit, _ in entries), ZERO]
    found = [
        {
            "pushId": len(entries) - number,
            "date": time_text(datetime.fromtimestamp(int(entry[1].partition("@{")[2].rstrip("}")), UTC)),
            "pushedBy": identity_json(OPERATOR.login),
            "refUpdates": [{"name": ref, "oldObjectId": commits[number + 1], "newObjectId": entry[0]}],
        }
        for number, entry in enumerate(entries)
    ]
    return values(found[: int(request.args.get("$top", 100))])


def require_commit(place: DevOpsPlace, sha: str) -> None:
    """Raise what the API answers for an object that there is not."""
    found = place.repository.read(sha)
    if found is None or found.kind != "commit":
        raise DevOpsError(
            404, f"TF401035: The object '{sha}' does not exist.", "GitObjectDoesNotExistException"
        )


def create_status(place: DevOpsPlace, request: Request, sha: str) -> Response:
    """Create the status of a commit."""
    require_commit(place, sha)
    wanted = request.get_json()
    try:
        place.repository.set_status(sha, status_of(wanted))
    except InvalidManifest as error:
        raise invalid(str(error)) from error
    return json_response(201, {**wanted, "createdBy": identity_json(OPERATOR.login)})


def status_of(wanted: JsonObject) -> CommitStatus:
    """Read a status; its name is required."""
    context, state = wanted.get("context") or {}, wanted.get("state")
    if state not in STATES or not context.get("name"):
        raise invalid("A status needs a state and the name of its context.")
    name = f"{context.get('genre', '')}/{context['name']}"
    return CommitStatus(
        STATES[state], str(wanted.get("description") or ""), name, str(wanted.get("targetUrl") or "")
    )


def invalid(message: str) -> DevOpsError:
    """Return the refusal of a value."""
    return DevOpsError(400, f"Invalid argument value. {message}", "InvalidArgumentValueException")


def statuses(place: DevOpsPlace, request: Request, sha: str) -> Response:
    """List the statuses of a commit, with ``latestOnly`` the newest of each genre and name."""
    require_commit(place, sha)
    if request.args.get("latestOnly") != "true":
        raise invalid("Only the latest statuses are listed here.")
    found = [
        _status_json(record.status, time_text(record.created_at))
        for record in place.repository.statuses.latest(sha)
    ]
    return values([*found, *_checks(place, sha)][: int(request.args.get("top", 1000))])


def _status_json(status: CommitStatus, at: str) -> JsonObject:
    genre, _, name = status.context.rpartition("/")
    return {
        "state": _SHOWN[status.state],
        "description": status.description,
        "targetUrl": status.target_url or None,
        "context": {"genre": genre, "name": name},
        "creationDate": at,
        "createdBy": identity_json(OPERATOR.login),
    }


def _checks(place: DevOpsPlace, sha: str) -> Iterator[JsonObject]:
    """Yield what other services say: here a service is a genre."""
    seen = set[tuple[int, str]]()
    for check in place.repository.pulls.checks(sha):
        if (check.app, check.name) not in seen:
            seen.add((check.app, check.name))
            context = {"genre": f"service-{check.app}", "name": check.name}
            yield {"state": _state_of(check), "context": context, "creationDate": time_text(check.created_at)}


def _state_of(check: CheckRecord) -> str:
    if check.status != "completed":
        return "pending"
    return {"success": "succeeded", "neutral": "notApplicable"}.get(check.conclusion or "", "failed")


def policies(place: DevOpsPlace, request: Request) -> Response:
    """List the policies that apply to a branch, also one that is not there yet."""
    branch = request.args.get("refName", "").removeprefix("refs/heads/")
    if request.args.get("repositoryId") != place.id or not branch:
        raise invalid("repositoryId and refName are needed.")
    guard = {
        "isEnabled": True,
        "isBlocking": True,
        "isDeleted": False,
        "type": {"displayName": "Minimum number of reviewers"},
    }
    required = branch == place.repository.default_branch and place.repository.pulls.required_checks
    status = {**guard, "type": {"displayName": "Status"}}
    return values([guard] * place.repository.guards(branch) + [status] * bool(required))


def members(teams: Teams, request: Request, project: str, team: str) -> Response:
    """List the members of a team."""
    found = teams.of(f"{project}/{team}")
    if found is None:
        raise DevOpsError(404, f"The team with id '{team}' does not exist.", "TeamNotFoundException")
    listed = [{"isTeamAdmin": False, "identity": identity_json(person.login)} for person in found]
    return values(listed[: int(request.args.get("$top", 100))])


def identities(request: Request) -> Response:
    """List the identities with a mail address."""
    if request.args.get("searchFilter") != "MailAddress":
        raise invalid("Only MailAddress is searched here.")
    found = account_of(request.args.get("filterValue", ""))
    return values([{"id": identity_json(found.login)["id"], "isContainer": False}] if found else [])
