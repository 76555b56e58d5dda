"""Service hooks of the local Azure DevOps: events to one address, each attempt recorded.

Source: learn.microsoft.com/azure/devops/service-hooks/events (the payloads of git.push and git.pullrequest.*,
resource version 1.0) and service-hooks/services/webhooks (basic authentication, further headers). Nothing is
signed. A delivery that fails is not repeated here, and no subscription is disabled.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping
from itertools import count

from localcloud.azure_devops.devops_json import DevOpsPlace, JsonObject, repository_json, time_text
from localcloud.git.wire.webhook_sender import WebhookSender
from shared.ports import Clock

SUBSCRIPTION = "1f8f7c5e-5d9c-4a63-9d6e-2f0d8f6a4b10"
TIMEOUT = 20.0
"""Chosen here: no page of Microsoft states it."""


class ServiceHooks(WebhookSender):
    """Delivers events to ``url`` with a basic authentication and ``headers``; all may be set."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock, timeout=TIMEOUT)
        self.url: str | None = None
        self.sign_in: tuple[str, str] | None = None
        self.status = "enabled"
        self.headers: Mapping[str, str] = {}
        self._numbers = count(1)

    def send(self, place: DevOpsPlace, kind: str, resource: JsonObject) -> None:
        """Start to deliver an event of a repository."""
        if self.url is not None:
            event = self._event(place, kind, resource, next(self._numbers))
            self.start(kind, self.url, json.dumps(event).encode(), self._headers())

    def redeliver(self, name: str) -> bool:
        """Deliver an event again, by the number of an attempt; False where there is none."""
        found = self.found(name)
        if found is not None:
            self.start(found.event, self.url or found.url, found.body, self._headers(), redelivery=True)
        return found is not None

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json; charset=utf-8", **self.headers}
        if self.sign_in is not None:
            name, password = self.sign_in
            coded = base64.b64encode(f"{name}:{password}".encode()).decode()
            headers["Authorization"] = f"Basic {coded}"
        return headers

    def _event(self, place: DevOpsPlace, kind: str, resource: JsonObject, number: int) -> JsonObject:
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
