"""GitHub's REST API over the local repositories: the calls of the adapter, and related ones.

Answers carry GitHub's rate-limit headers, a request id and an ETag; a GET with the current ETag is answered
304 and not counted.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from localcloud.common.clock import in_seconds
from localcloud.common.http_server import json_response, matched
from localcloud.git.wire.repository_folder import RepositoryStore
from localcloud.git.world.git_commands import GitError
from localcloud.git.world.git_repository import GitRepository
from localcloud.git.world.people import Teams
from localcloud.github.wire import graphql
from localcloud.github.wire import rest_checks as checks
from localcloud.github.wire import rest_git as git
from localcloud.github.wire import rest_issues as issues
from localcloud.github.wire import rest_pulls as pulls
from localcloud.github.wire import rest_reads as reads
from localcloud.github.wire import rest_reviews as reviews
from localcloud.github.wire import rest_statuses as statuses
from localcloud.github.wire.archives import DOWNLOAD, Archives
from localcloud.github.wire.github_auth import Credentials, GitHubError, RateLimit
from localcloud.github.wire.github_json import APP_BOT, OPERATOR, Place
from localcloud.github.wire.webhooks import Webhooks, as_listed
from shared.cluster.failures.errors import ReconcileError
from shared.ports import Clock

Handler = Callable[..., Any]
"""Takes the place, the request and the variables of the path; returns JSON for a 200, or a Response."""

_APP = "/app"
_USER = "/user"
_MEMBERS = "/orgs/<owner>/teams/<slug>/members"
_INSTALLATION = "/app/installations/<int:installation>"
_DELIVERIES = "/app/hook/deliveries"
_TOKENS = "/app/installations/<int:installation>/access_tokens"
_LINK = "/tarball"

_ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "", reads.repository),
    ("GET", "/branches/<path:branch>", reads.branch),
    ("GET", "/git/ref/<path:ref>", reads.ref),
    ("GET", "/git/matching-refs/<path:ref>", reads.matching_refs),
    ("GET", "/rules/branches/<path:branch>", reads.branch_rules),
    ("GET", "/git/commits/<sha>", reads.git_commit),
    ("GET", "/git/trees/<path:tree>", reads.tree),
    ("GET", "/git/blobs/<sha>", reads.blob),
    ("POST", "/git/trees", git.create_tree),
    ("POST", "/git/commits", git.create_commit),
    ("POST", "/git/refs", git.create_ref),
    ("PATCH", "/git/refs/<path:ref>", git.update_ref),
    ("DELETE", "/git/refs/<path:ref>", git.delete_ref),
    ("GET", "/contents/", reads.contents),
    ("GET", "/contents/<path:path>", reads.contents),
    ("GET", "/compare/<path:basehead>", reads.compare),
    ("GET", "/commits", reads.commits),
    ("GET", "/commits/<path:ref>/statuses", statuses.listed),
    ("GET", "/commits/<path:ref>/status", statuses.combined),
    ("GET", "/commits/<path:ref>/pulls", reviews.of_commit),
    ("GET", "/commits/<path:ref>", reads.commit),
    ("POST", "/statuses/<sha>", statuses.create),
    ("GET", "/pulls", pulls.listed),
    ("POST", "/pulls", pulls.create),
    ("GET", "/pulls/<int:number>", pulls.one),
    ("PATCH", "/pulls/<int:number>", pulls.change),
    ("PUT", "/pulls/<int:number>/merge", reviews.merge),
    ("GET", "/pulls/<int:number>/files", reviews.files),
    ("GET", "/pulls/<int:number>/commits", reviews.commits),
    ("GET", "/pulls/<int:number>/reviews", reviews.listed),
    ("POST", "/pulls/<int:number>/reviews", reviews.create),
    ("PUT", "/pulls/<int:number>/reviews/<int:review>/dismissals", reviews.dismiss),
    ("GET", "/issues", issues.listed),
    ("POST", "/issues", issues.create),
    ("PATCH", "/issues/<int:number>", issues.change),
    ("POST", "/issues/<int:number>/labels", pulls.add_labels),
    ("GET", "/issues/<int:number>/comments", issues.comments),
    ("POST", "/issues/<int:number>/comments", issues.comment),
    ("PATCH", "/issues/comments/<int:number>", pulls.edit_comment),
    ("GET", "/commits/<path:ref>/check-runs", checks.listed),
    ("POST", "/check-runs", checks.create),
    ("PATCH", "/check-runs/<int:number>", checks.change),
    ("GET", "/check-runs/<int:number>/annotations", checks.annotated),
)
_WRITING_CONTENTS = (git.create_tree, git.create_commit, git.create_ref, git.update_ref, git.delete_ref)
"""Source: docs.github.com/rest/authentication/permissions-required-for-github-apps, Contents: write."""


def _rules() -> Iterator[Rule]:
    links = [("GET", path, _LINK) for path in (_LINK, f"{_LINK}/<path:ref>")]
    for method, path, call in (*_ROUTES, *links):
        yield Rule(f"/repos/<owner>/<name>{path}", methods=[method], endpoint=call)
    for path in (DOWNLOAD, _APP, _INSTALLATION, _DELIVERIES, _USER, _MEMBERS):
        yield Rule(path, methods=["GET"], endpoint=path)
    yield Rule(graphql.PATH, methods=["POST"], endpoint=graphql.PATH)
    yield Rule(_TOKENS, methods=["POST"], endpoint=_TOKENS)


_MAP = Map(list(_rules()))
"""The same for every server: to compile it takes longer than anything else at the start of one."""


class RestApi:
    """Answers REST calls, errors included."""

    def __init__(
        self,
        store: RepositoryStore,
        credentials: Credentials,
        limit: RateLimit,
        hooks: Webhooks,
        clock: Clock,
    ) -> None:
        self.teams = Teams()
        self._store, self._credentials, self._limit, self._hooks = store, credentials, limit, hooks
        self._archives = Archives(store, clock)

    def answer(self, request: Request) -> Response:
        """Answer one call."""
        try:
            reply = self._answer(request)
        except GitHubError as error:
            reply = error_response(error)
        except HTTPException:
            reply = error_response(GitHubError(404, "Not Found"))
        except (ReconcileError, GitError) as error:
            reply = error_response(GitHubError(500, str(error)))
        reply.headers.extend(self._limit.headers())
        reply.headers.extend(self._credentials.headers(request.headers.get("Authorization", "")))
        reply.headers["x-github-request-id"] = uuid.uuid4().hex[:16].upper()
        return reply

    def _answer(self, request: Request) -> Response:
        if not request.user_agent.string:
            raise GitHubError(403, "Request forbidden by administrative rules. A User-Agent is required.")
        call, path = matched(_MAP, request)
        if call == DOWNLOAD:
            return self._archives.download(request, **path)
        if call == _TOKENS:
            return self._issue(request, path["installation"])
        if call in (_APP, _INSTALLATION, _DELIVERIES):
            return self._of_app(request, str(call), path)
        as_app = self._credentials.check(request.headers.get("Authorization", ""))
        self._limit.take()
        if call == _USER:
            if as_app:
                raise GitHubError(403, "Resource not accessible by integration")
            return json_response(200, OPERATOR)
        if call == _MEMBERS:
            self._credentials.check_members(request.headers.get("Authorization", ""))
            return reviews.members(self.teams, request, f"{path['owner']}/{path['slug']}")
        if call == graphql.PATH:
            return graphql.answer(request, self._known)
        full_name = f"{path.pop('owner')}/{path.pop('name')}"
        repository = self._store.find(full_name)
        if repository is None:
            raise GitHubError(404, "Not Found")
        caller = APP_BOT if as_app else OPERATOR
        writes = as_app or self._credentials.token_writes
        place = Place(repository, full_name, request.host_url.rstrip("/"), caller, self._hooks.send, writes)
        if request.method != "GET" and not writes:
            raise GitHubError(403, "Resource not accessible by personal access token")
        if call in _WRITING_CONTENTS and as_app and not self._credentials.writes_contents:
            raise GitHubError(403, "Resource not accessible by integration")
        found = (self._archives.link if call == _LINK else call)(place, request, **path)
        reply = found if isinstance(found, Response) else json_response(200, found)
        if request.method == "GET":
            reply.add_etag(weak=True)
            reply.make_conditional(request.environ)
            if reply.status_code == 304:
                self._limit.give_back()
        return reply

    def _known(self, known: int | str) -> GitRepository | None:
        if isinstance(known, str):
            return self._store.find(known)
        found = (self._store.find(name) for name in self._store.names())
        return next((own for own in found if own is not None and own.id == known), None)

    def _of_app(self, request: Request, call: str, path: Mapping[str, Any]) -> Response:
        """Answer what an App may ask of itself."""
        app = self._credentials.check_app(request.headers.get("Authorization", ""))
        if call == _APP:
            return json_response(200, {"id": int(app.id), "slug": app.slug, "name": "Roadstead"})
        if call == _DELIVERIES:
            newest = [as_listed(delivery) for delivery in reversed(self._hooks.deliveries())]
            return json_response(200, newest[: int(request.args.get("per_page", "30"))])
        if path["installation"] != app.installation:
            raise GitHubError(404, "Not Found")
        body = {"id": app.installation, "app_id": int(app.id), "app_slug": app.slug}
        return json_response(200, {**body, "permissions": app.permissions})

    def _issue(self, request: Request, installation: int) -> Response:
        token, expires = self._credentials.issue(installation, request.headers.get("Authorization", ""))
        body = {
            "token": token,
            "expires_at": in_seconds(expires),
            "permissions": {
                "checks": "write",
                "contents": "write" if self._credentials.writes_contents else "read",
                "issues": "write",
                **({"members": "read"} if self._credentials.reads_members else {}),
                "metadata": "read",
                "pull_requests": "write",
                "statuses": "write",
            },
            "repository_selection": "all",
        }
        return json_response(201, body)


def error_response(error: GitHubError) -> Response:
    """Write an error as GitHub does."""
    body: dict[str, Any] = {"message": error.message}
    if error.errors:
        body["errors"] = list(error.errors)
    body |= {"documentation_url": "https://docs.github.com/rest", "status": str(error.status)}
    return json_response(error.status, body, error.headers)
