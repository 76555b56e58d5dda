"""The webhook of the local GitLab: signed deliveries, each one recorded.

Sources: docs.gitlab.com/user/project/integrations/webhooks: "Webhook timeout limits" (10 seconds),
"Delivery headers", "Signing tokens" (Standard Webhooks: ``webhook-signature`` over the id, the time and the
body), "Auto-disabled webhooks": after four failures, with no success between them, a webhook is
disabled for a minute, which doubles up to a day, and after forty for good.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import uuid
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from localcloud.git.wire.webhook_sender import WebhookDelivery, WebhookSender
from localcloud.gitlab.wire.gitlab_json import JsonObject, at_json
from shared.ports import Clock

TIMEOUT = 10.0
TEMPORARY, PERMANENT = 4, 40
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(minutes=1), timedelta(days=1)
PREFIX = "whsec_"


@dataclass(frozen=True)
class Hook:
    """A webhook; ``url`` None is none. ``signing_token`` begins with ``whsec_``."""

    url: str | None = None
    token: str = ""
    signing_token: str = ""
    failures: int = 0
    disabled_until: datetime | None = None

    def after(self, status: int, now: datetime) -> Hook:
        """Return the webhook after an answer, 0 for none."""
        if 200 <= status < 300:
            return replace(self, failures=0, disabled_until=None)
        failed = replace(self, failures=self.failures + 1)
        if failed.failures < TEMPORARY:
            return failed
        pause = min(_FIRST_PAUSE * 2 ** min(failed.failures - TEMPORARY, 20), _LONGEST_PAUSE)
        return replace(failed, disabled_until=now + pause)

    def status(self, now: datetime) -> str:
        """Return whether it delivers, in GitLab's words."""
        if self.failures >= PERMANENT:
            return "disabled"
        waits = self.disabled_until is not None and now < self.disabled_until
        return "temporarily_disabled" if waits else "executable"

    def as_json(self, project: int, now: datetime) -> JsonObject:
        """Write it as docs.gitlab.com/api/project_webhooks does; no secret is shown."""
        until = self.disabled_until if self.status(now) == "temporarily_disabled" else None
        return {
            "id": 1,
            "url": self.url,
            "project_id": project,
            "push_events": True,
            "merge_requests_events": True,
            "alert_status": self.status(now),
            "disabled_until": at_json(until) if until else None,
        }


class ProjectHook(WebhookSender):
    """Delivers the events of every project to one webhook, which may be changed."""

    def __init__(self, hook: Hook, instance: str, clock: Clock) -> None:
        super().__init__(clock, timeout=TIMEOUT)
        self.hook, self._instance = hook, instance

    def send(self, event: str, payload: JsonObject) -> None:
        """Start to deliver an event, unless the webhook is disabled."""
        now, hook = self._clock(), self.hook
        if hook.url is not None and hook.status(now) == "executable":
            body = json.dumps(payload, separators=(",", ":")).encode()
            self.start(event, hook.url, body, self._headers(hook, event, body, now))

    def ended(self, delivery: WebhookDelivery) -> None:
        """Count failures."""
        self.hook = self.hook.after(delivery.status or 0, self._clock())

    def _headers(self, hook: Hook, event: str, body: bytes, now: datetime) -> dict[str, str]:
        key, at = str(uuid.uuid4()), str(int(now.timestamp()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "GitLab/18.9.0-local",
            "Idempotency-Key": key,
            "X-Gitlab-Event": event,
            "X-Gitlab-Webhook-UUID": str(uuid.uuid4()),
            "X-Gitlab-Instance": self._instance,
            "X-Gitlab-Event-UUID": str(uuid.uuid4()),
        }
        headers |= {"X-Gitlab-Token": hook.token} if hook.token else {}
        if hook.signing_token:
            secret = base64.b64decode(hook.signing_token.removeprefix(PREFIX))
            signed = hmac.new(secret, f"{key}.{at}.".encode() + body, hashlib.sha256).digest()
            headers |= {"webhook-id": key, "webhook-timestamp": at}
            headers["webhook-signature"] = f"v1,{base64.b64encode(signed).decode()}"
        return headers
