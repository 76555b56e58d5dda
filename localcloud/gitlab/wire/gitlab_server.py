"""The local GitLab: REST, git over HTTP and webhooks, on real bare repositories.

Besides GitLab's own paths: ``GET /_local/deliveries``, ``PUT /_local/webhooks`` with {"drop": n} to lose
the next n deliveries, or with "url", "token" and "signing_token" to change the receiver, and ``POST
/_local/reviews`` with {"project", "number", "login", "event"} to let somebody APPROVE, or REQUEST_CHANGES.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

from werkzeug.wrappers import Request, Response

from localcloud.common.clock import system_clock
from localcloud.common.http_server import json_response
from localcloud.common.local_service import LocalService
from localcloud.git.wire.git_http import GitRefused, OneToken, ReceivedPush, SmartHttp
from localcloud.git.world.git_commands import GitError
from localcloud.git.world.people import Teams
from localcloud.git.world.ref_changes import ZERO, RefChange, changes
from localcloud.gitlab.wire import api_merge_requests as merge_requests
from localcloud.gitlab.wire.gitlab_api import GitLabApi, error_response
from localcloud.gitlab.wire.gitlab_events import push_event
from localcloud.gitlab.wire.gitlab_json import GitLabError, ProjectPlace, not_found, read_object
from localcloud.gitlab.wire.gitlab_webhooks import Hook, ProjectHook
from localcloud.gitlab.wire.project_folder import ProjectStore
from localcloud.gitlab.world.project import Project
from shared.ports import Clock

MOST_BRANCHES = 3
"""A push that does the same to more branches has no webhook of it: ``push_event_hooks_limit``, in
app/services/git/process_ref_changes_service.rb of gitlab-org/gitlab."""
_GIT_PATH = re.compile(r"^/(.+?)(?:\.git)?/(info/refs|git-upload-pack|git-receive-pack)$")


class GitLabServer(LocalService):
    """Serves the bare repositories at ``root/group/project.git``. A context manager.

    ``hooks.hook``, ``credentials.token_expires``, ``api.scopes`` and ``api.throttle.limit`` may be set later.
    """

    def __init__(
        self,
        root: Path,
        *,
        port: int = 0,
        token: str,
        hook: Hook | None = None,
        log_file: Path | None = None,
        clock: Clock = system_clock,
    ) -> None:
        self._store = ProjectStore(root, clock)
        self.credentials = OneToken(token, clock)
        self.hooks = ProjectHook(hook or Hook(), "https://gitlab.example", clock)
        self.api = GitLabApi(self._store, self.credentials, self.hooks, clock)
        self._git = SmartHttp(self._store, self.credentials, self._pushed)
        super().__init__(self._answer, "gitlab", port=port, log_file=log_file, clock=clock)

    @property
    def groups(self) -> Teams:
        """The groups; their members may be changed."""
        return self.api.groups

    def clone_url(self, full_name: str) -> str:
        """Return the URL to clone, fetch and push a project, which is that of GIT_URL too."""
        return f"{self.url}/{full_name}.git"

    def create_repository(self, full_name: str, branch: str = "main") -> Project:
        """Make an empty project "group/subgroup/name", or return the one that is there."""
        self._store.create(full_name, branch)
        return self.repository(full_name)

    def repository(self, full_name: str) -> Project:
        """Return a project; raise KeyError when there is none."""
        found = self._store.project(full_name)
        if found is None:
            raise KeyError(full_name)
        return found[1]

    def close(self) -> None:
        """Stop serving and delivering."""
        super().close()
        self.hooks.close()
        self._store.close()

    def _answer(self, request: Request) -> Response:
        git_path = _GIT_PATH.match(request.path)
        try:
            if request.path.startswith("/_local/"):
                return self._control(request)
            if git_path and not request.path.startswith("/api/"):
                return self._git.answer(request, git_path[1], git_path[2])
            return self.api.answer(request)
        except GitLabError as error:
            return error_response(error)
        except GitRefused as error:
            text = f"HTTP {error.status}: {error.message}"
            return error_response(GitLabError(error.status, text, error.headers))
        except GitError as error:
            return error_response(GitLabError(500, {"message": str(error)}))

    def _control(self, request: Request) -> Response:
        if request.path == "/_local/deliveries" and request.method == "GET":
            return json_response(200, [delivery.as_json() for delivery in self.hooks.deliveries()])
        if request.path == "/_local/webhooks" and request.method == "PUT":
            wanted = read_object(request)
            self.hooks.drop(int(wanted.pop("drop", 0)))
            self.hooks.hook = replace(self.hooks.hook, **wanted)
            return json_response(200, {"url": self.hooks.hook.url})
        if request.path == "/_local/reviews" and request.method == "POST":
            wanted = read_object(request)
            name = str(wanted.get("project") or next(self._store.names(), ""))
            place = self.api.place(name, request)
            if place is None:
                raise not_found("Project")
            who, number = str(wanted.get("login")), int(wanted.get("number") or 0)
            return json_response(201, merge_requests.approve(place, who, number, str(wanted.get("event"))))
        return json_response(404, {"message": "no such control of the local GitLab"})

    def _pushed(self, push: ReceivedPush) -> None:
        place = ProjectPlace(self.repository(push.full_name), push.full_name, push.base, self.hooks.send)
        moved = [c for c in changes(push.before, push.after) if c.ref.startswith("refs/heads/")]
        of_action = Counter(map(_action, moved))
        for change in moved:
            if of_action[_action(change)] <= MOST_BRANCHES:
                self.hooks.send(merge_requests.PUSH, push_event(place, change, push.before))
            merge_requests.pushed(place, change)


def _action(change: RefChange) -> str:
    """Return what a push does to a branch, as GitLab counts it."""
    return "created" if change.before == ZERO else "removed" if change.after == ZERO else "pushed"
