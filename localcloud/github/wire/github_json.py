"""The JSON of GitHub's REST API and webhooks: how repositories, commits, refs and statuses are written.

Also how lists are paged, and how the body of a call is read.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from werkzeug.wrappers import Request, Response

from localcloud.common.clock import in_seconds
from localcloud.common.http_server import json_response
from localcloud.git.world import people
from localcloud.git.world.commit_statuses import StatusRecord
from localcloud.git.world.git_repository import GitRepository
from localcloud.git.world.issues import DELETED
from localcloud.git.world.people import Person
from localcloud.git.world.pull_requests import PullRecord
from localcloud.git.world.repository_history import CommitInfo, CommitPaths
from localcloud.git.world.repository_history import Signature as Writer
from localcloud.github.wire.github_auth import GitHubError
from shared.cluster.failures.errors import Dependency, InvalidManifest

JsonObject = dict[str, Any]


def person_json(person: Person) -> JsonObject:
    """Write the account of a person."""
    return {"login": person.login, "id": person.id, "type": "User", "site_admin": False}


OPERATOR: JsonObject = person_json(people.OPERATOR)
"""Who uses the token of the local GitHub."""

APP_BOT: JsonObject = {"login": "roadstead[bot]", "id": 2, "type": "Bot", "site_admin": False}
"""The user that the GitHub App writes as."""

T = TypeVar("T")


def send_nothing(_event: str, _payload: Mapping[str, Any]) -> None:
    """Send no event."""


@dataclass(frozen=True)
class Place:
    """A repository as a caller addresses it: "owner/name" at a base URL without a slash at its end.

    ``caller`` is who calls, ``send`` delivers an event to the webhook.
    """

    repository: GitRepository
    full_name: str
    base: str
    caller: JsonObject
    send: Callable[[str, Mapping[str, Any]], None] = send_nothing
    writes: bool = True
    """Whether the caller may write to the repository."""

    @property
    def api(self) -> str:
        """The repository's URL in the REST API."""
        return f"{self.base}/repos/{self.full_name}"

    @property
    def html(self) -> str:
        """The URL of the repository's web page."""
        return f"{self.base}/{self.full_name}"


def read_object(request: Request) -> JsonObject:
    """Return the JSON object that was sent; 400 when there is none."""
    try:
        body = json.loads(request.get_data())
    except ValueError as error:
        raise GitHubError(400, "Problems parsing JSON") from error
    if not isinstance(body, dict):
        raise GitHubError(400, "Body should be a JSON object")
    return body


