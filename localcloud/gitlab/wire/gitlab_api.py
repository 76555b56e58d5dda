"""GitLab's REST API over the local projects, and the one query of its GraphQL API that the adapter asks.

Sources: docs.gitlab.com/api/rest (status codes, URL-encoded paths), /api/rest/troubleshooting (what a token
hears), /api/users, /personal_access_tokens, /group_members;
/administration/settings/user_and_ip_rate_limits (the headers, 429 with "Retry later");
docs.gitlab.com/user/gitlab_com, "Rate limits on GitLab.com" (2,000 requests in a minute).
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from localcloud.common.http_server import json_response, matched
from localcloud.git.wire.git_http import OneToken
from localcloud.git.world.git_commands import GitError
from localcloud.git.world.people import Teams
from localcloud.gitlab.wire import api_merge_requests as merge_requests
from localcloud.gitlab.wire import api_projects as projects
from localcloud.gitlab.wire.gitlab_json import (
    GitLabError,
    ProjectPlace,
    not_found,
    paged,
    person_json,
    read_object,
    user_json,
)
from localcloud.gitlab.wire.gitlab_webhooks import ProjectHook
from localcloud.gitlab.wire.project_folder import ProjectStore
from shared.cluster.failures.errors import Dependency, InvalidManifest, ReconcileError
from shared.ports import Clock

Handler = Callable[..., Any]
"""Takes the place, the request and the variables of the path; returns JSON for a 200, or a Response."""

_MR = "/merge_requests/<int:number>"
_ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "", projects.project),
    ("GET", "/repository/commits/<sha>", projects.commit),
    ("GET", "/repository/commits/<sha>/merge_requests", projects.merge_requests_of),
    ("GET", "/repository/commits/<sha>/statuses", projects.statuses),
    ("POST", "/statuses/<sha>", projects.set_status),
    ("DELETE", "/repository/branches/<branch>", projects.delete_branch),
    ("GET", "/protected_branches", projects.protected),
    ("GET", "/issues", projects.issues),
    ("POST", "/issues", projects.create_issue),
    ("PUT", "/issues/<int:number>", projects.change_issue),
    ("POST", "/issues/<int:number>/notes", projects.comment_issue),
    ("GET", "/merge_requests", merge_requests.listed),
    ("POST", "/merge_requests", merge_requests.create),
    ("GET", _MR, merge_requests.single),
    ("PUT", _MR, merge_requests.change),
    ("PUT", f"{_MR}/merge", merge_requests.merge),
    ("GET", f"{_MR}/merge_ref", merge_requests.merge_ref),
    ("GET", f"{_MR}/notes", merge_requests.notes),
    ("POST", f"{_MR}/notes", merge_requests.create_note),
    ("PUT", f"{_MR}/notes/<int:note>", merge_requests.change_note),
    ("GET", f"{_MR}/approvals", merge_requests.approvals),
    ("GET", f"{_MR}/reviewers", merge_requests.reviewers),
    ("GET", f"{_MR}/versions", merge_requests.versions),
    ("GET", f"{_MR}/diffs", merge_requests.files),
)
_USER, _SELF, _HOOKS = "/user", "/personal_access_tokens/self", "/projects/<project>/hooks"
_MEMBERS, _GRAPHQL = "/groups/<group>/members", "/api/graphql"


def _rules() -> Iterator[Rule]:
    for method, path, call in _ROUTES:
        yield Rule(f"/api/v4/projects/<project>{path}", methods=[method], endpoint=call)
    for path in (_USER, _SELF, _HOOKS, _MEMBERS):
        yield Rule(f"/api/v4{path}", methods=["GET"], endpoint=path)
    yield Rule(_GRAPHQL, methods=["POST"], endpoint=_GRAPHQL)


_MAP = Map(list(_rules()))


class Throttle:
    """Counts requests of a minute; ``limit`` may be changed at any time."""

    def __init__(self, clock: Clock, limit: int = 2000) -> None:
        self.limit, self._clock, self._used = limit, clock, 0
        self._lock, self._ends = threading.Lock(), clock()

    def take(self) -> dict[str, str]:
        """Count a request, and return the headers of its answer; raise 429 when there is none left."""
        with self._lock:
            now = self._clock()
            if now >= self._ends:
                self._used, self._ends = 0, now + timedelta(minutes=1)
            self._used += 1
            headers = {
                "RateLimit-Limit": str(self.limit),
                "RateLimit-Observed": str(self._used),
                "RateLimit-Remaining": str(max(0, self.limit - self._used)),
                "RateLimit-Reset": str(int(self._ends.timestamp())),
            }
            if self._used > self.limit:
                wait = max(1, int((self._ends - now).total_seconds()))
                raise GitLabError(429, "Retry later\n", {**headers, "Retry-After": str(wait)})
            return headers


class GitLabApi:
    """Answers REST calls, errors included; ``scopes`` are those of the token."""

    def __init__(self, store: ProjectStore, credentials: OneToken, hook: ProjectHook, clock: Clock) -> None:
        self.groups, self.throttle = Teams(), Throttle(clock)
        self.scopes, self.is_maintainer = ["api"], True
        self._store, self._credentials, self._hook, self._clock = store, credentials, hook, clock

    def answer(self, request: Request) -> Response:
        """Answer one call."""
        try:
            reply = self._answer(request)
        except GitLabError as error:
            reply = error_response(error)
        except MethodNotAllowed:
            reply = error_response(GitLabError(405, {"error": "405 Method Not Allowed"}))
        except HTTPException:
            reply = error_response(GitLabError(404, {"error": "404 Not Found"}))
        except InvalidManifest as error:
            reply = error_response(GitLabError(400, {"message": str(error)}))
        except Dependency:
            reply = error_response(GitLabError(404, {"message": "404 Not found"}))
        except (ReconcileError, GitError) as error:
            reply = error_response(GitLabError(500, {"message": str(error)}))
        reply.headers["x-request-id"] = uuid.uuid4().hex[:26].upper()
        return reply

    def _answer(self, request: Request) -> Response:
        call, path = matched(_MAP, request)
        headers = self.throttle.take()
        self._check(request)
        found = self._found(call, request, path)
        reply = found if isinstance(found, Response) else json_response(200, found)
        reply.headers.extend(headers)
        return reply

    def _check(self, request: Request) -> None:
        """Refuse a token that is wrong, has ended, or lacks the scope."""
        scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
        token = request.headers.get("PRIVATE-TOKEN", bearer if scheme.lower() == "bearer" else "")
        if not token:
            raise GitLabError(401, {"message": "401 Unauthorized"})
        if not self._credentials.is_token(token):
            raise GitLabError(401, {"message": "401 Unauthorized"})
        if not self._credentials.accepts(token):
            text = "Token is expired. You can either do re-authorization or token refresh."
            raise GitLabError(401, {"error": "invalid_token", "error_description": text})
        reads = request.method == "GET" or request.path == _GRAPHQL
        if "api" not in self.scopes and not (reads and "read_api" in self.scopes):
            text = "The request requires higher privileges than provided by the access token."
            body = {"error": "insufficient_scope", "error_description": text, "scope": "api"}
            raise GitLabError(403, body)

    def _found(self, call: Any, request: Request, path: dict[str, Any]) -> Any:
        if call == _USER:
            return user_json()
        if call == _SELF:
            ends = self._credentials.token_expires
            return {"id": 1, "name": "roadstead", "active": True, "expires_at": ends and f"{ends:%Y-%m-%d}"}
        if call == _MEMBERS:
            people = self.groups.of(path["group"])
            if people is None:
                raise not_found("Group")
            return paged(request, people, lambda person: person_json(person.login))
        if call == _GRAPHQL:
            body = read_object(request)
            variables = body.get("variables") or {}
            place = self.place(str(variables.get("path")), request)
            return {"data": {"project": merge_requests.graphql(place, variables) if place else None}}
        place = self.place(path.pop("project"), request)
        if place is None:
            raise not_found("Project")
        if call == _HOOKS:
            if not self.is_maintainer:
                raise GitLabError(403, {"message": "403 Forbidden"})
            return paged(
                request,
                [self._hook.hook] if self._hook.hook.url else [],
                lambda hook: hook.as_json(place.project.id, self._clock()),
            )
        return call(place, request, **path)

    def place(self, name: str, request: Request) -> ProjectPlace | None:
        """Return a project by its path or number, None without one."""
        found = self._store.project(name)
        if found is None:
            return None
        return ProjectPlace(found[1], found[0], request.host_url.rstrip("/"), self._hook.send)


def error_response(error: GitLabError) -> Response:
    """Write an error as GitLab does: JSON, or a text."""
    if isinstance(error.body, str):
        return Response(error.body, error.status, error.headers, content_type="text/plain")
    return json_response(error.status, error.body, error.headers)
