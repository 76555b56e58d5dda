"""The webhook of the local GitHub: signed deliveries in the background, each one recorded.

As at GitHub, a delivery has ten seconds, is never repeated automatically, and has the same GUID when it is
redelivered on request. Deliveries run in parallel, in no guaranteed order.
"""

from __future__ import annotations

import hmac
import json
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from typing import Any

import httpx

from localcloud.common.plain_http import NO_TLS
from shared.ports import Clock

TIMEOUT = 10.0
"""Seconds until GitHub gives up on a receiver."""

MAX_PAYLOAD = 25 << 20
"""Bytes; GitHub does not deliver an event that is larger."""


@dataclass(frozen=True)
class WebhookDelivery:
    """One attempt to deliver an event; ``status_code`` 0 means that there was no answer."""

    id: int
    guid: str
    event: str
    url: str
    body: bytes
    delivered_at: datetime
    redelivery: bool = False
    status: str = "pending"
    status_code: int = 0
    duration: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)
    response_headers: Mapping[str, str] = field(default_factory=dict)
    response_body: str = ""

    def as_listed(self) -> dict[str, Any]:
        """Write the delivery as GitHub's API lists it: docs.github.com/rest/apps/webhooks."""
        return {
            "id": self.id,
            "guid": self.guid,
            "delivered_at": self.delivered_at.isoformat(),
            "redelivery": self.redelivery,
            "duration": round(self.duration, 3),
            "status": self.status,
            "status_code": self.status_code,
            "event": self.event,
        }

    def as_json(self) -> dict[str, Any]:
        """Write the delivery as GitHub's API shows it alone."""
        return {
            **self.as_listed(),
            "url": self.url,
            "request": {"headers": dict(self.headers), "payload": json.loads(self.body)},
            "response": {"headers": dict(self.response_headers), "payload": self.response_body},
        }


class Webhooks:
    """Delivers events to ``url``, signed with ``secret``; both may be set. None delivers nothing."""

    def __init__(self, secret: str, url: str | None, clock: Clock) -> None:
        self.url = url
        self.secret, self._clock = secret, clock
        self._lock = threading.Lock()
        self._drop = 0
        self._numbers = count(1)
        self._deliveries: dict[int, WebhookDelivery] = {}
        self._client = httpx.Client(timeout=TIMEOUT, trust_env=False, verify=NO_TLS)
        self._pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="webhook")

    def send(self, event: str, payload: Mapping[str, Any]) -> None:
        """Start to deliver an event under a new GUID."""
        body = json.dumps(payload, separators=(",", ":")).encode()
        if self.url is not None and len(body) <= MAX_PAYLOAD:
            self._start(event, body, guid=str(uuid.uuid4()), url=self.url)

    def redeliver(self, name: str) -> WebhookDelivery | None:
        """Start to deliver again what has this number or GUID; return the new attempt, or None."""
        found = next((d for d in reversed(self.deliveries()) if name in (str(d.id), d.guid)), None)
        if found is None:
            return None
        return self._start(
            found.event, found.body, guid=found.guid, url=self.url or found.url, redelivery=True
        )

    def drop(self, number: int) -> None:
        """Lose the next deliveries: they are remembered as dropped, and never sent."""
        with self._lock:
            self._drop = number

    def deliveries(self) -> Sequence[WebhookDelivery]:
        """Return every attempt so far, oldest first."""
        with self._lock:
            return list(self._deliveries.values())

    def close(self) -> None:
        """Wait for the running deliveries, drop those that wait, and close the connections."""
        self._pool.shutdown(cancel_futures=True)
        self._client.close()

    def _start(
        self, event: str, body: bytes, *, guid: str, url: str, redelivery: bool = False
    ) -> WebhookDelivery:
        with self._lock:
            number, dropped = next(self._numbers), self._drop > 0
            self._drop -= dropped
            delivery = WebhookDelivery(
                number,
                guid,
                event,
                url,
                body,
                delivered_at=self._clock(),
                redelivery=redelivery,
                status="dropped" if dropped else "pending",
                headers=self._headers(event, guid, body),
            )
            self._deliveries[number] = delivery
        if not dropped:
            self._pool.submit(self._deliver, delivery)
        return delivery

    def _headers(self, event: str, guid: str, body: bytes) -> Mapping[str, str]:
        sha1, sha256 = (hmac.new(self.secret.encode(), body, kind).hexdigest() for kind in ("sha1", "sha256"))
        return {
            "Accept": "*/*",
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/local",
            "X-GitHub-Delivery": guid,
            "X-GitHub-Event": event,
            "X-GitHub-Hook-ID": "1",
            "X-GitHub-Hook-Installation-Target-Type": "repository",
            "X-Hub-Signature": f"sha1={sha1}",
            "X-Hub-Signature-256": f"sha256={sha256}",
        }

    def _deliver(self, delivery: WebhookDelivery) -> None:
        started = time.monotonic()
        try:
            answer = self._client.post(delivery.url, content=delivery.body, headers=dict(delivery.headers))
        except httpx.TimeoutException:
            done = replace(delivery, status="timed out")
        except httpx.HTTPError as error:
            done = replace(delivery, status=f"failed to connect to host: {type(error).__name__}")
        else:
            code = answer.status_code
            done = replace(
                delivery,
                status="OK" if answer.is_success else f"Invalid HTTP Response: {code}",
                status_code=code,
                response_headers=dict(answer.headers),
                response_body=answer.text,
            )
        with self._lock:
            self._deliveries[delivery.id] = replace(done, duration=time.monotonic() - started)
