"""The set-up of a fleet's GitHub App: registered, installed, stored, and its secrets changed later.

What was done stays when a step fails. The key, the webhook secret and the ids go from GitHub into the vault;
no file and no command line has them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from typing import Any

import httpx

from cli.azure_deployment import Az
from cli.setup.azure_fleet import AzureFleet, read_secret, refresh, secret_tags, write_secret
from cli.setup.host_webhook import LOOK, Conversation, SetupFailed, problem_of
from cli.setup.registration_page import RegistrationPage
from shared.github_app import (
    APP_ID,
    INSTALLATION,
    KEY,
    OF_APP,
    SECOND_WEBHOOK,
    TAG,
    TAG_ID,
    TIMEOUT,
    WEBHOOK,
    AppCalls,
    Feature,
    GitHubAnswer,
    GitHubRefused,
    RegisteredApp,
    convert,
    manifest,
    web_address,
)


def check_library() -> None:
    """Raise GitHubRefused where what signs as an App is not installed: before anything is created."""
    if find_spec("jwt") is None or find_spec("cryptography") is None:
        remedy = "install it: `uv tool install 'roadstead[setup]'`, or the same with pipx"
        raise GitHubRefused(f"To sign as an App needs the library PyJWT; {remedy}.")


def send(method: str, url: str, headers: Mapping[str, str], body: Mapping[str, Any] | None) -> GitHubAnswer:
    """Send a request; raise GitHubRefused where there is no answer."""
    try:
        answer = httpx.request(method, url, headers=dict(headers), json=body, timeout=TIMEOUT)
    except httpx.HTTPError as error:
        raise GitHubRefused(f"GitHub does not answer at GITHUB_API_URL: {type(error).__name__}") from None
    try:
        return GitHubAnswer(answer.status_code, answer.json())
    except ValueError:
        return GitHubAnswer(answer.status_code, None)


WITHIN = 3600.0
"""Seconds from the form to the exchange of the code: GitHub's own limit."""


def register(
    az: Az,
    fleet: AzureFleet,
    terminal: Conversation,
    *,
    features: Collection[Feature],
    port: int = 0,
    replace: bool = False,
    within: float = WITHIN,
) -> None:
    """Register the App of a fleet, have a person install it, and give it to the apps."""
    _refuse_what_is_there(az, fleet, replace=replace)
    taken: list[RegisteredApp] = []

    def exchange(code: str) -> str:
        app = convert(send, fleet.api, code)
        taken.append(app)
        return app.installation_page

    def made(redirect: str) -> dict[str, object]:
        return manifest(fleet=fleet.name, app=fleet.address, redirect=redirect, features=features)

    owner = fleet.repository.partition("/")[0]
    web = web_address(fleet.api)
    with RegistrationPage(manifest=made, web=web, owner=owner, exchange=exchange, port=port) as page:
        terminal.say(f"Register the App in the browser, on the page that opens:\n  {page.url}")
        terminal.open(page.url)
        if not page.ended.wait(within):
            raise SetupFailed(
                f"nobody came back from GitHub within {within:.0f} seconds. Nothing was stored. If an "
                f"App was registered, delete it at {web}/settings/apps, and run the command again"
            )
        if page.failure:
            raise SetupFailed(page.failure)
        app = taken[0]
        terminal.say(f"GitHub registered the App {app.slug}.")
        tags = dict(app.tags)
        for name, value in app.secrets.items():
            write_secret(az, fleet, name, value, tags)
        calls = AppCalls(send, fleet.api, app.id, app.key)
        _install(az, fleet, terminal, calls, tags, page=app.installation_page, within=within)
    refresh(az, fleet, OF_APP)
    problem = _webhook_problem(fleet, terminal, app.webhook_secret)
    if problem:
        terminal.say(f"The vault has everything, but {problem}. See roadstead doctor.")
    terminal.say(f"Done: {fleet.repository} has the App {app.slug}. Push a commit.")


