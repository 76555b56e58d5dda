"""Logging: client libraries log warnings only, and no line contains a secret."""

from __future__ import annotations

import logging
from typing import Any

from shared.masking import Mask

_CHATTY = (
    "azure",
    "azure.core.pipeline.policies.http_logging_policy",
    "urllib3",
    "uamqp",
    "github.Requester",
)


def configure(mask: Mask) -> None:
    """Set the level of the client libraries, and mask every log record.

    A second call replaces the mask of the first.
    """
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.setLogRecordFactory(lambda *args, **kwargs: _masked(logging.LogRecord(*args, **kwargs), mask))


def _masked(record: logging.LogRecord, mask: Mask) -> logging.LogRecord:
    try:
        text = record.getMessage()
    except (TypeError, ValueError):  # logging itself reports a wrong format string
        return record
    safe = mask(text)
    if safe != text:
        record.msg, record.args = safe, ()
    if record.exc_info and record.exc_info[1] is not None:
        record.exc_text = mask(_formatted(record.exc_info))
    return record


def _formatted(exc_info: Any) -> str:
    return logging.Formatter().formatException(exc_info)
