"""The console as a browser has it, without a server: pages of an app, read and as what they show."""

from __future__ import annotations

from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import azure.functions as func
import pytest

from handlers import console
from handlers.act_route import ActCall, ActRoute, performed
from handlers.sign_in import KEY
from shared.app.api.audit import AuditedAct
from shared.app.http_result import HttpResult
from shared.frozen import replace
from shared.ports import Ports
from tests.support.function_calls import KEYS, functions


class Shown(HTMLParser):
    """Collects the elements, the attributes, the addresses and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.hidden: dict[str, str] = {}
        self.actions: list[str] = []
        self._text: list[str] = []
        self.feed(page)

    @property
    def text(self) -> str:
        """What a person reads, with single spaces."""
        return " ".join(" ".join(self._text).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect an element."""
        given = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.attributes |= set(given)
        self.links += [value for name, value in given.items() if name in ("href", "src", "action")]
        if tag == "input" and given.get("type") == "hidden":
            self.hidden[given["name"]] = given["value"]
        if tag == "form" and given.get("method") == "post":
            self.actions.append(given["action"])

    def handle_data(self, data: str) -> None:
        """Collect a text."""
        self._text.append(data)


def acts_without_effect(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let forms be decided as ever, and have no effect; return the acts that then would have been done."""
    acts: list[str] = []

    def without_effect(act: ActRoute, *given: Any) -> HttpResult:
        def effect(_: ActCall) -> HttpResult:
            acts.append(act.name)
            return HttpResult(202)

        audit = AuditedAct(act.name, "")
        return performed(replace(act, act=effect, audit=lambda _: audit, refusal=lambda _: None), *given)

    monkeypatch.setattr(console, "performed", without_effect)
    return acts


def asked(
    address: str,
    *,
    role: str = "Admin",
    form: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> func.HttpRequest:
    """Return a request with the key of a role, none for ""; a form is sent as by its page."""
    parts = urlsplit(address)
    key = next(key for key, own in KEYS.items() if own == role) if role else ""
    sent = {**({KEY: key} if key else {}), "sec-fetch-site": "same-origin", **(headers or {})}
    if form is not None:
        sent.setdefault("content-type", "application/x-www-form-urlencoded")
    return func.HttpRequest(
        "GET" if form is None else "POST",
        f"https://app.example{address}",
        headers=sent,
        params=dict(parse_qsl(parts.query)),
        route_params={"path": parts.path.strip("/")},
        body=urlencode(form or {}, doseq=True).encode(),
    )


def browse(ports: Ports, address: str, **options: Any) -> func.HttpResponse:
    """Return what the app answers to a request: see ``asked``."""
    reply: func.HttpResponse = functions(ports)["console"].get_user_function()(asked(address, **options))
    return reply


def shown(ports: Ports, address: str, *, role: str = "Admin") -> Shown:
    """Return what a page shows to the holder of the key of a role."""
    return Shown(browse(ports, address, role=role).get_body().decode())
