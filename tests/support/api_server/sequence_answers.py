"""Sends the sequences of ``api_sequences`` to an API server, and returns what counts of its answers."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx

from tests.support.api_server.api_answers import Answer, create_namespace, described
from tests.support.api_server.sequences import steps
from tests.support.api_server.steps import Step

RECORDED = "api_sequences.json"
_KEPT = re.compile(r"\$([A-Z]+)")
_NUMBERS = re.compile(r"\d+ \(\d+\)")


def sequence_answers(
    client: httpx.Client, namespace: str, lose: Callable[[], None], *, patience: float
) -> dict[str, Answer]:
    """Create the namespace, send every step in order, and return the answers by the step's name.

    ``patience`` are the seconds that the controllers have for what a step waits for.
    """
    create_namespace(client, namespace)
    kept: dict[str, str] = {}
    found: dict[str, Answer] = {}
    for step in steps():
        assert step.name not in found, f"two steps are named {step.name}"
        if step.lose:
            lose()
        reply = _reply(client, step, namespace, kept, patience)
        content = reply.json() if reply.text.startswith("{") and "watch=true" not in step.path else {}
        kept.update({name: str(_at(content, path) or "") for name, path in step.keep.items()})
        found[step.name] = _answer(step, reply, content, namespace)
    return found


def _reply(
    client: httpx.Client, step: Step, namespace: str, kept: Mapping[str, str], patience: float
) -> httpx.Response:
    path = _KEPT.sub(
        lambda found: quote(kept[found[1]], safe=""), step.path.replace("/ns/", f"/{namespace}/")
    )
    body = step.body and _KEPT.sub(lambda found: kept[found[1]], json.dumps(step.body))
    headers = {"Content-Type": step.content} if body else {}
    deadline = time.monotonic() + patience
    while True:
        reply = client.request(step.method, path, content=body, headers=headers)
        if _is_reached(step, reply):
            return reply
        if time.monotonic() > deadline:
            return reply
        time.sleep(0.1)


def _is_reached(step: Step, reply: httpx.Response) -> bool:
    if step.until == "gone":
        return reply.status_code == 404
    if not step.until or not reply.is_success:
        return True
    metadata = reply.json()["metadata"]
    if step.until == "deleting":
        return "deletionTimestamp" in metadata
    if step.until == "collected":
        return not metadata.get("finalizers")
    return len(metadata.get("ownerReferences") or ()) == (1 if step.until == "single" else 0)


def _answer(step: Step, reply: httpx.Response, content: Mapping[str, Any], namespace: str) -> Answer:
    if "watch=true" in step.path and reply.is_success:
        lines = [json.loads(line) for line in reply.text.splitlines() if line.strip()]
        return {"code": reply.status_code, "events": [_event(line) for line in lines]}
    answer = described(reply, namespace)
    if "message" in answer:
        answer["message"] = _NUMBERS.sub("OLD (OLDEST)", answer["message"])
    metadata = content.get("metadata") or {}
    if "continue" in metadata:
        answer["continues"] = True
    if "items" in content:
        return {**answer, "names": [item["metadata"]["name"] for item in content["items"]]}
    about = _metadata(metadata)
    shown = {path: _at(content, path) for path in step.shown}
    return {**answer, **about, **({"shown": shown} if shown else {})}


def _metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a delete or the garbage collector changes."""
    owners = [owner["name"] for owner in metadata.get("ownerReferences") or ()]
    found = {
        "deleting": "deletionTimestamp" in metadata,
        "grace": metadata.get("deletionGracePeriodSeconds"),
        "finalizers": metadata.get("finalizers"),
        "owners": owners,
        "generation": metadata.get("generation"),
    }
    return {name: value for name, value in found.items() if value or (value == 0 and value is not False)}


def _event(line: Mapping[str, Any]) -> dict[str, Any]:
    value = line["object"]
    if line["type"] != "ERROR":
        return {"type": line["type"], "name": value["metadata"]["name"]}
    message = _NUMBERS.sub("OLD (OLDEST)", value["message"])
    return {"type": "ERROR", "code": value["code"], "reason": value["reason"], "message": message}


def _at(content: Any, path: str) -> Any:
    """Return what is at a path as "spec.ports.0", None when nothing is."""
    for part in path.split("."):
        content = content[int(part)] if isinstance(content, Sequence) else (content or {}).get(part)
    return content


def sequence_differences(found: Mapping[str, Answer], expected: Mapping[str, Answer]) -> list[str]:
    """Return what differs, a line for each step."""
    return [
        f"{step.name}: {found[step.name]} instead of {expected.get(step.name)}"
        for step in steps()
        if found[step.name] != expected.get(step.name)
    ]
