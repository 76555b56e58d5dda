"""Dead letters, listed and dismissed by an operator."""

from __future__ import annotations

import logging
from collections.abc import Collection

from shared.jobs.failures.errors import Retryable
from shared.pipeline.api import schema
from shared.pipeline.api.views.parts import iso
from shared.ports import DeadLetter, Ports

log = logging.getLogger(__name__)

LETTERS_SHOWN = 100


def dead_letters_view(ports: Ports) -> schema.DeadLetters:
    """Return the newest messages that a queue gave up and that could not be handled."""
    return {"deadLetters": [_view(letter) for letter in ports.state.dead_letters(LETTERS_SHOWN)]}


def _view(letter: DeadLetter) -> schema.DeadLetter:
    return {
        "queue": letter.queue,
        "id": letter.id,
        "at": iso(letter.at),
        "reason": letter.reason,
        "description": letter.description,
        "body": letter.body,
        "size": letter.size,
    }


def dismiss(named: Collection[tuple[str, str]], actor: str, ports: Ports) -> schema.DismissReceipt:
    """Remove those of the newest dead letters that are named by queue and id; say how many were removed."""
    letters, left = _named(named, ports), 0
    try:
        for letter in letters:
            log.warning("%s dismisses the dead letter %s of the queue %s", actor, letter.id, letter.queue)
            ports.state.delete_dead_letter(letter)
    except Retryable:
        left = len(_named(named, ports))
        if left == len(letters):
            raise
    return {"dismissed": len(letters) - left}


def _named(named: Collection[tuple[str, str]], ports: Ports) -> list[DeadLetter]:
    newest = ports.state.dead_letters(LETTERS_SHOWN)
    return [letter for letter in newest if (letter.queue, letter.id) in named]
