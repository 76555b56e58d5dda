"""The local Azure DevOps: one organization, with bare repositories at ``root/project/name.git``.

Besides the service's own paths: ``GET /_local/deliveries``, ``POST /_local/deliveries/{number}/redeliver``,
``PUT /_local/webhooks`` with {"url", "username", "password", "headers"} of the service hooks, or {"drop": n}
to lose the next n. A person does ``POST /_local/pulls`` with {"head", "base", "title", "fork"},
``POST /_local/reviews`` with {"number", "login", "vote"}, ``POST /_local/merges`` with {"number", "squash"}.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from localcloud.azure_devops import devops_pulls as pulls
from localcloud.azure_devops import devops_repository as repositories
from localcloud.azure_devops.devops_json import (
    ORGANIZATION,
    DevOpsError,
    DevOpsPlace,
    JsonObject,
    identity_id,
)
from localcloud.azure_devops.service_hooks import ServiceHooks
from localcloud.common.clock import system_clock
from localcloud.common.http_server import json_response
from localcloud.common.local_service import LocalService
from localcloud.git.wire.git_http import GitRefused, ReceivedPush, SmartHttp
from localcloud.git.wire.repository_folder import RepositoryStore
from localcloud.git.world.git_commands import GitError, run_git
from localcloud.git.world.git_repository import GitRepository
from localcloud.git.world.people import OPERATOR, Teams
from localcloud.git.world.ref_changes import changes as ref_changes
from shared.cluster.failures.errors import ReconcileError
from shared.ports import Clock

_GIT = re.compile(rf"^/{ORGANIZATION}/([^/]+)/_git/([^/]+)/(info/refs|git-upload-pack|git-receive-pack)$")
_REPOSITORY = f"/{ORGANIZATION}/<project>/_apis/git/repositories/<name>"
_PULL = "/pullrequests/<int:number>"
_ROUTES: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("GET", "", repositories.repository),
    ("GET", "/commits/<sha>", repositories.commit),
    ("GET", "/commits/<sha>/statuses", repositories.statuses),
    ("POST", "/commits/<sha>/statuses", repositories.create_status),
    ("GET", "/pushes", repositories.pushes),
    ("GET", "/pullrequests", pulls.listed),
    ("POST", "/pullrequests", pulls.create),
    ("POST", "/pullrequestquery", pulls.query),
    ("GET", _PULL, pulls.one),
    ("PATCH", _PULL, pulls.change),
    ("GET", f"{_PULL}/threads", pulls.threads),
    ("POST", f"{_PULL}/threads", pulls.create_thread),
    ("PATCH", f"{_PULL}/threads/<int:thread>/comments/1", pulls.edit_comment),
    ("GET", f"{_PULL}/reviewers", pulls.reviewers),
    ("PUT", f"{_PULL}/reviewers/<reviewer>", pulls.vote),
    ("GET", f"{_PULL}/iterations", pulls.iterations),
    ("GET", f"{_PULL}/iterations/<int:iteration>/changes", pulls.changes),
    ("GET", f"{_PULL}/commits", pulls.commits),
    ("GET", f"{_PULL}/labels", pulls.labels),
    ("GET", f"{_PULL}/statuses", pulls.statuses),
    ("POST", f"{_PULL}/statuses", pulls.create_status),
)
_SENDING = (pulls.create, pulls.change, pulls.create_status)
_POLICIES = f"/{ORGANIZATION}/<project>/_apis/git/policy/configurations"
_MEMBERS = f"/{ORGANIZATION}/_apis/projects/<project>/teams/<team>/members"
_IDENTITIES = f"/{ORGANIZATION}/_apis/identities"
_CONNECTION = f"/{ORGANIZATION}/_apis/connectiondata"
_SUBSCRIPTIONS = f"/{ORGANIZATION}/_apis/hooks/subscriptions"
_OF_ORGANIZATION = (_MEMBERS, _IDENTITIES, _CONNECTION, _SUBSCRIPTIONS)
_MAP = Map(
    [
        *(Rule(f"{_REPOSITORY}{path}", methods=[method], endpoint=call) for method, path, call in _ROUTES),
        *(Rule(path, methods=["GET"], endpoint=path) for path in _OF_ORGANIZATION),
        Rule(_POLICIES, methods=["GET"], endpoint=repositories.policies),
    ]
)
"""The case of a path does not matter to Azure DevOps."""
_PREVIEW = (_CONNECTION,)
_REDELIVER = re.compile(r"^/_local/deliveries/(\d+)/redeliver$")


class _Repository(GitRepository):
    """A repository, in which a push completes no pull request."""

    def __init__(self, path: Path, *, clock: Clock = system_clock) -> None:
        super().__init__(path, clock=clock)
        self.pulls.merged_by_push = False


class DevOpsServer(LocalService):
    """Serves the organization. A context manager; ``accepts`` says whether a bearer token is one of ours."""

    def __init__(
        self,
        root: Path,
        *,
        accepts: Callable[[str], bool],
        port: int = 0,
        log_file: Path | None = None,
        clock: Clock = system_clock,
    ) -> None:
        self._accepts = accepts
        self._store = RepositoryStore(root, clock, _Repository)
        self._statuses: dict[str, dict[int, list[JsonObject]]] = {}
        self.teams, self.hooks = Teams(), ServiceHooks(clock)
        self._git = SmartHttp(self._store, self, self._pushed)
        super().__init__(self._answer, "azure-devops", port=port, log_file=log_file, clock=clock)

    @property
    def organization(self) -> str:
        """The address of the organization."""
        return f"{self.url}/{ORGANIZATION}"

    def clone_url(self, full_name: str) -> str:
        """Return the address of the repository "project/name"."""
        project, _, name = full_name.partition("/")
        return f"{self.organization}/{project}/_git/{name}"

    def create_repository(self, full_name: str, branch: str = "main") -> GitRepository:
        """Make an empty repository "project/name", or return the one that is there."""
        created = self._store.create(full_name, branch)
        run_git(created.path, "config", "core.logAllRefUpdates", "always")
        return created

    def close(self) -> None:
        """Stop serving and delivering."""
        super().close()
        self.hooks.close()
        self._store.close()

    def check_basic(self, authorization: str) -> None:
        """Let git pass with no credential at all, so that a person can clone and push, or with our token."""
        if authorization:
            self._check(authorization)

    def _check(self, authorization: str) -> None:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not self._accepts(token):
            raise GitRefused(401, "TF400813: The user '' is not authorized to access this resource.")

    def _answer(self, request: Request) -> Response:
        try:
            return self._answered(request)
        except GitRefused as error:
            return _refusal(DevOpsError(error.status, error.message, "UnauthorizedRequestException"))
        except DevOpsError as error:
            return _refusal(error)
        except HTTPException:
            return _refusal(DevOpsError(404, "The controller for path was not found.", "HttpException"))
        except (ReconcileError, GitError) as error:
            return _refusal(DevOpsError(500, str(error), "VssServiceException"))

    def _answered(self, request: Request) -> Response:
        if request.path.startswith("/_local/"):
            return self._control(request)
        git = _GIT.match(request.path)
        if git:
            return self._git.answer(request, f"{git[1]}/{git[2]}", git[3])
        self._check(request.headers.get("Authorization", ""))
        head, word, rest = request.path.partition("/_apis/")
        known = re.sub(r"/(pullRequests|connectionData)\b", lambda found: found[0].lower(), word + rest)
        call, found = _MAP.bind(request.host).match(head + known, request.method)
        _check_version(request, preview=call in _PREVIEW)
        reply = self._called(call, request, dict(found))
        return reply if isinstance(reply, Response) else json_response(200, reply)

    def _called(self, call: Any, request: Request, found: dict[str, Any]) -> Any:
        if call == _CONNECTION:
            return {"authenticatedUser": {"id": identity_id(OPERATOR.login)}}
        if call == _SUBSCRIPTIONS:
            return {"value": [self._subscription(name) for name in self._store.names() if self.hooks.url]}
        if call == _MEMBERS:
            return repositories.members(self.teams, request, **found)
        if call == _IDENTITIES:
            return repositories.identities(request)
        project, name = found.pop("project"), found.pop("name", "")
        if call is repositories.policies:
            wanted = request.args.get("repositoryId", "")
            names = (full for full in self._store.names() if full.startswith(f"{project}/"))
            name = next((n for n in names if self._place(n).id == wanted), "/").partition("/")[2]
        place = self._place(f"{project}/{name}")
        if call in _SENDING:
            call = partial(call, send=self.hooks.send)
        return call(place, request, **found)

    def _place(self, full_name: str) -> DevOpsPlace:
        found, (project, _, name) = self._store.find(full_name), full_name.partition("/")
        if found is None:
            raise DevOpsError(
                404,
                f"TF401019: The Git repository with name or identifier {name} does not exist or you do not "
                "have permissions for the operation you are attempting.",
                "GitRepositoryNotFoundException",
            )
        statuses = self._statuses.setdefault(full_name, {})
        return DevOpsPlace(found, self.organization, project, name, statuses)

    def _subscription(self, full_name: str) -> JsonObject:
        """Return the subscription of the pushes of a repository, as it is shown: without its password."""
        return {
            "eventType": "git.push",
            "status": self.hooks.status,
            "publisherInputs": {"repository": self._place(full_name).id},
            "consumerInputs": {"url": self.hooks.url, "basicAuthPassword": "********"},
        }

    def _pushed(self, push: ReceivedPush) -> None:
        for change in ref_changes(push.before, push.after):
            pulls.pushed(self._place(push.full_name), change, self.hooks.send)

    def _control(self, request: Request) -> Response:
        redeliver = _REDELIVER.match(request.path)
        if redeliver:
            return json_response(202 if self.hooks.redeliver(redeliver[1]) else 404, {})
        if request.path == "/_local/deliveries":
            return json_response(200, [delivery.as_json() for delivery in self.hooks.deliveries()])
        wanted: JsonObject = request.get_json()
        if request.path == "/_local/webhooks":
            self._subscribe(wanted)
            return json_response(200, {"url": self.hooks.url})
        place = self._place(str(wanted.get("repository") or next(self._store.names(), "")))
        if request.path == "/_local/pulls":
            return json_response(201, pulls.opened(place, wanted, self.hooks.send))
        number = int(wanted["number"])
        if request.path == "/_local/reviews":
            pulls.voted(place, number, str(wanted["login"]), int(wanted["vote"]))
            return json_response(201, {})
        if request.path == "/_local/merges":
            record, squash = place.repository.pulls.get(number), bool(wanted.get("squash"))
            sha = record.sha if record else ""
            return json_response(200, pulls.completed(place, number, sha, self.hooks.send, squash=squash))
        return json_response(404, {"message": "no such control of the local Azure DevOps"})

    def _subscribe(self, wanted: JsonObject) -> None:
        if "drop" in wanted:
            self.hooks.drop(int(wanted["drop"]))
            return
        self.hooks.url, self.hooks.headers = wanted.get("url"), wanted.get("headers") or {}
        name = wanted.get("username")
        self.hooks.sign_in = (str(name), str(wanted.get("password") or "")) if name is not None else None


def _check_version(request: Request, *, preview: bool) -> None:
    """Refuse a call without a version, and one that asks for a preview as if it were none."""
    version = request.args.get("api-version", "")
    if not version and request.method != "GET":
        message = f"No api-version was supplied for the {request.method} request."
        raise DevOpsError(400, message, "VssVersionNotSpecifiedException")
    if preview and not version.startswith("7.1-preview"):
        message = f"The requested version {version} of the resource is under preview."
        raise DevOpsError(400, message, "VssInvalidPreviewVersionException")
    if version and not version.startswith("7.1"):
        raise DevOpsError(
            400, "The requested REST API version is out of range.", "VssVersionOutOfRangeException"
        )


def _refusal(error: DevOpsError) -> Response:
    return json_response(error.status, error.body)
