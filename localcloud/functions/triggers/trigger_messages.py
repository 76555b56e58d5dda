"""Turns a received Service Bus message into what the host gives to a function through its Python worker.

The rules are those of public source code:

- ``ServiceBusTriggerBindingStrategy`` of the extension (Microsoft.Azure.WebJobs.Extensions.ServiceBus 5):
  which metadata there is. The reason of a dead letter is in the application properties and nowhere else.
- ``GrpcMessageConversionExtensions`` of the host (azure-functions-host 4): a string is sent as a string, null
  not at all, everything else as the JSON of Newtonsoft.Json.
- ``MessageToStringConverter`` of the extension and ``ApplyBindingData`` of the host: a trigger that does not
  ask for bytes gets a string, in which bytes that are not UTF-8 are lost. The top-level fields of a JSON
  string become metadata too, and win over the message's own.

The .NET objects among them (``MessageActions``, ``Client``, ``sys`` ...) are of no use to a Python function.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from azure.functions.meta import Datum
from azure.servicebus import ServiceBusReceivedMessage

from localcloud.functions.worker.function_index import Input

NEVER = "9999-12-31T23:59:59.9999999"
"""When a message without a time to live expires: DateTime.MaxValue."""


def input_of(message: ServiceBusReceivedMessage, *, binary: bool) -> Input:
    """Return what the host gives to a function; ``binary`` is whether its trigger asks for bytes."""
    body = message.body
    raw = body if isinstance(body, bytes) else b"".join(body)
    if binary:
        return Input(Datum(raw, "bytes"), _metadata(message))
    text = raw.decode(errors="replace")
    return Input(Datum(text, "string"), {**_metadata(message), **_json_fields(text)})


def _unzoned(at: datetime | None) -> str:
    """Return a DateTime of unspecified kind: without a zone, and without zeros at its end."""
    if at is None:
        return NEVER
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}".rstrip("0").rstrip(".")


def _properties(message: ServiceBusReceivedMessage) -> Mapping[str, Any]:
    return {_text(k): _text(v) for k, v in (message.application_properties or {}).items()}


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


METADATA: Mapping[str, Callable[[ServiceBusReceivedMessage], Any]] = {
    # The service counts earlier attempts, the extension this one as well.
    "DeliveryCount": lambda message: (message.delivery_count or 0) + 1,
    "DeadLetterSource": lambda message: message.dead_letter_source,
    "LockToken": lambda message: str(message.lock_token or ""),
    "ExpiresAtUtc": lambda message: _unzoned(message.expires_at_utc),
    "ExpiresAt": lambda message: _unzoned(message.expires_at_utc) + "+00:00",
    "EnqueuedTimeUtc": lambda message: _unzoned(message.enqueued_time_utc),
    "EnqueuedTime": lambda message: _unzoned(message.enqueued_time_utc) + "+00:00",
    "MessageId": lambda message: message.message_id,
    "ContentType": lambda message: message.content_type,
    "ReplyTo": lambda message: message.reply_to,
    "SequenceNumber": lambda message: message.sequence_number,
    "To": lambda message: message.to,
    "Subject": lambda message: message.subject,
    "Label": lambda message: message.subject,
    "CorrelationId": lambda message: message.correlation_id,
    "ApplicationProperties": _properties,
    "UserProperties": _properties,
    "SessionId": lambda message: message.session_id,
    "ReplyToSessionId": lambda message: message.reply_to_session_id,
    "PartitionKey": lambda message: message.partition_key,
}
"""The metadata of a message, in the extension's names; a value of None is not sent."""
_TIMES = frozenset({"ExpiresAtUtc", "ExpiresAt", "EnqueuedTimeUtc", "EnqueuedTime"})
"""Not strings for the host, so that they are sent as JSON."""


def _metadata(message: ServiceBusReceivedMessage) -> Mapping[str, Datum]:
    values = {name: read(message) for name, read in METADATA.items()}
    return {name: _datum(name, value) for name, value in values.items() if value is not None}


def _datum(name: str, value: Any) -> Datum:
    if isinstance(value, str) and name not in _TIMES:
        return Datum(value, "string")
    return Datum(json.dumps(value, default=str), "json")


def _json_fields(text: str) -> Mapping[str, Datum]:
    """Return the top-level fields of a JSON object that are no lists and not null."""
    try:
        fields = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(fields, dict):
        return {}
    return {name: _field(value) for name, value in fields.items() if not isinstance(value, list | None)}


def _field(value: Any) -> Datum:
    """Return a field's value as the host converts it: an object stays JSON, a scalar becomes a string."""
    return Datum(json.dumps(value), "json") if isinstance(value, dict) else Datum(str(value), "string")
