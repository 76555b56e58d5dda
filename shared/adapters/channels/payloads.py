"""The bodies that the services take. Pure.

- Slack, incoming webhooks: docs.slack.dev/messaging/sending-messages-using-incoming-webhooks, and
  docs.slack.dev/messaging/formatting-message-text for what is escaped.
- Teams, a workflow with "When a Teams webhook request is received":
  learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using, and
  adaptivecards.io/explorer for the card.
- Any other receiver: the Standard Webhooks specification (github.com/standard-webhooks/standard-webhooks).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shared.jobs.failures.errors import Dependency
from shared.notices.digest import Outgoing, body_of
from shared.notices.kinds import Severity
from shared.setting_texts import standard_webhooks_key

MOST_LINKS = 4
_COLORS = {Severity.INFO: "good", Severity.WARNING: "warning", Severity.CRITICAL: "attention"}


def slack_body(message: Outgoing) -> bytes:
    """Return the body for a Slack webhook; the text is shown as it is."""
    text = f"{message.title}\n\n{message.text}"
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(character, entity)
    return _json({"text": text, "mrkdwn": False})


def teams_body(message: Outgoing) -> bytes:
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


def webhook_request(message: Outgoing, secret: str, now: datetime) -> tuple[bytes, Mapping[str, str]]:
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
