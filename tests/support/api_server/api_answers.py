"""Sends the requests of ``requests`` to an API server, and returns what counts of its answers."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import httpx
import yaml

from tests.support.api_server.objects import Call
from tests.support.api_server.requests import calls

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_VERSION = re.compile(r"record \(\d+\)")
_PATIENCE_SECONDS = 30.0
RECORDED = "api_server.json"

Answer = dict[str, Any]
"""``code``, ``warnings``; of a success its ``kind``; of a refusal ``reason``, ``message`` and ``fields``."""


def answers(client: httpx.Client, namespace: str) -> dict[str, Answer]:
    """Create the namespace, send every request in order, and return the answers by the request's name."""
    create_namespace(client, namespace)
    return {call.name: _answer(client, call, namespace) for call in calls()}


def create_namespace(client: httpx.Client, namespace: str) -> None:
    """Create a namespace with its service account, which a controller creates too, if one runs."""
    client.post("/api/v1/namespaces", json={"metadata": {"name": namespace}}).raise_for_status()
    account = {"metadata": {"name": "default"}}
    client.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", json=account)


def _answer(client: httpx.Client, call: Call, namespace: str) -> Answer:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        path = call.path.replace("/ns/", f"/{namespace}/")
        headers = {"Content-Type": call.content} if call.body is not None else {}
        found = client.request(call.method, path, content=call.data(), headers={**headers, **call.headers})
        if found.is_success or not call.wait or time.monotonic() > deadline:
            return described(found, namespace)
        time.sleep(0.1)


def described(found: httpx.Response, namespace: str) -> Answer:
    """Return what counts of an answer."""
    answer: Answer = {"code": found.status_code}
    warnings = [value.partition(" - ")[2] for value in found.headers.get_list("Warning")]
    if warnings:
        answer["warnings"] = warnings
    if found.is_success:
        return {**answer, "kind": _kind(found.text)}
    body: dict[str, Any] = json.loads(found.text) if found.text.startswith("{") else {"message": found.text}
    details = body.get("details") or {}
    fields = sorted({cause.get("field", "") for cause in details.get("causes") or ()})
    message = _plain(str(body.get("message", "")), namespace)
    return {
        **answer,
        "reason": body.get("reason", ""),
        "message": message,
        **({"fields": fields} if fields else {}),
    }


def _kind(text: str) -> str:
    """Return what an answer is: the kind of its object, or the type of the first event of a watch."""
    first = text.strip().splitlines()[0] if text.strip() else ""
    body = yaml.safe_load(first if first.startswith('{"type"') else text)
    return str(body["type"] if "object" in body else body.get("kind", "")) if isinstance(body, dict) else ""


def _plain(text: str, namespace: str) -> str:
    """Return a message without what differs from run to run."""
    return _VERSION.sub("record (VERSION)", _UID.sub("UID", text)).replace(namespace, "NAMESPACE")


def differences(found: dict[str, Answer], expected: dict[str, Answer]) -> list[str]:
    """Return what differs, a line for each request; the text of a message only where it must be equal."""
    return [
        f"{call.name}: {found[call.name]} instead of {expected[call.name]}"
        for call in calls()
        if _compared(call, found[call.name]) != _compared(call, expected[call.name])
    ]


def _compared(call: Call, answer: Answer) -> Answer:
    return answer if call.text else {name: answer.get(name) for name in ("code", "reason", "kind")}
