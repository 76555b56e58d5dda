"""A deployed fleet on GitLab or Azure DevOps for ``roadstead setup``: what the command calls there, and the
app.

GitLab's project hooks are as docs.gitlab.com/api/project_webhooks has them: no answer has a secret, and one
that knows signing tokens says whether a hook has one
(gitlab.com/gitlab-org/gitlab/-/merge_requests/231325). The calls to Azure DevOps go through the Azure CLI's
stand-in; here is its header that names the directory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from werkzeug.wrappers import Request, Response

from localcloud.common.certificates import Authority
from localcloud.common.http_server import HttpServer
from localcloud.github.wire.github_server import GitHubServer
from shared.app.intake.webhook import DeliveryRefusal
from shared.configuration.settings import App
from tests.support.az_stand_in import TENANT
from tests.support.host_deliveries import HOSTS
from tests.support.set_up_fleet import LateClock, SetUpFleet, app_name

NAMES = ("git-webhook-secret", "git-webhook-secret-previous", "git-password")
SECRETS = dict.fromkeys(NAMES, "none yet: run roadstead setup")
PROJECT = "/api/v4/projects/example%2Ffleet"
MAINTAINER, DEVELOPER = "token-of-a-maintainer", "token-of-the-apps"


@dataclass
class SmallHost:
    """What the command calls at the host itself; ``signs`` is whether GitLab takes signing tokens."""

    signs: bool = True
    directory: str = TENANT
    called: str = "example/fleet"
    hooks: list[dict[str, Any]] = field(default_factory=list)
    secrets: dict[int, dict[str, str]] = field(default_factory=dict)
    tested: list[int] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)

    def __call__(self, environ: Any, start_response: Any) -> Any:
        """Answer a request."""
        request = Request(environ)
        return self.answer(request)(environ, start_response)

    def answer(self, request: Request) -> Response:
        """Return the answer of Azure DevOps to anybody, or of GitLab to somebody with a token."""
        if request.method == "HEAD":
            return Response(status=401, headers={"X-VSS-ResourceTenant": self.directory})
        token, path = request.headers.get("PRIVATE-TOKEN"), request.path
        self.listed.append(f"{request.method} {path}")
        if token not in (MAINTAINER, DEVELOPER):
            return Response(status=401)
        rest = path.removeprefix(PROJECT)
        if rest == path:
            return Response(status=404)
        if rest.startswith("/hooks") and token != MAINTAINER:
            return Response(status=403)
        project = {"path_with_namespace": self.called}
        made = self._hooks(request, rest) if rest.startswith("/hooks") else project
        return Response(json.dumps(made), content_type="application/json")

    def _hooks(self, request: Request, rest: str) -> Any:
        if request.method == "GET":
            return self.hooks
        if rest.endswith("/test/push_events"):
            self.tested.append(int(rest.split("/")[2]))
            return {"message": "201 Created"}
        given = dict(request.get_json())
        secrets = {name: given.pop(name) for name in ("token", "signing_token") if name in given}
        if request.method == "POST":
            hook: dict[str, Any] = {
                "id": len(self.hooks) + 1,
                "push_events": True,
                "merge_requests_events": False,
            }
            self.hooks.append(hook)
        else:
            (hook,) = (found for found in self.hooks if found["id"] == int(rest.split("/")[2]))
        number = int(hook["id"])
        self.secrets.setdefault(number, {}).update(secrets)
        hook.update({"alert_status": "executable", **given})
        if self.signs:
            hook["signing_token_present"] = "signing_token" in self.secrets[number]
        return hook


@contextmanager
def set_up_host(folder: Path, git_host: str, host: SmallHost) -> Iterator[SetUpFleet]:
    """Serve the host, and the webhook of the app as production reads it; deploy the fleet."""
    authority, holder = Authority(), list[SetUpFleet]()
    authority.write(folder / "ca.pem")

    @Request.application
    def webhook(request: Request) -> Response:
        running = holder[0].azure()["running"][app_name(App.CONTROL)]
        known = [running["GIT_WEBHOOK_SECRET"], running["GIT_WEBHOOK_SECRET_PREVIOUS"]]
        holder[0].on_webhook(known)
        body, place = request.get_data(), ("example/fleet", "main")
        reader = HOSTS[git_host].read
        read = reader(dict(request.headers), body, secrets=known, repository=place[0], branch=place[1])
        right = request.path == "/api/webhook"
        return Response(status=read.status if isinstance(read, DeliveryRefusal) else 200 if right else 404)

    with HttpServer(host) as served, HttpServer(webhook, tls=authority.server_context()) as app:
        path = "example/fleet.git" if git_host == "gitlab" else "contoso/example/_git/fleet"
        github = cast(GitHubServer, SimpleNamespace(url="https://api.github.com"))
        fleet = SetUpFleet(folder, github, app, LateClock())
        for settings in fleet.settings.values():
            settings |= {"GIT_HOST": git_host, "GIT_URL": f"{served.url}/{path}"}
        references = {
            name.upper().replace("-", "_"): f"@Microsoft.KeyVault(VaultName=kv;SecretName={name})"
            for name in SECRETS
        }
        fleet.settings[app_name(App.CONTROL)] |= references
        holder.append(fleet)
        fleet.deploy(secrets=list(SECRETS), secretValues=SECRETS)
        try:
            yield fleet
        finally:
            fleet.close()
