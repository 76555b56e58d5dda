"""A process that ends at one call to the outside, before or after the call took effect."""

from __future__ import annotations

from collections.abc import Callable


class Crash(BaseException):
    """The process ended here: its work is neither finished nor cleaned up."""


class Tripwire:
    """A port that crashes at one call of the run, before or after the call took effect."""

    def __init__(self, inner: object, counter: Counter) -> None:
        self._inner, self._counter = inner, counter

    def __getattr__(self, name: str) -> Callable[..., object]:
        method: Callable[..., object] = getattr(self._inner, name)
        if not callable(method):
            return method

        def call(*args: object, **kwargs: object) -> object:
            self._counter.before()
            result = method(*args, **kwargs)
            self._counter.after()
            return Tripwire(result, self._counter) if name in ("connect", "open", "other") else result

        return call


class Counter:
    """Counts the calls through all tripwires; point 2k crashes before the k-th call, 2k+1 after it."""

    def __init__(self, *points: int) -> None:
        self._points, self.calls = set(points), 0

    def before(self) -> None:
        """Crash here if this is the point."""
        self._die_at(2 * self.calls)

    def after(self) -> None:
        """Crash here if this is the point."""
        self.calls += 1
        self._die_at(2 * self.calls - 1)

    def _die_at(self, point: int) -> None:
        if point in self._points:
            self._points.remove(point)
            raise Crash
