"""What is stored of messages that a queue gave up."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from shared.cluster.forms import Listed
from shared.frozen import dataclass


@dataclass(frozen=True)
class DeadLetter:
    """A message that a queue gave up and that could not be handled; ``body`` is its beginning as text.

    ``size`` is the size of the whole body in bytes, ``at`` is when the message reached its queue.
    """

    queue: str
    id: str
    at: datetime
    reason: str
    description: str
    body: str
    size: int


class DeadLetters(Protocol):
    """The messages that the queues gave up."""

    def save_dead_letter(self, letter: DeadLetter) -> None:
        """Save a dead letter, over an equal one."""
        ...

    def dead_letters(self, limit: int) -> Listed[DeadLetter]:
        """Return the newest dead letters, newest first."""
        ...

    def count_dead_letters(self) -> int:
        """Return how many dead letters are saved."""
        ...

    def delete_dead_letter(self, letter: DeadLetter) -> None:
        """Remove a dead letter; one that does not exist is success."""
        ...

    def prune_dead_letters(self, before: datetime) -> int:
        """Remove older dead letters; return how many were removed."""
        ...
