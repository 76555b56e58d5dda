"""The set-up of a fleet on GitLab: the token of its apps, and the webhook of its project.

Sources: docs.gitlab.com/api/project_webhooks, and docs.gitlab.com/user/project/integrations/webhooks: a
signing token is ``whsec_`` and the base64 of 32 bytes, and is never shown. A GitLab that has none yet does
not name it in its answers, or leaves it out without a word; then the webhook has the older secret token,
which is sent as it is.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlunsplit

import httpx

from cli.azure_deployment import Az
from cli.setup.azure_fleet import AzureFleet, refresh, write_secret
from cli.setup.host_webhook import (
    PASSWORD,
    Conversation,
    SetupFailed,
    address,
    give,
    place,
    problem_of,
)
from shared.configuration.setting_texts import git_place
from shared.standard_webhooks import PREFIX, signature, standard_webhooks_key

EVENTS = {"push_events": True, "merge_requests_events": True}
OFF = {"push_events": False}
"""Until the app has the secret; without a word, GitLab sends pushes."""
SIGNS = "signing_token_present"
DISABLED = ("disabled", "temporarily_disabled")
TIMEOUT = 20.0


@dataclass(frozen=True)
class GitLabProject:
    """A project by its address in the API, as somebody with a token sees it."""

    url: str
    name: str
    token: str

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Return what GitLab answers; raise SetupFailed with what a person does about a refusal."""
        headers = {"PRIVATE-TOKEN": self.token}
        try:
            answer = httpx.request(method, self.url + path, headers=headers, json=body, timeout=TIMEOUT)
        except httpx.HTTPError as error:
            raise SetupFailed(f"GitLab does not answer at {self.url}: {type(error).__name__}") from None
        if answer.status_code in (401, 403, 404):
            raise SetupFailed(
                f"GitLab answers {answer.status_code} for {self.name}: its token needs the scope api and, to "
                "create a webhook, the role Maintainer; gitUrl has the path of the project"
            )
        if not answer.is_success:
            raise SetupFailed(f"GitLab answers {answer.status_code} to {method} {path or '/'}")
        return answer.json()


def set_up(
    az: Az, fleet: AzureFleet, terminal: Conversation, maintainer: str, token: str, *, rotate: bool
) -> None:
    """Store the token of the apps if there is a new one, and create the webhook if there is none."""
    where = place(fleet, "gitlab")
    _, name = git_place(fleet.git_url)
    url = urlunsplit((where.scheme, where.netloc, f"/api/v4/projects/{quote(name, safe='')}", "", ""))
    project = GitLabProject(url, name, maintainer)
    found = project.call("GET", "")["path_with_namespace"]
    if found.lower() != name.lower():
        raise SetupFailed(f"the project is called {found} now: set gitUrl to its address, and deploy")
    if token:
        GitLabProject(url, name, token).call("GET", "/repository/branches?per_page=1")
        write_secret(az, fleet, PASSWORD, token, {})
        refresh(az, fleet, (PASSWORD,))
    hooks = [hook for hook in project.call("GET", "/hooks?per_page=100") if hook["url"] == address(fleet)]
    if hooks and not rotate and EVENTS.items() <= hooks[0].items():
        _enable(project, hooks[0], terminal)
        terminal.say(f"Done before: {name} has the webhook {address(fleet)}.")
        return
    hook = hooks[0] if hooks else project.call("POST", "/hooks", {"url": address(fleet), **OFF})
    secret = _given_to(az, fleet, project, hook)
    problem = _problem(fleet, terminal, secret)
    if problem:
        terminal.say(f"The vault has everything, but {problem}. See roadstead doctor.")
    signed = "signs" if secret.startswith(PREFIX) else "sends a secret token with"
    terminal.say(f"Done: GitLab {signed} the webhooks of {name}. Push a commit.")


def _given_to(az: Az, fleet: AzureFleet, project: GitLabProject, hook: dict[str, Any]) -> str:
    """Give the webhook a new secret, and return it: a signing token where GitLab takes one."""

    def change(field: str, secret: str) -> bool:
        body = {"url": hook["url"], "enable_ssl_verification": True, field: secret, **EVENTS}
        changed: dict[str, Any] = project.call("PUT", f"/hooks/{hook['id']}", body)
        return field == "token" or changed.get(SIGNS) is True

    token = secrets.token_urlsafe(32)
    if SIGNS in hook:
        key = PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
        signs: list[bool] = []
        give(az, fleet, key, lambda: signs.append(change("signing_token", key)))
        if signs[0]:
            return key
    give(az, fleet, token, lambda: change("token", token))
    return token


def _enable(project: GitLabProject, hook: dict[str, Any], terminal: Conversation) -> None:
    """Have GitLab test a webhook that it has disabled: one that is taken is enabled again."""
    if hook.get("alert_status") in DISABLED:
        terminal.say("GitLab has disabled the webhook: the app refused it, or did not answer. Testing it.")
        project.call("POST", f"/hooks/{hook['id']}/test/push_events")


def _problem(fleet: AzureFleet, terminal: Conversation, secret: str) -> str:
    """Send what GitLab sends for an event that needs no plan, until the app takes it."""
    body, seconds = json.dumps({"object_kind": "note"}).encode(), str(int(time.time()))
    headers = {"Content-Type": "application/json", "X-Gitlab-Event": "Note Hook", "webhook-id": "setup"}
    if secret.startswith(PREFIX):
        headers["webhook-timestamp"] = seconds
        headers["webhook-signature"] = signature("setup", seconds, body, standard_webhooks_key(secret))
    else:
        headers["X-Gitlab-Token"] = secret
    return problem_of(address(fleet), headers, body, terminal.pause)
