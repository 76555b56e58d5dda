"""What the webhooks of all hosts do: they deliver events in the background, and each attempt is recorded.

No delivery is repeated by itself. Deliveries run in parallel, in no guaranteed order.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import httpx

from localcloud.common.plain_http import NO_TLS
from shared.ports import Clock


@dataclass(frozen=True)
class WebhookDelivery:
    """One attempt to deliver an event, of ``guid``, which a redelivery has too.

    ``status`` is that of the answer, 0 where there was none for the ``problem``, and None before; one that is
    ``lost`` is never sent.
    """

    id: int
    guid: str
    event: str
    url: str
    body: bytes
    headers: Mapping[str, str]
    at: datetime
    redelivery: bool = False
    lost: bool = False
    status: int | None = None
    problem: str = ""
    answer: str = ""
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def is_pending(self) -> bool:
        """Whether it is still to come."""
        return self.status is None and not self.lost

    def as_json(self) -> dict[str, Any]:
        """Write it."""
        return {
            "id": self.id,
            "event": self.event,
            "url": self.url,
            "status": self.status,
            "headers": dict(self.headers),
            "payload": json.loads(self.body),
            "answer": self.answer,
        }


class WebhookSender:
    """Delivers events with so many seconds for an answer; ``drop`` loses some, as a network may."""

    def __init__(self, clock: Clock, *, timeout: float) -> None:
        self._clock, self._lock, self._drop = clock, threading.Lock(), 0
        self._deliveries: list[WebhookDelivery] = []
        self._client = httpx.Client(timeout=timeout, trust_env=False, verify=NO_TLS)
        self._pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="webhook")

    def drop(self, number: int) -> None:
        """Lose the next deliveries: they are remembered, and never sent."""
        with self._lock:
            self._drop = number

    def deliveries(self) -> Sequence[WebhookDelivery]:
        """Return every attempt so far, oldest first."""
        with self._lock:
            return list(self._deliveries)

    def close(self) -> None:
        """Wait for the running deliveries, drop those that wait, and close the connections."""
        self._pool.shutdown(cancel_futures=True)
        self._client.close()

    def found(self, name: str) -> WebhookDelivery | None:
        """Return the newest attempt with this number or GUID."""
        return next((d for d in reversed(self.deliveries()) if name in (str(d.id), d.guid)), None)

    def start(
        self,
        event: str,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        guid: str = "",
        redelivery: bool = False,
    ) -> WebhookDelivery:
        """Start an attempt, or lose it."""
        with self._lock:
            lost = self._drop > 0
            self._drop -= lost
            number, now = len(self._deliveries) + 1, self._clock()
            delivery = WebhookDelivery(number, guid, event, url, body, headers, now, redelivery, lost)
            self._deliveries.append(delivery)
        if not lost:
            self._pool.submit(self._deliver, delivery)
        return delivery

    def ended(self, delivery: WebhookDelivery) -> None:
        """Learn how an attempt ended."""

    def _deliver(self, delivery: WebhookDelivery) -> None:
        started = time.monotonic()
        try:
            answer = self._client.post(delivery.url, content=delivery.body, headers=dict(delivery.headers))
        except httpx.HTTPError as error:
            done = replace(delivery, status=0, problem=type(error).__name__)
        else:
            done = replace(
                delivery,
                status=answer.status_code,
                answer=answer.text,
                answer_headers=dict(answer.headers),
            )
        with self._lock:
            self._deliveries[delivery.id - 1] = replace(done, seconds=time.monotonic() - started)
            self.ended(done)
