"""The page at 127.0.0.1 from which a person registers the App, and to which GitHub returns with a code.

GitHub's answer counts only with the state of this run, compared in constant time, and once. The page itself
has an address that nobody can guess, and answers under its own host name alone: a page of somebody else that
resolves to 127.0.0.1 reads nothing here (DNS rebinding).
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from shared.github_app import form_address

POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
STYLE = "body{font:16px/1.5 system-ui;max-width:42rem;margin:4rem auto;padding:0 1rem}button{font:inherit}"


@dataclass(frozen=True)
class PageAnswer:
    """What the page says: a status, a title, and HTML; ``location`` for a redirect.

    ``last``: the code was exchanged, or refused. The command goes on once the person has this answer.
    """

    status: HTTPStatus
    title: str
    html: str = ""
    location: str = ""
    last: bool = False


class RegistrationPage:
    """Serves the form until it is closed; a context manager.

    ``manifest`` makes the manifest for the address to which GitHub returns, ``web`` is GitHub's address and
    ``owner`` whose repository it is. ``exchange`` takes the code, and returns where the person goes next; it
    raises ValueError with a sentence for a code that GitHub does not take.
    """

    def __init__(
        self,
        *,
        manifest: Callable[[str], Mapping[str, Any]],
        web: str,
        owner: str,
        exchange: Callable[[str], str],
        port: int = 0,
    ) -> None:
        self._state, self._path = secrets.token_urlsafe(32), f"/{secrets.token_urlsafe(16)}"
        self._web, self._owner, self._exchange = web, owner, exchange
        self._lock, self._used, self.ended = threading.Lock(), False, threading.Event()
        self.failure = ""
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True
        self._host = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"http://{self._host}{self._path}"
        self._manifest = json.dumps(manifest(f"http://{self._host}/created"))
        threading.Thread(target=self._server.serve_forever, daemon=True, name="registration").start()

    def __enter__(self) -> RegistrationPage:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, target: str, host: str) -> PageAnswer:
        """Return the answer to a GET of a path with its query, under a host name."""
        address = urlsplit(target)
        if host == self._host and address.path == self._path:
            return PageAnswer(HTTPStatus.OK, "Register the GitHub App of your fleet", self._forms())
        if host == self._host and address.path == "/created":
            return self._created({name: values[0] for name, values in parse_qs(address.query).items()})
        return PageAnswer(HTTPStatus.NOT_FOUND, "There is no such page")

    def _created(self, given: Mapping[str, str]) -> PageAnswer:
        if not hmac.compare_digest(given.get("state", "").encode(), self._state.encode()):
            text = (
                "This answer belongs to another run of the command. Open the page that the command printed."
            )
            return PageAnswer(HTTPStatus.FORBIDDEN, "Nothing was done", text)
        if not given.get("code"):
            return PageAnswer(HTTPStatus.BAD_REQUEST, "Nothing was done", "GitHub's answer has no code.")
        with self._lock:
            repeated, self._used = self._used, True
        if repeated:
            text = "This page was answered before. The terminal says how it went on."
            return PageAnswer(HTTPStatus.CONFLICT, "Nothing was done", text)
        try:
            following = self._exchange(given["code"])
        except ValueError as error:
            self.failure = str(error)
            text = escape(self.failure)
            return PageAnswer(HTTPStatus.BAD_GATEWAY, "The App was not taken over", text, last=True)
        return PageAnswer(HTTPStatus.SEE_OTHER, "Install the App", location=following, last=True)

    def _forms(self) -> str:
        """Return a form for each kind of owner; an App is installed on repositories of its owner alone."""
        organization = self._form(self._owner, f"{self._owner} is an organization: register its App")
        person = self._form("", f"{self._owner} is my own account: register my App")
        return (
            "<p>GitHub shows what the App may do, and asks for its name. Then you install it on the "
            f"repository of the fleet.</p>{organization}{person}"
        )

    def _form(self, owner: str, label: str) -> str:
        action = escape(form_address(self._web, owner, self._state))
        value = escape(self._manifest)
        return (
            f'<form action="{action}" method="post"><input type="hidden" name="manifest" value="{value}">'
            f'<p><button type="submit">{escape(label)}</button></p></form>'
        )

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        page = self

        class PageHandler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer = page.answer(self.path, self.headers.get("Host", ""))
                body = (
                    f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{answer.title}</title>'
                    f"<style>{STYLE}</style><h1>{answer.title}</h1>{answer.html}</html>"
                ).encode()
                self.send_response(answer.status)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Content-Security-Policy", POLICY)
                self.send_header("Cache-Control", "no-store")
                self.send_header("Referrer-Policy", "no-referrer")
                if answer.location:
                    self.send_header("Location", answer.location)
                self.end_headers()
                self.wfile.write(body)
                self.wfile.flush()
                if answer.last:
                    page.ended.set()

            def log_message(self, *_: object) -> None:
                """Write no log: a code is in the address."""

        return PageHandler
