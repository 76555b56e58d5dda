"""The webhook of the local GitHub: signed deliveries, each one recorded.

As at GitHub, a delivery has ten seconds, is never repeated automatically, and has the same GUID when it is
redelivered on request.
"""

from __future__ import annotations

import hmac
import json
import uuid
from collections.abc import Mapping
from typing import Any

from localcloud.git.wire.webhook_sender import WebhookDelivery, WebhookSender
from shared.ports import Clock

TIMEOUT = 10.0
"""Seconds until GitHub gives up on a receiver."""

MAX_PAYLOAD = 25 << 20
"""Bytes; GitHub does not deliver an event that is larger."""


class Webhooks(WebhookSender):
    """Delivers events to ``url``, signed with ``secret``; both may be set. None delivers nothing."""

    def __init__(self, secret: str, url: str | None, clock: Clock) -> None:
        super().__init__(clock, timeout=TIMEOUT)
        self.url, self.secret = url, secret

    def send(self, event: str, payload: Mapping[str, Any]) -> None:
        """Start to deliver an event under a new GUID."""
        body, guid = json.dumps(payload, separators=(",", ":")).encode(), str(uuid.uuid4())
        if self.url is not None and len(body) <= MAX_PAYLOAD:
            self.start(event, self.url, body, self._headers(event, guid, body), guid=guid)

    def redeliver(self, name: str) -> WebhookDelivery | None:
        """Start to deliver again what has this number or GUID; return the new attempt, or None."""
        found = self.found(name)
        if found is None:
            return None
        headers = self._headers(found.event, found.guid, found.body)
        url = self.url or found.url
        return self.start(found.event, url, found.body, headers, guid=found.guid, redelivery=True)

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


def as_listed(delivery: WebhookDelivery) -> dict[str, Any]:
    """Write a delivery as GitHub's API lists it: docs.github.com/rest/apps/webhooks."""
    return {
        "id": delivery.id,
        "guid": delivery.guid,
        "delivered_at": delivery.at.isoformat(),
        "redelivery": delivery.redelivery,
        "duration": round(delivery.seconds, 3),
        "status": _status(delivery),
        "status_code": delivery.status or 0,
        "event": delivery.event,
    }


def as_shown(delivery: WebhookDelivery) -> dict[str, Any]:
    """Write a delivery as GitHub's API shows it alone."""
    return {
        **as_listed(delivery),
        "url": delivery.url,
        "request": {"headers": dict(delivery.headers), "payload": json.loads(delivery.body)},
        "response": {"headers": dict(delivery.answer_headers), "payload": delivery.answer},
    }


def _status(delivery: WebhookDelivery) -> str:
    if delivery.status is None:
        return "dropped" if delivery.lost else "pending"
    if delivery.status == 0:
        timed_out = delivery.problem.endswith("Timeout")
        return "timed out" if timed_out else f"failed to connect to host: {delivery.problem}"
    return "OK" if 200 <= delivery.status < 300 else f"Invalid HTTP Response: {delivery.status}"
