"""A port that reports each call, and one that counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    """A call of a port: the method, what it was given, and what it returned, None for nothing or an error."""

    method: str
    given: tuple[Any, ...]
    found: Any
    named: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many records it returned; 1 for what is no list."""
        return len(self.found) if isinstance(self.found, Sequence) else 1


class Watched:
    """A port that reports each call to a function when it is over."""

    def __init__(self, inner: object, report: Callable[[Call], None]) -> None:
        self._inner, self._report = inner, report

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if not callable(method):
            return method

        def counted(*given: Any, **named: Any) -> Any:
            found = None
            try:
                found = method(*given, **named)
                return found
            finally:
                self._report(Call(name, given, found, named))

        return counted


class Counted(Watched):
    """A port that counts its calls, and the records that they return, by method."""

    def __init__(self, inner: object) -> None:
        super().__init__(inner, self._count)
        self.calls, self.records = Counter[str](), Counter[str]()

    def _count(self, call: Call) -> None:
        self.calls[call.method] += 1
        self.records[call.method] += call.rows
