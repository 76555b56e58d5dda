"""Logging: client libraries log warnings only, no line contains a secret, and each says what it is about.

The Functions host takes the text of a line and nothing else, so what a line is about is at its end, as
``cluster=one generation=3``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from shared.masking import Mask

if TYPE_CHECKING:
    from shared.cluster.record import ClusterRecord

_CHATTY = (
    "azure",
    "azure.core.pipeline.policies.http_logging_policy",
    "urllib3",
    "uamqp",
    "github.Requester",
)


FIELDS = ("fleet", "cluster", "commit", "generation", "step", "attempt")
"""What a line can be about, in the order in which it says so."""
_fields: ContextVar[Mapping[str, str]] = ContextVar("fields", default={})  # noqa: B039  # never changed


@contextmanager
def about(**fields: object) -> Iterator[None]:
    """Add to every log line meanwhile what it is about, by the names of ``FIELDS``; "" is not known."""
    known = {name: str(value) for name, value in fields.items() if value != ""}
    token = _fields.set({**_fields.get(), **known})
    try:
        yield
    finally:
        _fields.reset(token)


def about_record(record: ClusterRecord) -> AbstractContextManager[None]:
    """Add to every log line meanwhile which cluster it is about, and at what its job is, or ended."""
    job = record.job
    return about(
        cluster=record.name,
        commit=record.commit,
        generation=record.generation,
        step=job.step.name,
        attempt=job.attempts + 1 if job.active else max(job.attempts, 1),
    )


def configure(mask: Mask, fleet: str = "") -> None:
    """Set the level of the client libraries; mask every log record, and add what it is about."""
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    of_all = {"fleet": fleet} if fleet else {}
    logging.setLogRecordFactory(
        lambda *args, **kwargs: _completed(logging.LogRecord(*args, **kwargs), mask, of_all)
    )


def _completed(record: logging.LogRecord, mask: Mask, of_all: Mapping[str, str]) -> logging.LogRecord:
    try:
        text = record.getMessage()
    except (TypeError, ValueError):  # logging itself reports a wrong format string
        return record
    fields = {**of_all, **_fields.get()}
    suffix = "".join(f" {name}={fields[name]}" for name in FIELDS if name in fields)
    safe = mask(text) + suffix
    if safe != text:
        record.msg, record.args = safe, ()
    if record.exc_info and record.exc_info[1] is not None:
        record.exc_text = mask(_formatted(record.exc_info))
    return record


def _formatted(exc_info: Any) -> str:
    return logging.Formatter().formatException(exc_info)
