"""Turns a received Service Bus message into what the Python worker gives to a function."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import azure.functions as func
from azure.functions.meta import Datum
from azure.functions.servicebus import ServiceBusMessageInConverter
from azure.servicebus import ServiceBusReceivedMessage


def decode_message(message: ServiceBusReceivedMessage) -> func.ServiceBusMessage:
    """Return the message with the trigger metadata of the real extension."""
    body = message.body
    raw = body if isinstance(body, bytes) else b"".join(body)
    return ServiceBusMessageInConverter.decode_single_message(
        Datum(raw, "bytes"), trigger_metadata=_metadata(message)
    )


def _metadata(message: ServiceBusReceivedMessage) -> Mapping[str, Datum]:
    properties = {_text(k): _text(v) for k, v in (message.application_properties or {}).items()}
    fields: dict[str, Any] = {
        "MessageId": message.message_id,
        "SessionId": message.session_id,
        "SequenceNumber": message.sequence_number,
        # The service counts earlier attempts, the extension this one as well.
        "DeliveryCount": (message.delivery_count or 0) + 1,
        "EnqueuedTimeUtc": message.enqueued_time_utc,
        "EnqueuedSequenceNumber": message.enqueued_sequence_number,
        "ExpiresAtUtc": message.expires_at_utc,
        "LockToken": str(message.lock_token or ""),
        "LockedUntil": message.locked_until_utc,
        "ContentType": message.content_type,
        "CorrelationId": message.correlation_id,
        "Subject": message.subject,
        "Label": message.subject,
        "To": message.to,
        "ReplyTo": message.reply_to,
        "ReplyToSessionId": message.reply_to_session_id,
        "PartitionKey": message.partition_key,
        "TimeToLive": message.time_to_live,
        "DeadLetterSource": message.dead_letter_source,
        "DeadLetterReason": message.dead_letter_reason,
        "DeadLetterErrorDescription": message.dead_letter_error_description,
        "ApplicationProperties": properties,
        "UserProperties": properties,
    }
    return {name: _datum(value) for name, value in fields.items() if value is not None}


def _datum(value: Any) -> Datum:
    match value:
        case str():
            return Datum(value, "string")
        case datetime():
            return Datum(value.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "string")
        case timedelta():
            return Datum(str(int(value.total_seconds())), "string")
        case bytes():
            return Datum(value.decode(), "string")
        case _:
            return Datum(json.dumps(value), "json")


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value
