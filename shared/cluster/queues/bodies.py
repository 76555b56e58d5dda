"""Messages from the bodies that the queues have of them: the ``kind`` of a body says which one it is.

An unreadable or unknown one raises ``ValueError``, so that the host abandons it and the queue moves it to its
dead letters, and no message is lost. One of a newer form raises NewerForm, and waits in its queue.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter

from shared.cluster.forms import VERSION, present
from shared.cluster.queues.messages import (
    KINDS,
    OutdatedRequest,
    PreviewRequest,
    QueueMessage,
    ReviewRequest,
    StatusRequest,
    ToPlan,
)

M = TypeVar("M", bound=QueueMessage)
_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any], config=ConfigDict(defer_build=True))
EXAMINATION = b'"kind":"examine"'
"""What an examination says, and no other message: JSON escapes the quotes in the texts of fields."""


def message_of(body: bytes | str, expected: type[M]) -> M:
    """Return a message of a class; raise ValueError for any other body."""
    known = QueueMessage.model_fields[VERSION].default
    read = present(QueueMessage.__name__, known, _OBJECT.validate_json(body))
    kind = read.get("kind")
    found = KINDS.get(kind) if isinstance(kind, str) else None
    if found is None or not issubclass(found, expected):
        raise ValueError("the queue has no message of this kind")
    return found.model_validate_json(json.dumps(read))


def commit_of(message: BaseModel | None) -> str:
    """Return the commit that a message is about, "" for none."""
    if isinstance(message, PreviewRequest):
        return message.head
    about = ToPlan | ReviewRequest | StatusRequest | OutdatedRequest
    return message.commit if isinstance(message, about) else ""