def _refuse_what_is_there(az: Az, fleet: AzureFleet, *, replace: bool) -> None:
    missing = [name for name in OF_APP if name not in fleet.references]
    if missing:
        raise SetupFailed(
            f"the app does not read {', '.join(missing)}: add them to secrets in the parameter file, as in "
            "infra/example.bicepparam, take github-token out, and deploy"
        )
    known = secret_tags(az, fleet, APP_ID).get(TAG)
    if known and not replace:
        raise SetupFailed(
            f"the fleet has the App {known} already. For a new key of it use --key-file, for a new webhook "
            "secret --rotate-webhook-secret, for another App --replace (then delete the former one on GitHub)"
        )


def _install(
    az: Az,
    fleet: AzureFleet,
    terminal: Conversation,
    calls: AppCalls,
    tags: dict[str, str],
    *,
    page: str = "",
    within: float = WITHIN,
) -> None:
    """Wait until the App is installed on the repository, and store the number of its installation."""
    end = time.monotonic() + within
    installation = calls.installation(fleet.repository)
    if not installation:
        where = page or "Settings, Developer settings, GitHub Apps, Install App"
        terminal.say(f"Install it on {fleet.repository} alone (Only select repositories):\n  {where}")
    while not installation:
        if time.monotonic() > end:
            raise SetupFailed(
                f"the App is not installed on {fleet.repository} yet. Its key is in the vault. Install it at "
                f"{page}, create a new key there, and run the command with --key-file"
            )
        terminal.pause(LOOK)
        installation = calls.installation(fleet.repository)
    write_secret(az, fleet, INSTALLATION, installation, tags)


def replace_key(az: Az, fleet: AzureFleet, terminal: Conversation, key: str) -> None:
    """Give the apps a new private key of their App, once GitHub takes it; install the App if it is not."""
    tags = _tags(az, fleet)
    calls = AppCalls(send, fleet.api, tags[TAG_ID], key)
    tags[TAG] = calls.slug()
    write_secret(az, fleet, KEY, key, tags)
    page = f"{web_address(fleet.api)}/settings/apps/{tags[TAG]}/installations"
    _install(az, fleet, terminal, calls, tags, page=page)
    refresh(az, fleet, (KEY, INSTALLATION))
    terminal.say(f"Done: the apps have the new key of {tags[TAG]}. Delete the former one on GitHub.")


def rotate_webhook_secret(az: Az, fleet: AzureFleet, terminal: Conversation, key: str = "") -> None:
    """Change the secret of webhooks: the app takes both until GitHub signs with the new one.

    The new one is accepted as the second before GitHub has it, and the former one until GitHub was changed.
    """
    if SECOND_WEBHOOK not in fleet.references:
        raise SetupFailed(
            f"the app does not read {SECOND_WEBHOOK}: add it to secrets in the parameter file, and deploy"
        )
    tags = _tags(az, fleet)
    calls = AppCalls(send, fleet.api, tags[TAG_ID], key or read_secret(az, fleet, KEY))
    slug, new = calls.slug(), secrets.token_urlsafe(32)
    write_secret(az, fleet, SECOND_WEBHOOK, new, tags)
    refresh(az, fleet, (SECOND_WEBHOOK,))
    problem = _webhook_problem(fleet, terminal, new)
    if problem:
        raise SetupFailed(f"GitHub signs as before, because {problem}. See roadstead doctor")
    calls.set_webhook_secret(new)
    write_secret(az, fleet, WEBHOOK, new, tags)
    refresh(az, fleet, (WEBHOOK,))
    terminal.say(f"Done: GitHub signs the webhooks of {slug} with a new secret. The former one is refused.")


def _tags(az: Az, fleet: AzureFleet) -> dict[str, str]:
    tags = secret_tags(az, fleet, APP_ID)
    if not tags.get(TAG_ID):
        raise SetupFailed("the fleet has no App that this command registered: run it without options first")
    return {TAG: tags.get(TAG, ""), TAG_ID: tags[TAG_ID]}


def _webhook_problem(fleet: AzureFleet, terminal: Conversation, secret: str) -> str:
    """Send a ping as GitHub does until the app takes its signature; return why it does not, "" if it does."""
    body = json.dumps({"zen": "Is the secret there?", "hook_id": 0}).encode()
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": "ping",
        "X-GitHub-Delivery": "setup",
        "X-Hub-Signature-256": f"sha256={signature}",
    }
    return problem_of(f"{fleet.address}/api/github", headers, body, terminal.pause)
