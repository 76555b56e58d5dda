"""The secret of a webhook of the git host: what it is called in the vault, changed, and seen to work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpx

from cli.azure_deployment import Az
from cli.setup.azure_fleet import AzureFleet, refresh, write_secret

WEBHOOK, SECOND_WEBHOOK = "git-webhook-secret", "git-webhook-secret-previous"
PASSWORD = "git-password"  # noqa: S105 - the name of a secret
LOOK = 3.0
"""Seconds until the app is asked again."""
TRIES = 40


class SetupFailed(Exception):
    """The set-up ended early; the message has what was done, and how to go on."""


@dataclass(frozen=True)
class Conversation:
    """How the command reaches a person: ``say`` prints, ``open`` opens a page in the browser."""

    say: Callable[[str], object]
    open: Callable[[str], object]
    pause: Callable[[float], object]


def place(fleet: AzureFleet, git_host: str) -> SplitResult:
    """Return the address of the fleet repository; raise SetupFailed for a fleet on another host."""
    if fleet.git_host != git_host or not fleet.git_url:
        raise SetupFailed(
            f"the fleet {fleet.name} is deployed with gitHost {fleet.git_host or 'github'}: set gitHost to "
            f"{git_host} and gitUrl to the address of the repository in the parameter file, and deploy"
        )
    missing = [name for name in (WEBHOOK, SECOND_WEBHOOK) if name not in fleet.references]
    if missing:
        raise SetupFailed(
            f"the app does not read {', '.join(missing)}: add them to secrets in the parameter file, deploy"
        )
    return urlsplit(fleet.git_url)


def address(fleet: AzureFleet) -> str:
    """Return where the git host sends its webhooks."""
    return f"{fleet.address}/api/webhook"


def give(az: Az, fleet: AzureFleet, secret: str, change: Callable[[], Any]) -> None:
    """Give the app a new secret, and the host while the app takes both; then the former one is refused."""
    write_secret(az, fleet, SECOND_WEBHOOK, secret, {})
    refresh(az, fleet, (SECOND_WEBHOOK,))
    change()
    write_secret(az, fleet, WEBHOOK, secret, {})
    refresh(az, fleet, (WEBHOOK,))


def problem_of(url: str, headers: Mapping[str, str], body: bytes, pause: Callable[[float], object]) -> str:
    """Send what is no event until the app takes its secret; return why it does not, "" if it does."""
    said = ""
    for attempt in range(TRIES):
        if attempt:
            pause(LOOK)
        try:
            answer = httpx.post(url, content=body, headers=dict(headers), timeout=20)
        except httpx.HTTPError as error:
            said = f"does not answer ({type(error).__name__})"
            continue
        if answer.status_code == 200:
            return ""
        said = f"answers {answer.status_code}"
    return f"{url} {said} to a webhook with the new secret"
