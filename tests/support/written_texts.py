"""Secrets of an app, what somebody writes to guess one, and what of it is shown."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import azure.functions as func
import pytest

from handlers.sign_in import KEY as KEY_HEADER
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.pull_requests.markdown import prose
from shared.configuration.load_settings import load_settings
from shared.masking import Masker
from shared.ports.masked import masked
from tests.support import fleet_files
from tests.support.function_calls import APPROVAL_KEYS, KEYS, functions
from tests.support.sample import sample

SECRETS = {
    "NOTIFY_OPS": "https://hooks.slack.com/services/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",
    "GITHUB_TOKEN": "ghp_q7W8e9R0t1Y2u3I4o5P6a7S8d9F0g1H2j3K4",
    "FLUX_GIT_PASSWORD": "github_pat_11ABCDEFG0q7W8e9R0t1Y2_u3I4o5P6a7S8d9F0g1H2j3K4l5Z6x7C8v9B0n1M2q3W4e",
    "APPROVAL_KEY_CHANGES": APPROVAL_KEYS["CHANGES"],
    "API_KEY_APPROVER": "correct-horse/battery+staple=7",
}
EXAMPLE: dict[str, str] = json.loads((Path(__file__).parents[2] / "local.settings.example.json").read_text())[
    "Values"
]
PLACEHOLDER = "(what they wrote)"
each_secret = pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS.keys())


def masker() -> Masker:
    return Masker(load_settings(EXAMPLE | SECRETS).secrets)


def guarded(cloud: MemoryCloud) -> MemoryCloud:
    """Return a cloud whose functions have the ports of the app."""
    mask = masker()
    cloud.with_ports(lambda ports: masked(ports, mask))
    return cloud


def guesses(secret: str, most: int = 6) -> list[str]:
    """Return at most so many pairs of texts: one begins, ends or continues a secret, the next does not."""
    found = []
    for size in (7, 8, 9, 12, 16, len(secret) // 2, len(secret) - 1):
        for right in (secret[:size], secret[-size:], secret[3 : 3 + size]):
            found.append((right, f"{right[:-1]}{'B' if right[-1] == 'A' else 'A'}"))
    pairs = [pair for pair in found if secret not in pair]
    return [guess for pair in sample(f"guesses of {secret}", pairs, most) for guess in pair]


def form(text: str, guess: str) -> str:
    """Return a text with what somebody wrote taken out."""
    for written in (guess, html.escape(guess), json.dumps(guess)[1:-1], prose(guess)):
        text = text.replace(written, PLACEHOLDER)
    return text


def assert_alike(shown: Sequence[str], written: Sequence[str]) -> None:
    """Assert that of each pair, a right guess and a wrong one, nothing is shown but what was written."""
    forms = [form(text, guess) for text, guess in zip(shown, written, strict=True)]
    assert forms[::2] == forms[1::2]
    assert any(PLACEHOLDER in text for text in forms), forms


def requested(
    cloud: MemoryCloud,
    function: str,
    route: Mapping[str, str],
    *,
    headers: Mapping[str, str],
    body: bytes = b"",
) -> func.HttpResponse:
    """Call a function of the app with a request."""
    request = func.HttpRequest(
        "POST" if body else "GET", "/api", body=body, route_params=dict(route), headers=dict(headers)
    )
    reply: func.HttpResponse = functions(cloud.ports)[function].get_user_function()(request)
    return reply


def as_role(role: str) -> dict[str, str]:
    key = next(key for key, held in KEYS.items() if held == role)
    return {KEY_HEADER: key, "content-type": "application/json"}


def wrong_clusters(values: Mapping[str, str]) -> dict[str, bytes]:
    """Return manifests by name, each with a value in a place where only a network may be."""
    return {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(
            name, extra=f"  networkProfile: {{podCidr: {json.dumps(value)}}}\n"
        )
        for name, value in values.items()
    }
