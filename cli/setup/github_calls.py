"""The command's way to GitHub's REST API."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import httpx

from shared.github_app import TIMEOUT, Answer, GitHubRefused


def check_library() -> None:
    """Raise GitHubRefused where what signs as an App is not installed: before anything is created."""
    if find_spec("jwt") is None or find_spec("cryptography") is None:
        remedy = "install it: `uv tool install 'roadstead[setup]'`, or the same with pipx"
        raise GitHubRefused(f"To sign as an App needs the library PyJWT; {remedy}.")


def send(method: str, url: str, headers: Mapping[str, str], body: Mapping[str, Any] | None) -> Answer:
    """Send a request; raise GitHubRefused where there is no answer."""
    try:
        answer = httpx.request(method, url, headers=dict(headers), json=body, timeout=TIMEOUT)
    except httpx.HTTPError as error:
        raise GitHubRefused(f"GitHub does not answer at GITHUB_API_URL: {type(error).__name__}") from None
    try:
        return Answer(answer.status_code, answer.json())
    except ValueError:
        return Answer(answer.status_code, None)
