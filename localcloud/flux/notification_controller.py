"""The notification-controller of the local Flux: it posts the events of the other controllers.

Sources: ``fluxcd/notification-controller`` (``docs/spec/v1beta3`` for which Alert takes an event, for the
limit of equal events and for the body, ``internal/notifier/forwarder.go`` and ``teams.go`` for the requests).
It knows Providers of the types ``generic-hmac`` and ``msteams``.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from localcloud.common.clock import in_seconds
from localcloud.kubernetes.world.kinds import BUILT_IN
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, Object

API = "notification.toolkit.fluxcd.io/v1beta3"
_SECRET = next(kind for kind in BUILT_IN if kind.kind == "Secret")
_INTERVAL = timedelta(minutes=5)
"""``--rate-limit-interval``: an equal event is not sent again before that."""

Post = Callable[[str, Mapping[str, str], bytes], None]
"""Sends a body with headers to an address; it returns at once, and an answer changes nothing."""


def nowhere(_url: str, _headers: Mapping[str, str], _body: bytes) -> None:
    """Send nothing."""


@dataclass(frozen=True)
class ControllerEvent:
    """What a controller says of one of its objects."""

    subject: Object
    severity: str
    reason: str
    message: str
    controller: str
    metadata: Mapping[str, str] = field(default_factory=dict)


class NotificationController:
    """Posts the events of one cluster to the Providers of the Alerts that take them."""

    def __init__(self, world: KubernetesWorld, post: Post, clock: Callable[[], datetime]) -> None:
        self._world, self._post, self._clock = world, post, clock
        self._waiting: list[tuple[ControllerEvent, datetime]] = []
        self._sent: dict[tuple[Any, ...], datetime] = {}

    def take(self, event: ControllerEvent) -> None:
        """Take an event that a controller sends; a controller that does not run loses it."""
        self._waiting.append((event, self._clock()))

    def reconcile(self, *, runs: bool) -> None:
        """Post what was taken, if the controller runs."""
        waiting, self._waiting = self._waiting, []
        alerts, providers = self._world.kind(API, "Alert"), self._world.kind(API, "Provider")
        if not runs or not waiting or alerts is None or providers is None:
            return
        for event, at in waiting:
            if self._is_repeated(event, at):
                continue
            for alert in self._world.list(alerts)[0]:
                if _takes(alert, event):
                    place = alert["metadata"]["namespace"]
                    provider = self._world.find(At(providers, alert["spec"]["providerRef"]["name"], place))
                    if provider is not None and not provider["spec"].get("suspend"):
                        self._send(event, at, provider)

    def _is_repeated(self, event: ControllerEvent, at: datetime) -> bool:
        metadata = event.subject["metadata"]
        place = (event.subject["kind"], metadata["namespace"], metadata["name"])
        key = (*place, event.message, tuple(sorted(event.metadata.items())))
        before = self._sent.get(key)
        if before is not None and at - before < _INTERVAL:
            return True
        self._sent = {sent: when for sent, when in self._sent.items() if at - when < _INTERVAL} | {key: at}
        return False

    def _send(self, event: ControllerEvent, at: datetime, provider: Object) -> None:
        spec, namespace = provider["spec"], provider["metadata"]["namespace"]
        secret = self._world.find(At(_SECRET, (spec.get("secretRef") or {}).get("name", ""), namespace))
        data = (secret or {}).get("data") or {}
        token, address = (base64.b64decode(data.get(key, "")) for key in ("token", "address"))
        url = address.decode() or spec.get("address", "")
        if spec["type"] == "msteams" and url:
            self._post(url, {"Content-Type": "application/json"}, json.dumps(card(event)).encode())
        if spec["type"] != "generic-hmac" or not token:
            return
        body = json.dumps(_body(event, at)).encode()
        signature = hmac.new(token, body, hashlib.sha256).hexdigest()
        headers = {
            "Content-Type": "application/json",
            "gotk-component": event.controller,
            "X-Signature": f"sha256={signature}",
        }
        self._post(url, headers, body)


def _takes(alert: Object, event: ControllerEvent) -> bool:
    """Return whether an Alert takes an event: by severity, kind and name, in its own namespace."""
    spec, metadata = alert["spec"], event.subject["metadata"]
    if spec.get("suspend") or (spec.get("eventSeverity", "info") == "error" and event.severity != "error"):
        return False
    return any(
        source["kind"] == event.subject["kind"]
        and source["name"] in ("*", metadata["name"])
        and source.get("namespace", alert["metadata"]["namespace"]) == metadata["namespace"]
        for source in spec["eventSources"]
    )


def card(event: ControllerEvent) -> dict[str, Any]:
    """Return the message to Teams of an event."""
    subject, metadata = event.subject, event.subject["metadata"]
    title = f"{subject['kind'].lower()}/{metadata['name']}.{metadata['namespace']}"
    text = {"type": "TextBlock", "text": event.message, "wrap": True}
    facts = [{"title": name, "value": value} for name, value in sorted(event.metadata.items())]
    items = [
        {"type": "TextBlock", "text": title, "size": "large", "weight": "bolder", "wrap": True},
        text | ({"color": "attention"} if event.severity == "error" else {}),
        {"type": "FactSet", "facts": facts},
    ]
    content = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": [{"type": "Container", "items": items}],
    }
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "content": content}]}


def _body(event: ControllerEvent, at: datetime) -> dict[str, Any]:
    subject, metadata = event.subject, event.subject["metadata"]
    return {
        "involvedObject": {
            "apiVersion": subject["apiVersion"],
            "kind": subject["kind"],
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
        },
        "metadata": dict(event.metadata),
        "severity": event.severity,
        "reason": event.reason,
        "message": event.message,
        "reportingController": event.controller,
        "reportingInstance": f"{event.controller}-0",
        "timestamp": in_seconds(at),
    }
