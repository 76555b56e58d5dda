"""The routes of notifications: HTTPS for chats and webhooks, Apprise for e-mail and others."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import apprise
import requests
from urllib3.exceptions import HTTPError

from shared.cluster.failures.errors import (
    Dependency,
    ReconcileError,
    Unavailable,
    Unexpected,
    from_address,
)
from shared.cluster.failures.retry import retry_after
from shared.language.model.notification_kinds import RouteType, Severity
from shared.notifications.digest import OutgoingMessage, body_of
from shared.notifications.routes import Route
from shared.standard_webhooks import standard_webhooks_key

# One POST over HTTPS, to an address that is a secret: no error names more of it than the status.

CONNECT_SECONDS, READ_SECONDS = 5.0, 10.0
_REASON_BYTES = 100


def post(address: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
    """Send JSON; any answer of the 2xx is a success. Raise ReconcileError by the status.

    A redirect is not followed: it would lead the app to a host that nobody configured.
    """
    try:
        parts = urlsplit(address)
        usable = parts.scheme == "https" and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise Dependency("the address of the route is not an https:// URL")
    sent = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "roadstead", **(headers or {})}
    try:
        with requests.post(
            address,
            data=body,
            headers=sent,
            timeout=(CONNECT_SECONDS, READ_SECONDS),
            allow_redirects=False,
            stream=True,
        ) as response:
            if not 200 <= response.status_code < 300:
                raise _refused(response)
    except requests.RequestException as error:
        # Not chained: the library's text has the path of the address.
        raise Unavailable(f"the route does not answer: {type(error).__name__}") from None


def _refused(response: requests.Response) -> ReconcileError:
    status = response.status_code
    described = f"the route answers with the status {status}"
    reason = _reason(response)
    described += f": {reason}" if reason else ""
    described += "; a redirect is not followed" if 300 <= status < 400 else ""
    return from_address(status, described, retry_after=retry_after(dict(response.headers)))


def _reason(response: requests.Response) -> str:
    """Return a short code that the service gives as plain text, such as Slack's "no_service", or ""."""
    try:
        text = response.raw.read(_REASON_BYTES + 1, decode_content=True).decode(errors="replace")
    except (OSError, ValueError, HTTPError):
        return ""
    word = text.strip() if len(text) <= _REASON_BYTES else ""  # what is cut may end with a part of a secret
    return word if word.replace("_", "").isalnum() and word.isascii() else ""


# E-mail, and any other service that Apprise reaches, by an address of Apprise.
#
# The library answers with yes or no and logs the rest, in lines that may have a recipient. So its log is
# off, and an error here says no more than that the service did not take the message.

MAIL = ("mailto", "mailtos")

logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)


def notify(address: str, message: OutgoingMessage, *, only_mail: bool) -> None:
    """Send a message as plain text; raise Dependency for an address that is none, Unavailable or Unexpected.

    A redirect is not followed, whatever the address says about it. What a service of the library does not
    expect, such as a password of SMTP beyond ASCII, leaves it as any exception.
    """
    scheme = address.partition("://")[0].lower()
    if only_mail and scheme not in MAIL:
        raise Dependency("the address of the route does not begin with mailto:// or mailtos://")
    asset = apprise.AppriseAsset(async_mode=False, http_redirects=False)
    service = apprise.Apprise.instantiate(address, asset=asset, suppress_exceptions=True)
    if service is None:
        raise Dependency("the address of the route is none that Apprise knows")
    safe = _schemes(service.secure_protocol)
    if safe and scheme in _schemes(service.protocol) and scheme not in (*safe, *MAIL):
        raise Dependency(f"the address of the route sends plain text; the scheme with TLS is {safe[0]}://")
    service.redirects = False  # its "redirect=yes" would prevail over the asset
    service.notify_format = apprise.NotifyFormat.TEXT
    service.overflow_mode = apprise.OverflowMode.SPLIT
    try:
        sent = service.notify(title=message.title, body=message.text, body_format=apprise.NotifyFormat.TEXT)
    except Exception as error:  # noqa: BLE001 - a hundred services, each with a client of its own
        # Not chained: the library's text may have parts of the address.
        raise Unexpected(f"Apprise cannot deliver to the address: {type(error).__name__}") from None
    if not sent:
        raise Unavailable("the service did not take the message, or did not answer")