def paged(request: Request, records: Sequence[T], write: Callable[[T], Any]) -> Response:
    """Write the page of a list that was asked for, with the links to the others."""
    size = min(max(1, request.args.get("per_page", 30, int)), 100)
    page = max(1, request.args.get("page", 1, int))
    shown = records[(page - 1) * size : page * size]
    reply = json_response(200, [write(record) for record in shown])
    if page * size < len(records):
        url, last = f"{request.base_url}?per_page={size}&page=", -(-len(records) // size)
        reply.headers["Link"] = f'<{url}{page + 1}>; rel="next", <{url}{last}>; rel="last"'
    return reply


@contextmanager
def refusing(resource: str) -> Iterator[None]:
    """Answer as GitHub does what the world refuses of a resource."""
    try:
        yield
    except InvalidManifest as error:
        raise invalid(resource, str(error)) from error
    except Dependency as error:
        gone = error.code == DELETED
        raise GitHubError(410 if gone else 404, "This issue was deleted" if gone else "Not Found") from error


def invalid(resource: str, message: str) -> GitHubError:
    """Return the answer to a value of a resource that GitHub does not take."""
    detail = {"resource": resource, "code": "custom", "message": message}
    return GitHubError(422, "Validation Failed", errors=(detail,))


def pull_of(place: Place, number: int) -> PullRecord:
    """Return a pull request, or answer 404."""
    record = place.repository.pulls.get(number)
    if record is None:
        raise GitHubError(404, "Not Found")
    return record


def repository_json(place: Place) -> JsonObject:
    """Write a repository."""
    owner, _, name = place.full_name.partition("/")
    number = place.repository.id
    return {
        "id": number,
        "node_id": f"R_{number}",
        "name": name,
        "full_name": place.full_name,
        "private": True,
        "owner": {**OPERATOR, "login": owner, "name": owner},
        "html_url": place.html,
        "url": place.api,
        "clone_url": f"{place.html}.git",
        "default_branch": place.repository.default_branch,
        "archived": False,
        "disabled": False,
        "visibility": "private",
    }


def ref_json(place: Place, name: str, sha: str, kind: str) -> JsonObject:
    """Write a ref by its full name."""
    number = zlib.crc32(name.encode())
    return {
        "ref": name,
        "node_id": f"REF_{number}",
        "url": f"{place.api}/git/{name}",
        "object": {"sha": sha, "type": kind, "url": f"{place.api}/git/{kind}s/{sha}"},
    }


def git_commit_json(place: Place, commit: CommitInfo) -> JsonObject:
    """Write a commit as the git database API does."""
    return {
        "sha": commit.sha,
        "node_id": f"C_{commit.sha}",
        "url": f"{place.api}/git/commits/{commit.sha}",
        "html_url": f"{place.html}/commit/{commit.sha}",
        "author": _person(commit.author),
        "committer": _person(commit.committer),
        "message": commit.message,
        "tree": {"sha": commit.tree, "url": f"{place.api}/git/trees/{commit.tree}"},
        "parents": [
            {
                "sha": sha,
                "url": f"{place.api}/git/commits/{sha}",
                "html_url": f"{place.html}/commit/{sha}",
            }
            for sha in commit.parents
        ],
        "verification": {"verified": False, "reason": "unsigned", "signature": None, "payload": None},
    }


def commit_json(place: Place, commit: CommitInfo) -> JsonObject:
    """Write a commit as the commits API does, without its files."""
    inner = git_commit_json(place, commit)
    parents = [{**p, "url": f"{place.api}/commits/{p['sha']}"} for p in inner.pop("parents")]
    return {
        "sha": commit.sha,
        "node_id": inner.pop("node_id"),
        "commit": {**inner, "comment_count": 0},
        "url": f"{place.api}/commits/{commit.sha}",
        "html_url": f"{place.html}/commit/{commit.sha}",
        "author": _account(commit.author),
        "committer": _account(commit.committer),
        "parents": parents,
    }


def pushed_commit_json(
    place: Place, commit: CommitInfo, touched: CommitPaths, *, distinct: bool
) -> JsonObject:
    """Write a commit as a push event does."""
    return {
        "id": commit.sha,
        "tree_id": commit.tree,
        "distinct": distinct,
        "message": commit.message,
        "timestamp": commit.committer.when.isoformat(),
        "url": f"{place.html}/commit/{commit.sha}",
        "author": {"name": commit.author.name, "email": commit.author.email},
        "committer": {"name": commit.committer.name, "email": commit.committer.email},
        "added": touched.added,
        "removed": touched.removed,
        "modified": touched.modified,
    }


def status_json(place: Place, sha: str, record: StatusRecord) -> JsonObject:
    """Write a commit status."""
    status, at = record.status, in_seconds(record.created_at)
    return {
        "url": f"{place.api}/statuses/{sha}",
        "id": record.id,
        "node_id": f"SC_{record.id}",
        "state": status.state,
        "description": status.description or None,
        "target_url": status.target_url or None,
        "context": status.context,
        "created_at": at,
        "updated_at": at,
        "creator": OPERATOR,
    }


def _account(person: Writer) -> JsonObject | None:
    """Write the account with the address of who wrote a commit; None where GitHub knows none."""
    found = people.account_of(person.email)
    return person_json(found) if found else None


def _person(person: Writer) -> JsonObject:
    return {"name": person.name, "email": person.email, "date": in_seconds(person.when)}
