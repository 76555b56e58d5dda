"""The local GitHub: REST, git over HTTP and the signed webhook, on real bare repositories.

Besides GitHub's own paths: ``GET /_local/deliveries``, ``POST /_local/deliveries/{id or GUID}/redeliver``,
``PUT /_local/webhooks`` with {"drop": n} to lose the next n deliveries or {"url": ...} to change the
receiver, and ``POST /_local/pulls`` with {"repository", "head", "base", "title", "fork"} to open a pull
request, "fork": true as from another repository, and ``POST /_local/reviews`` with {"repository", "number",
"login", "event", "body"} to review one as somebody,
and ``POST /_local/issues`` with {"repository", "login", "title", "body"} to open an issue as somebody, and
``PUT /_local/rules`` with {"repository", "autoMerge": true, "requiredChecks": [...]} for its branches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from werkzeug.wrappers import Request, Response

from localcloud.common.clock import system_clock
from localcloud.common.http_server import json_response
from localcloud.common.local_service import LocalService
from localcloud.git.wire.git_http import GitRefused, ReceivedPush, SmartHttp
from localcloud.git.wire.repository_folder import RepositoryStore
from localcloud.git.world.git_commands import GitError
from localcloud.git.world.git_repository import GitRepository
from localcloud.git.world.people import PEOPLE, Teams
from localcloud.git.world.ref_changes import changes
from localcloud.github.wire import rest_issues as issues
from localcloud.github.wire import rest_pulls as pulls
from localcloud.github.wire.app_registration import AppRegistrations
from localcloud.github.wire.github_auth import Credentials, GitHubApp, GitHubError, RateLimit
from localcloud.github.wire.github_json import OPERATOR, JsonObject, Place, read_object, repository_json
from localcloud.github.wire.push_events import push_event
from localcloud.github.wire.rest_api import RestApi, error_response
from localcloud.github.wire.rest_reviews import submitted
from localcloud.github.wire.webhooks import Webhooks, as_shown
from shared.ports import Clock

_GIT_PATH = re.compile(r"^/([^/]+/[^/]+?)(?:\.git)?/(info/refs|git-upload-pack|git-receive-pack)$")
"""The paths of the smart HTTP protocol; as on github.com, ``.git`` may be left out."""
_REDELIVER = re.compile(r"^/_local/deliveries/([^/]+)/redeliver$")


class GitHubServer(LocalService):
    """Serves the bare repositories at ``root/owner/name.git``. A context manager.

    ``webhook_url`` and ``credentials.token_expires`` may be set later; ``rate_limit.limit`` and the switches
    of ``repository(...)`` too.
    """

    def __init__(
        self,
        root: Path,
        *,
        port: int = 0,
        token: str,
        webhook_secret: str,
        webhook_url: str | None = None,
        log_file: Path | None = None,
        app: GitHubApp | None = None,
        clock: Clock = system_clock,
    ) -> None:
        self._clock = clock
        self.rate_limit = RateLimit(clock)
        self.hooks = Webhooks(webhook_secret, webhook_url, clock)
        self._store = RepositoryStore(root, clock)
        self.credentials = credentials = Credentials(token, app=app, clock=clock)
        self._rest = RestApi(self._store, credentials, self.rate_limit, self.hooks, clock)
        self._apps = AppRegistrations(self._store, credentials, self.hooks, clock)
        self._git = SmartHttp(self._store, credentials, self._pushed)
        super().__init__(self._answer, "github", port=port, log_file=log_file, clock=clock)

    @property
    def teams(self) -> Teams:
        """The teams of the organizations; their members may be changed."""
        return self._rest.teams

    @property
    def webhook_url(self) -> str | None:
        """Where events are delivered to; None: nowhere."""
        return self.hooks.url

    @webhook_url.setter
    def webhook_url(self, url: str | None) -> None:
        self.hooks.url = url

    def clone_url(self, full_name: str) -> str:
        """Return the URL to clone, fetch and push the repository "owner/name"."""
        return f"{self.url}/{full_name}.git"

    def create_repository(self, full_name: str, branch: str = "main") -> GitRepository:
        """Make an empty repository "owner/name", or return the one that is there."""
        return self._store.create(full_name, branch)

    def repository(self, full_name: str) -> GitRepository:
        """Return a repository with its statuses; raise KeyError when there is none."""
        found = self._store.find(full_name)
        if found is None:
            raise KeyError(full_name)
        return found

    def ping(self, full_name: str) -> None:
        """Deliver the event that GitHub sends when a webhook is set up."""
        place = self._place(full_name)
        hook = {
            "type": "Repository",
            "id": 1,
            "events": ["push", "pull_request", "pull_request_review", "issues"],
            "active": True,
        }
        body = {"zen": "Keep it logically awesome.", "hook_id": 1, "hook": hook}
        self.hooks.send("ping", {**body, "repository": repository_json(place), "sender": OPERATOR})

    def _place(self, full_name: str) -> Place:
        return Place(self.repository(full_name), full_name, self.url, OPERATOR, self.hooks.send)

    def close(self) -> None:
        """Stop serving and delivering."""
        super().close()
        self.hooks.close()
        self._store.close()

    def _answer(self, request: Request) -> Response:
        git_path = _GIT_PATH.match(request.path)
        if request.path.startswith("/_local/"):
            return self._control(request)
        if git_path is None:
            return self._registration(request) or self._rest.answer(request)
        try:
            return self._git.answer(request, git_path[1], git_path[2])
        except GitRefused as error:
            return error_response(GitHubError(error.status, error.message, headers=error.headers))
        except GitError as error:
            return error_response(GitHubError(500, str(error)))

    def _registration(self, request: Request) -> Response | None:
        try:
            return self._apps.answer(request)
        except GitHubError as error:
            return error_response(error)

    def _control(self, request: Request) -> Response:
        redeliver = _REDELIVER.match(request.path)
        if redeliver and request.method == "POST":
            delivery = self.hooks.redeliver(redeliver[1])
            if delivery is not None:
                return json_response(202, as_shown(delivery))
        if request.path == "/_local/deliveries" and request.method == "GET":
            return json_response(200, [as_shown(delivery) for delivery in self.hooks.deliveries()])
        if request.path == "/_local/webhooks" and request.method == "PUT":
            wanted = json.loads(request.get_data())
            if "drop" in wanted:
                self.hooks.drop(int(wanted["drop"]))
            self.hooks.url = wanted.get("url", self.hooks.url)
            return json_response(200, {"url": self.hooks.url})
        if request.path == "/_local/pulls" and request.method == "POST":
            return self._asked(request, pulls.opened)
        if request.path == "/_local/reviews" and request.method == "POST":
            return self._asked(request, _review)
        if request.path == "/_local/issues" and request.method == "POST":
            return self._asked(request, issues.opened)
        if request.path == "/_local/rules" and request.method == "PUT":
            return self._asked(request, _rule)
        return json_response(404, {"message": "no such control of the local GitHub"})

    def _asked(self, request: Request, act: Callable[[Place, JsonObject], JsonObject]) -> Response:
        try:
            wanted = read_object(request)
            name = str(wanted.get("repository") or next(self._store.names(), ""))
            return json_response(201, act(self._place(name), wanted))
        except KeyError:
            return error_response(GitHubError(404, "Not Found"))
        except GitHubError as error:
            return error_response(error)

    def _pushed(self, push: ReceivedPush) -> None:
        place = Place(push.repository, push.full_name, push.base, OPERATOR)
        for change in changes(push.before, push.after):
            self.hooks.send("push", push_event(place, change, push.before, self._clock()))
            pulls.pushed(self._place(place.full_name), change)


def _rule(place: Place, wanted: JsonObject) -> JsonObject:
    """Set whether auto-merge is allowed, and which checks the branches require."""
    place.repository.pulls.allows_auto_merge = wanted.get("autoMerge") is True
    place.repository.pulls.required_checks = tuple(map(str, wanted.get("requiredChecks") or ()))
    return wanted


def _review(place: Place, wanted: JsonObject) -> JsonObject:
    """Review a pull request as somebody; KeyError for an unknown person."""
    return submitted(place, int(wanted.get("number") or 0), PEOPLE[str(wanted.get("login"))], wanted)