def _schemes(protocol: str | Sequence[str] | None) -> Sequence[str]:
    """Return the schemes of a service with or without TLS, as Apprise declares them."""
    return (protocol,) if isinstance(protocol, str) else protocol or ()


# The bodies that the services take. Pure.
#
# - Slack, incoming webhooks: docs.slack.dev/messaging/sending-messages-using-incoming-webhooks, and
# docs.slack.dev/messaging/formatting-message-text for what is escaped. - Teams, a workflow with "When a
# Teams webhook request is received": learn.microsoft.com/microsoftteams/platform/webhooks-and-
# connectors/how-to/connectors-using, and adaptivecards.io/explorer for the card. - Any other receiver: the
# Standard Webhooks specification (github.com/standard-webhooks/standard-webhooks).

MOST_LINKS = 4
_COLORS = {Severity.INFO: "good", Severity.WARNING: "warning", Severity.CRITICAL: "attention"}


def slack_body(message: OutgoingMessage) -> bytes:
    """Return the body for a Slack webhook; the text is shown as it is."""
    text = f"{message.title}\n\n{message.text}"
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(character, entity)
    return _json({"text": text, "mrkdwn": False})


def teams_body(message: OutgoingMessage) -> bytes:
    """Return the body for a workflow of Teams: an adaptive card with the text as it is, and links."""
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": [
            _text(message.title, weight="Bolder", color=_COLORS[message.severity]),
            *(_text(line) for line in message.text.split("\n") if line),
        ],
        "actions": [
            {"type": "Action.OpenUrl", "title": title, "url": link}
            for link, title in list(message.labelled_links.items())[:MOST_LINKS]
        ],
    }
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return _json({"type": "message", "attachments": [attachment]})


def _text(text: str, **style: str) -> Mapping[str, Any]:
    """Return a line of a card; a run of text, other than a TextBlock, is no Markdown."""
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **style}]}


def webhook_request(message: OutgoingMessage, secret: str, now: datetime) -> tuple[bytes, Mapping[str, str]]:
    """Return the signed body and its headers; raise Dependency for a secret that is no key."""
    body = _json(body_of(message))
    seconds = str(int(now.timestamp()))
    signed = f"{message.id}.{seconds}.".encode() + body
    digest = hmac.new(_key_of(secret), signed, hashlib.sha256).digest()
    return body, {
        "webhook-id": message.id,
        "webhook-timestamp": seconds,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def _key_of(secret: str) -> bytes:
    try:
        return standard_webhooks_key(secret)
    except ValueError as error:
        raise Dependency(f"the secret of the webhook {error}") from None


def _json(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


PREFIX = "NOTIFY_"
_UNRESOLVED = "@Microsoft.KeyVault("


class NotificationRoutes:
    """The ``Routes`` port; ``addresses`` are the settings that begin with NOTIFY_, without that.

    A manifest names one of them and nothing else: no other setting, and no host.
    """

    def __init__(self, addresses: Mapping[str, str], clock: Callable[[], datetime]) -> None:
        self._addresses = addresses
        self._clock = clock

    def send(self, route: Route, message: OutgoingMessage) -> None:
        """Deliver a message; raise ReconcileError, without the address."""
        address = self._setting(route.address)
        match route.type:
            case RouteType.SLACK:
                post(address, slack_body(message))
            case RouteType.TEAMS:
                post(address, teams_body(message))
            case RouteType.WEBHOOK:
                secret = self._setting(f"{route.address}_SECRET")
                body, headers = webhook_request(message, secret, self._clock())
                post(address, body, headers)
            case RouteType.EMAIL | RouteType.APPRISE:
                notify(address, message, only_mail=route.type is RouteType.EMAIL)
            case RouteType.ISSUES:
                raise Dependency("issues are written by the port of issues")

    def _setting(self, name: str) -> str:
        value = self._addresses.get(name, "")
        if not value:
            raise Dependency(f"the app has no setting {PREFIX}{name}")
        if value.startswith(_UNRESOLVED):
            raise Dependency(
                f"{PREFIX}{name}: the Key Vault reference is not resolved; check the app's rights"
            )
        return value
