"""A connection to the HTTP API: a call with its key or token, joined pages, and errors with their remedy."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar, cast
from urllib.parse import quote, urlencode

import httpx

from cli.errors import ApiError, NoAnswer, NotFound, RequestRefused

ATTEMPTS = 3
PAGE = 500
"""Clusters in one answer: the most that the API gives."""
CONNECT_SECONDS = 5.0
View = TypeVar("View")


class AppConnection:
    """Calls a Roadstead app with a key, or with a ``token`` for each call. Close after use.

    ``origin`` is where the key is from, or the scope of the token, for messages.
    """

    def __init__(
        self,
        url: str,
        key: str = "",
        *,
        token: Callable[[], str] | None = None,
        origin: str = "",
        timeout: float = 30,
    ) -> None:
        self.url, self._token = url.rstrip("/"), token
        self._given = "token" if token else "key" if key else ""
        self._origin = origin
        headers = {"x-functions-key": key} if key else {}
        limits = httpx.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS))
        try:
            self._client = httpx.Client(headers=headers, timeout=limits, verify=_trust(self.url))
        except (ImportError, ValueError, OSError, httpx.InvalidURL) as error:
            through = "no connection with the proxy or the certificates that the environment names"
            raise ApiError(f"{through}: {error}") from error

    def get(self, path: str) -> dict[str, Any]:
        """Return the JSON object at a path below ``/api/``; raise ApiError."""
        return self._call("GET", path)

    def whole(self, path: str, *lists: str, **filters: str) -> dict[str, Any]:
        """Return the JSON object at a path with these lists of all its pages joined; raise ApiError.

        When another commit is planned meanwhile, all pages are read again: those of two commits differ.
        """
        first = f"{path}?{urlencode(given(limit=str(PAGE), **filters))}"
        for _ in range(ATTEMPTS):
            joined = view = self.get(first)
            while view.get("next"):
                view = self.get(f"{first}&after={quote(view['next'], safe='')}")
                if view.get("commit") != joined.get("commit"):
                    break
                joined |= {name: joined.get(name, []) + view.get(name, []) for name in lists}
            else:
                return {**joined, "next": None}
        raise ApiError(f"{self.url} plans one commit after the other; try again later")

    def post(self, path: str, body: Any) -> dict[str, Any]:
        """Send a JSON object to a path below ``/api/`` and return the answer; raise ApiError."""
        return self._call("POST", path, json=body)

    def typed(self, kind: type[View], view: dict[str, Any]) -> View:
        """Return an answer as an object of the API; raise ApiError when it lacks fields."""
        missing = sorted(getattr(kind, "__required_keys__", frozenset()) - view.keys())
        if missing:
            fields = ", ".join(missing[:3])
            raise ApiError(f"{self.url} answered without {fields}; it has another version than this command")
        return cast(View, view)

    def _call(self, method: str, path: str, accepts: Sequence[int] = (), **options: Any) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token()}"} if self._token else {}
        try:
            reply = self._client.request(method, f"{self.url}/api/{path}", headers=headers, **options)
        except (httpx.InvalidURL, UnicodeError) as error:
            if isinstance(error, UnicodeEncodeError) and error.encoding != "idna":  # of what is sent
                raise
            raise ApiError(
                f"{self.url} is not an address; set ROADSTEAD_URL, for example to https://app.example"
            ) from error
        except httpx.UnsupportedProtocol as error:
            raise ApiError(
                f"{self.url} does not begin with http:// or https://; set ROADSTEAD_URL or --url to an "
                "address such as http://127.0.0.1:7071"
            ) from error
        except httpx.HTTPError as error:
            raise NoAnswer(
                f"no answer from {self.url} ({type(error).__name__}); "
                "is it running, and is ROADSTEAD_URL right?"
            ) from error
        if reply.status_code in (302, 401):
            raise ApiError(self._unknown(reply))
        body = self._object(reply)
        if reply.status_code == 403:
            raise ApiError(str(body.get("error") or "forbidden"))
        if reply.status_code == 404:
            raise NotFound(str(body.get("error") or "not found"))
        if reply.status_code == 409:
            raise RequestRefused(str(body.get("error") or "refused"))
        if not reply.is_success and not (reply.status_code in accepts and "error" not in body):
            failed = NoAnswer if _may_answer_soon(reply) else ApiError
            raise failed(f"{self.url} answered {reply.status_code}: {str(body.get('error', ''))[:300]}")
        return body

    def _unknown(self, reply: httpx.Response) -> str:
        """Return why the app does not know the caller, and what to do; never the key or the token."""
        try:
            reason = f": {reply.json()['error']}"
        except (ValueError, KeyError, TypeError):
            reason = ""
        given, origin = self._given, self._origin
        if given == "key":
            remedy = "give it a key of this app: one of its settings API_KEY_READER to API_KEY_ADMIN"
            return f"{self.url} refused the key from {origin}{reason}; {remedy}"
        if given == "token":
            remedy = "the scope must be the one of this app, and its sign-in must be on"
            return f"{self.url} refused the token for the scope from {origin}{reason}; {remedy}"
        remedy = "choose a context with a scope, or set ROADSTEAD_SCOPE or ROADSTEAD_KEY"
        return f"{self.url} does not know you{reason}; {remedy}"

    def _object(self, reply: httpx.Response) -> dict[str, Any]:
        try:
            body = reply.json()
        except ValueError:
            body = None
        if isinstance(body, dict):
            return body
        if reply.status_code == 404:
            raise ApiError(f"{self.url} is not a Roadstead app: it has no API")
        failed = NoAnswer if _may_answer_soon(reply) else ApiError
        raise failed(f"{self.url} answered {reply.status_code} without JSON; is it a Roadstead app?")

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _may_answer_soon(reply: httpx.Response) -> bool:
    return reply.is_server_error or reply.status_code == httpx.codes.TOO_MANY_REQUESTS


def _trust(url: str) -> ssl.SSLContext | bool:
    """Return nobody for an address without TLS: to read the certificates of all authorities takes 30 ms."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if url.startswith("http://") else True


def given(**parameters: str) -> dict[str, str]:
    """Return the parameters of a query that have a value."""
    return {name: value for name, value in parameters.items() if value}
