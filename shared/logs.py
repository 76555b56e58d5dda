"""Logging: client libraries log warnings only, and no line contains a secret."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

_CHATTY = (
    "azure",
    "azure.core.pipeline.policies.http_logging_policy",
    "urllib3",
    "uamqp",
    "github.Requester",
)


def configure(secrets: Iterable[str]) -> None:
    """Set the level of the client libraries, and mask ``secrets`` in every log record.

    A second call replaces the secrets of the first.
    """
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    hidden = maskable(secrets)
    logging.setLogRecordFactory(lambda *args, **kwargs: _masked(logging.LogRecord(*args, **kwargs), hidden))


def maskable(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return the secrets that are too long to be ordinary text, the longest first."""
    return tuple(sorted((s for s in set(secrets) if len(s) >= 6), key=len, reverse=True))


def mask(text: str, hidden: Iterable[str]) -> str:
    """Return the text with every secret replaced by ``***``."""
    for secret in hidden:
        text = text.replace(secret, "***")
    return text


def _masked(record: logging.LogRecord, hidden: tuple[str, ...]) -> logging.LogRecord:
    try:
        text = record.getMessage()
    except (TypeError, ValueError):  # logging itself reports a wrong format string
        return record
    safe = mask(text, hidden)
    if safe != text:
        record.msg, record.args = safe, ()
    if record.exc_info and record.exc_info[1] is not None:
        record.exc_text = mask(_formatted(record.exc_info), hidden)
    return record


def _formatted(exc_info: Any) -> str:
    return logging.Formatter().formatException(exc_info)
