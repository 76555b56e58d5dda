"""Applies that have changed nothing: the same one, of the same state of the object, changes nothing again.

Controllers apply what they applied before, again and again. What an apply does depends on the object, the
configuration, the kind and the writer, and on the time only where it changes something: a manager that owns
the same fields keeps the time at which it took them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from localcloud.kubernetes.world.object_store import At, Object, WriteMode

MOST = 1024
"""Applies that are remembered; then all of them are dropped."""


@dataclass(frozen=True)
class _Apply:
    """An apply that changed nothing; stored objects and kinds are never changed in place."""

    at: At
    live: Object
    body: str
    force: bool


class RepeatedApplies:
    """The applies of one world that have changed nothing, of each object the last one of each manager."""

    def __init__(self) -> None:
        self._last: dict[tuple[tuple[str, str], str, str, str, str], _Apply] = {}

    def changes_nothing(self, at: At, live: Object, body: Any, write: WriteMode) -> bool:
        """Return whether this apply has changed nothing of this state of the object."""
        last = self._last.get(_key(at, write))
        return (
            last is not None
            and last.live is live
            and last.at.kind is at.kind
            and last.force == write.force
            and last.body == repr(body)
        )

    def changed_nothing(self, at: At, live: Object, body: Any, write: WriteMode) -> None:
        """Remember an apply."""
        if len(self._last) >= MOST:
            self._last.clear()
        self._last[_key(at, write)] = _Apply(at, live, repr(body), write.force)


def _key(at: At, write: WriteMode) -> tuple[tuple[str, str], str, str, str, str]:
    return at.kind.storage, at.namespace, at.name, write.manager, write.subresource
