"""The webhook of the local GitLab: signed deliveries in the background, each one recorded.

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
import threading
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import httpx

from localcloud.common.plain_http import NO_TLS
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


@dataclass(frozen=True)
class HookAttempt:
    """One delivery; ``status`` 0 means that there was no answer, None that it was not sent, or not yet."""

    id: int
    event: str
    url: str
    body: bytes
    at: datetime
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int | None = None
    answer: str = ""

    def as_json(self) -> JsonObject:
        """Write it."""
        shown: dict[str, Any] = {"id": self.id, "event": self.event, "url": self.url, "status": self.status}
        return {
            **shown,
            "headers": dict(self.headers),
            "payload": json.loads(self.body),
            "answer": self.answer,
        }


class ProjectHook:
    """Delivers the events of every project to one webhook, which may be changed."""

    def __init__(self, hook: Hook, instance: str, clock: Clock) -> None:
        self.hook, self._instance, self._clock = hook, instance, clock
        self._lock, self._numbers, self._drop = threading.Lock(), count(1), 0
        self._attempts: dict[int, HookAttempt] = {}
        self._client = httpx.Client(timeout=TIMEOUT, trust_env=False, verify=NO_TLS, follow_redirects=False)
        self._pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="gitlab-webhook")

    def send(self, event: str, payload: JsonObject) -> None:
        """Start to deliver an event, unless the webhook is disabled; a lost one is remembered."""
        now = self._clock()
        with self._lock:
            hook = self.hook
            if hook.url is None or hook.status(now) != "executable":
                return
            lost = self._drop > 0
            self._drop -= lost
            body = json.dumps(payload, separators=(",", ":")).encode()
            headers = self._headers(hook, event, body, now)
            attempt = HookAttempt(next(self._numbers), event, hook.url, body, now, headers)
            self._attempts[attempt.id] = attempt
        if not lost:
            self._pool.submit(self._deliver, attempt)

    def drop(self, number: int) -> None:
        """Lose the next deliveries: they are remembered and never sent."""
        with self._lock:
            self._drop = number

    def attempts(self) -> Sequence[HookAttempt]:
        """Return every attempt so far, oldest first."""
        with self._lock:
            return list(self._attempts.values())

    def close(self) -> None:
        """Wait for the running deliveries, drop those that wait, and close the connections."""
        self._pool.shutdown(cancel_futures=True)
        self._client.close()

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

    def _deliver(self, attempt: HookAttempt) -> None:
        try:
            answer = self._client.post(attempt.url, content=attempt.body, headers=dict(attempt.headers))
            done = replace(attempt, status=answer.status_code, answer=answer.text[:1000])
        except httpx.HTTPError as error:
            done = replace(attempt, status=0, answer=type(error).__name__)
        with self._lock:
            self._attempts[attempt.id] = done
            self.hook = self.hook.after(done.status or 0, self._clock())
