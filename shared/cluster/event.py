"""An event: something that happened to a cluster, as its history has it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Event:
    """Something that happened to a cluster; (uid, sequence, reason) identifies it however often it is saved.

    ``started`` is when its step began, ``at`` when this happened; ``request_ids`` are those of the service.
    """

    cluster: str
    uid: str
    generation: int
    sequence: int
    at: datetime
    warning: bool
    reason: str
    message: str
    step: str = ""
    started: datetime | None = None
    request_ids: tuple[str, ...] = ()
