"""Approvals of an external system, signed as its specification says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from standardwebhooks.webhooks import Webhook

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.function_calls import APPROVAL_KEYS

KEY = APPROVAL_KEYS["CHANGES"]


def signed(cloud: MemoryCloud, body: bytes, *, at: datetime | None = None, key: str = KEY) -> dict[str, str]:
    """Return the headers with which the library of Standard Webhooks signs a body."""
    moment = at or cloud.clock()
    signature = Webhook(key).sign("msg_1", moment, body.decode())
    seconds = str(int(moment.timestamp()))
    return {"Webhook-Id": "msg_1", "Webhook-Timestamp": seconds, "Webhook-Signature": f"v1,x {signature}"}


def statement(commit: str, changes: Mapping[str, str] | None = None) -> bytes:
    """Return the body of an approval, with some of its values changed."""
    said = {"fleet": "example", "commit": commit, "stage": "second", "by": "ann", "reason": "CHG-1"}
    return json.dumps(said | dict(changes or {})).encode()
