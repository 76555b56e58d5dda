"""Logging: the client libraries are kept quiet, and no line ever shows one of our secrets."""

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
    """Quieten the client libraries and mask ``secrets`` wherever a log record would show them.

    A second call replaces the secrets of the first.
    """
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    hidden = maskable(secrets)
    logging.setLogRecordFactory(lambda *args, **kwargs: _masked(logging.LogRecord(*args, **kwargs), hidden))


def maskable(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return those secrets that are long enough to be told from ordinary text, the longest first."""
    return tuple(sorted((s for s in set(secrets) if len(s) >= 6), key=len, reverse=True))


def mask(text: str, hidden: Iterable[str]) -> str:
    """Return the text with every secret replaced by ``***``."""
    for secret in hidden:
        text = text.replace(secret, "***")
    return text


def _masked(record: logging.LogRecord, hidden: tuple[str, ...]) -> logging.LogRecord:
    try:
        text = record.getMessage()
    except (TypeError, ValueError):  # a wrong format string is logging's own to report
        return record
    safe = mask(text, hidden)
    if safe != text:
        record.msg, record.args = safe, ()
    if record.exc_info and record.exc_info[1] is not None:
        record.exc_text = mask(_formatted(record.exc_info), hidden)
    return record


def _formatted(exc_info: Any) -> str:
    return logging.Formatter().formatException(exc_info)
