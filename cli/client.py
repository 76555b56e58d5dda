"""The API, as the command sees it: one GET, and errors that say what to do."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

ATTEMPTS = 3
PAGE = 500
"""Clusters in one answer: as many as the API gives."""


class ApiError(Exception):
    """The API could not be asked, or said no; the message is for a person."""


class NotFound(ApiError):
    """The API knows no such thing."""


class Refused(ApiError):
    """The API understood, and does not do it as things are."""


class Api:
    """Speaks with a Roadstead app; ``key`` is its function key, "" where none is needed. Close after use."""

    def __init__(self, url: str, key: str = "") -> None:
        self._url = url.rstrip("/")
        headers = {"x-functions-key": key} if key else {}
        self._client = httpx.Client(headers=headers, timeout=httpx.Timeout(30, connect=5))

    def get(self, path: str) -> dict[str, Any]:
        """Return the JSON object at a path below ``/api/``; raise ApiError."""
        return self._call("GET", path)

    def whole(self, path: str, *lists: str) -> dict[str, Any]:
        """Return the JSON object at a path, with these lists of all its pages joined; raise ApiError.

        When another commit is planned meanwhile, the pages do not fit together and are read again.
        """
        for _ in range(ATTEMPTS):
            joined = view = self.get(f"{path}?limit={PAGE}")
            while view.get("next"):
                view = self.get(f"{path}?limit={PAGE}&after={quote(view['next'], safe='')}")
                if view.get("commit") != joined.get("commit"):
                    break
                joined |= {name: joined[name] + view[name] for name in lists}
            else:
                return {**joined, "next": None}
        raise ApiError(f"{self._url} plans one commit after the other; try again in a while")

    def post(self, path: str, body: Any, *, actor: str = "") -> dict[str, Any]:
        """Send a JSON object to a path below ``/api/`` and return the answer; raise ApiError.

        ``actor`` is percent-encoded: a header takes ASCII alone.
        """
        header = quote(actor, safe=" @", errors="replace")
        return self._call("POST", path, json=body, headers={"x-roadstead-actor": header})

    def _call(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        try:
            reply = self._client.request(method, f"{self._url}/api/{path}", **options)
        except httpx.InvalidURL as error:
            raise ApiError(
                f"{self._url} is not an address; set ROADSTEAD_URL, as https://app.example"
            ) from error
        except httpx.HTTPError as error:
            raise ApiError(
                f"no answer from {self._url} ({type(error).__name__}); "
                "is it running, and is ROADSTEAD_URL right?"
            ) from error
        if reply.status_code in (401, 403):
            raise ApiError(f"{self._url} refused us; set ROADSTEAD_KEY to a function key of the app")
        body = self._object(reply)
        if reply.status_code == 404:
            raise NotFound(str(body.get("error") or "not found"))
        if reply.status_code == 409:
            raise Refused(str(body.get("error") or "refused"))
        if not reply.is_success:
            raise ApiError(f"{self._url} answered {reply.status_code}: {str(body.get('error', ''))[:300]}")
        return body

    def _object(self, reply: httpx.Response) -> dict[str, Any]:
        try:
            body = reply.json()
        except ValueError:
            body = None
        if isinstance(body, dict):
            return body
        if reply.status_code == 404:
            raise ApiError(f"{self._url} is not a Roadstead app: it has no API")
        raise ApiError(f"{self._url} answered {reply.status_code} without JSON; is it a Roadstead app?")

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def __enter__(self) -> Api:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
