"""The app's way to GitHub's REST API without a repository: an App that is being registered has none yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import requests

from shared.github_app import TIMEOUT, GitHubAnswer, GitHubRefused


def send(method: str, url: str, headers: Mapping[str, str], body: Mapping[str, Any] | None) -> GitHubAnswer:
    """Send a request, and follow no redirect; raise GitHubRefused where there is no answer."""
    try:
        answer = requests.request(
            method, url, headers=dict(headers), json=body, timeout=TIMEOUT, allow_redirects=False
        )
    except requests.RequestException as error:
        # Not chained: its text has the address, which has the code.
        raise GitHubRefused(f"GitHub does not answer at GITHUB_API_URL: {type(error).__name__}") from None
    try:
        return GitHubAnswer(answer.status_code, answer.json())
    except (ValueError, RecursionError):
        return GitHubAnswer(answer.status_code, None)
