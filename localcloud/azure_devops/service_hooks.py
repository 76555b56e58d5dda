"""Service hooks of the local Azure DevOps: events to one address, each attempt recorded.

Source: learn.microsoft.com/azure/devops/service-hooks/events (the payloads of git.push and git.pullrequest.*,
resource version 1.0) and service-hooks/services/webhooks (basic authentication, further headers). Nothing is
signed. A delivery that fails is not repeated here, and no subscription is disabled.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from localcloud.azure_devops.devops_json import JsonObject, Place, repository_json, time_text
from localcloud.common.plain_http import NO_TLS
from shared.ports import Clock

SUBSCRIPTION = "1f8f7c5e-5d9c-4a63-9d6e-2f0d8f6a4b10"
TIMEOUT = 20.0
"""Chosen here: no page of Microsoft states it."""


class ServiceHooks:
    """Delivers events to ``url`` with a basic authentication and ``headers``; all may be set."""

    def __init__(self, clock: Clock) -> None:
        self.url: str | None = None
        self.sign_in: tuple[str, str] | None = None
        self.status = "enabled"
        self.headers: Mapping[str, str] = {}
        self._clock, self._lock, self._drop = clock, threading.Lock(), 0
        self._deliveries: list[JsonObject] = []
        self._client = httpx.Client(timeout=TIMEOUT, trust_env=False, verify=NO_TLS)
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="service-hook")

    def send(self, place: Place, kind: str, resource: JsonObject) -> None:
        """Start to deliver an event of a repository."""
        with self._lock:
            lost, self._drop = self._drop > 0, max(0, self._drop - 1)
            number = len(self._deliveries) + 1
            body = self._event(place, kind, resource, number)
            self._deliveries.append({"event": body, "status": 0, "dropped": lost})
        if self.url and not lost:
            self._pool.submit(self._deliver, self.url, body, number)

    def _event(self, place: Place, kind: str, resource: JsonObject, number: int) -> JsonObject:
        repository, text = repository_json(place), f"{kind} of {place.name}"
        said = {"text": text, "html": text, "markdown": text}
        return {
            "subscriptionId": SUBSCRIPTION,
            "notificationId": number,
            "id": str(uuid.uuid4()),
            "eventType": kind,
            "publisherId": "tfs",
            "message": said,
            "detailedMessage": said,
            "resource": {"repository": repository, **resource},
            "resourceVersion": "1.0",
            "resourceContainers": {"project": {"id": repository["project"]["id"]}},
            "createdDate": time_text(self._clock()),
        }

    def drop(self, number: int) -> None:
        """Lose the next deliveries."""
        with self._lock:
            self._drop = number

    def deliveries(self) -> Sequence[JsonObject]:
        """Return every delivery so far, oldest first: the event, and the status of the answer, 0 for none."""
        with self._lock:
            return list(self._deliveries)

    def redeliver(self, number: int) -> bool:
        """Deliver an event again, from 1; False where there is none."""
        found = self.deliveries()
        if not self.url or not 0 < number <= len(found):
            return False
        self._pool.submit(self._deliver, self.url, found[number - 1]["event"], number)
        return True

    def close(self) -> None:
        """Wait for the deliveries under way, and close the connections."""
        self._pool.shutdown(cancel_futures=True)
        self._client.close()

    def _deliver(self, url: str, event: Any, number: int) -> None:
        headers = {"Content-Type": "application/json; charset=utf-8", **self.headers}
        try:
            auth = httpx.BasicAuth(*self.sign_in) if self.sign_in else httpx.USE_CLIENT_DEFAULT
            answer = self._client.post(url, content=json.dumps(event).encode(), headers=headers, auth=auth)
            status = answer.status_code
        except httpx.HTTPError:
            status = 0
        with self._lock:
            self._deliveries[number - 1] = self._deliveries[number - 1] | {"status": status}
