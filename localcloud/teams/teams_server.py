"""The local Teams: a workflow that a webhook request begins. The README has its rules and their sources."""

from __future__ import annotations

import hmac
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from werkzeug.wrappers import Request, Response

from localcloud.common.certificates import Authority
from localcloud.common.http_server import json_response
from localcloud.common.local_service import LocalService

MOST_BYTES = 28 * 1024
CARD = "application/vnd.microsoft.card.adaptive"


class TeamsServer(LocalService):
    """Serves the workflow at ``address``, whose port is taken, and writes each message to ``shown``.

    A context manager.
    """

    def __init__(self, address: str, authority: Authority, *, shown: Path, log_file: Path | None) -> None:
        parts = urlsplit(address)
        self._path, self._signature = parts.path, parse_qs(parts.query)["sig"][0]
        self._shown, self._lock = shown, threading.Lock()
        super().__init__(self._answer, "teams", authority=authority, port=parts.port or 0, log_file=log_file)

    def _answer(self, request: Request) -> Response:
        right = hmac.compare_digest(request.args.get("sig", "").encode(), self._signature.encode())
        if request.path != self._path or not right:
            return _refused(401, "DirectApiAuthorizationRequired", "the request has no valid signature")
        if request.method != "POST":
            return _refused(405, "MethodNotAllowed", "the workflow takes POST")
        body = request.get_data()
        if len(body) > MOST_BYTES:
            return _refused(413, "RequestEntityTooLarge", f"the message has more than {MOST_BYTES} bytes")
        try:
            lines = [line for card in _cards(json.loads(body)) for line in _texts(card)]
        except (ValueError, TypeError, KeyError, AttributeError):
            return _refused(400, "BadRequest", "the body is no message with adaptive cards")
        with self._lock, self._shown.open("a") as out:
            out.write("\n".join(lines) + "\n\n")
        return Response(status=202)


def _cards(message: Any) -> Iterator[Any]:
    """Yield the cards of a message; raise ValueError for what is none."""
    if message["type"] != "message" or not message["attachments"]:
        raise ValueError("no message")
    for attachment in message["attachments"]:
        card = attachment["content"]
        if attachment["contentType"] != CARD or card["type"] != "AdaptiveCard" or not card["body"]:
            raise ValueError("no adaptive card")
        yield card


def _texts(card: Any) -> Iterator[str]:
    """Yield the text of each block of a card, and its links."""
    readers: dict[str, Callable[[Any], str]] = {
        "RichTextBlock": lambda block: "".join(run["text"] for run in block["inlines"]),
        "TextBlock": lambda block: str(block["text"]),
    }
    for block in card["body"]:
        for inner in block["items"] if block["type"] == "Container" else (block,):
            if inner["type"] == "FactSet":
                yield from (f"{fact['title']}: {fact['value']}" for fact in inner["facts"])
            else:
                yield readers[inner["type"]](inner)
    for action in card.get("actions", ()):
        if action["type"] != "Action.OpenUrl":
            raise ValueError("another action")
        yield f"[{action['title']}] {action['url']}"


def _refused(status: int, code: str, message: str) -> Response:
    return json_response(status, {"error": {"code": code, "message": message}})
