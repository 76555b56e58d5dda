"""Messages from the bodies that the queues have of them.

An unreadable or unknown one raises ``ValueError``, so that the host abandons it and the queue moves it to its
dead letters, and no message is lost. One of a newer form raises NewerForm, and waits in its queue.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Tag, TypeAdapter

from shared.cluster.forms import VERSION, present
from shared.cluster.queues.messages import (
    REQUESTS,
    CheckMessage,
    JobMessage,
    OutdatedRequest,
    PreviewRequest,
    QueueRequest,
    ReadinessMessage,
    ReviewRequest,
    StatusRequest,
    ToPlan,
)

_DEFERRED = ConfigDict(defer_build=True)
_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any], config=_DEFERRED)


def request_of(body: bytes | str) -> QueueRequest:
    """Return a message of the queues ``plans`` and ``previews``; raise ValueError for any other body."""
    read = _OBJECT.validate_json(body)
    request = present("QueueRequest", QueueRequest.model_fields[VERSION].default, read)
    kind = request.get("kind")
    if not isinstance(kind, str) or kind not in REQUESTS:
        raise ValueError("the queues have no message of this kind")
    return REQUESTS[kind].model_validate_json(json.dumps(request))


def commit_of(message: BaseModel | None) -> str:
    """Return the commit that a message is about, "" for none."""
    if isinstance(message, PreviewRequest):
        return message.head
    about = ToPlan | ReviewRequest | StatusRequest | OutdatedRequest
    return message.commit if isinstance(message, about) else ""


def _kind(read: Any) -> str:
    kinds = ("check", "reading") if isinstance(read, dict) else ()
    return next((kind for kind in kinds if kind in read), "job")


WorkerMessage = JobMessage | CheckMessage | ReadinessMessage | QueueRequest
_OF_WORKER: TypeAdapter[JobMessage | CheckMessage | ReadinessMessage] = TypeAdapter(
    Annotated[
        Annotated[JobMessage, Tag("job")]
        | Annotated[CheckMessage, Tag("check")]
        | Annotated[ReadinessMessage, Tag("reading")],
        Discriminator(_kind),
    ],
    config=_DEFERRED,
)


EXAMINATION = b'"kind":"examine"'
"""What an examination says, and no other message: JSON escapes the quotes in the texts of fields."""


def message_of_worker(body: bytes) -> WorkerMessage:
    """Return a message of a queue of jobs; raise ValueError for any other body."""
    return request_of(body) if EXAMINATION in body else _OF_WORKER.validate_json(body)
