"""The calls of a run at which its host can die: those that one part of the code makes.

The point after a call is the one before the next call of the same function: nothing outside happens in
between.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import shared
from localcloud.memory.crashes import Counter, Tripwire
from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.sample import sample

PRODUCTION = str(Path(shared.__file__).parent)


class Recorder(Counter):
    """Records the calls of a run, and crashes at none; ``noted`` sees the stack of each, innermost first."""

    def __init__(self, noted: Callable[[list[FrameType]], None] = lambda _: None) -> None:
        super().__init__()
        self._noted = noted
        self._function: FrameType | None = None
        self.firsts: set[int] = set()
        """The first call of each run of a function, by its number."""

    def before(self) -> None:
        """Note where the call comes from."""
        stack: list[FrameType] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename.startswith(PRODUCTION):
                stack.append(frame)
            frame = frame.f_back
        self._noted(stack)
        function = stack[-1] if stack else None
        if function is not self._function:  # the frame lives until it is replaced, so no other one is equal
            self._function = function
            self.firsts.add(self.calls)
        super().before()

    def points(self, numbers: Iterable[int]) -> list[int]:
        """Return the points before and after these calls, and none twice."""
        chosen = set(numbers)
        known = {number for number in chosen if number - 1 in chosen and number not in self.firsts}
        before = [2 * number for number in chosen - known]
        return sorted([*before, *(2 * number + 1 for number in chosen)])


def points_of_one_run(calls: int) -> list[int]:
    """Return the points of a function that runs once: before its first call, and after each."""
    return [0, *range(1, 2 * calls, 2)]


class Interrupted(Counter):
    """Lets another handler run to its end before one of the calls."""

    def __init__(self, call: int, meanwhile: Callable[[], None]) -> None:
        super().__init__()
        self._call, self._meanwhile = call, meanwhile

    def before(self) -> None:
        """Let the other one run if this is the call."""
        if self.calls == self._call:
            self._call = -1
            self._meanwhile()


def crash_points(run: Callable[[Counter], object], *places: str) -> list[int]:
    """Return the points before and after each call of a run that comes from places, as "steps/secrets".

    Without places, that is each call.
    """
    ours: list[int] = []

    def note(stack: list[FrameType]) -> None:
        if not places or any(place in frame.f_code.co_filename for frame in stack for place in places):
            ours.append(recorder.calls)

    recorder = Recorder(note)
    run(recorder)
    return recorder.points(ours)


def wire(cloud: MemoryCloud, counter: Counter, *ports: str) -> None:
    """Let the host die at calls to these ports: the counter says when."""
    wires: dict[str, Any] = {name: Tripwire(getattr(cloud.ports, name), counter) for name in ports}
    cloud.with_ports(lambda given: replace(given, **wires))


def run_with_crashes(run: Callable[[Counter], object], *places: str, least: int, most: int = 12) -> None:
    """Repeat a run that crashes before or after one of the calls from these places, at some of the points.

    There are more than ``least`` points, so that the run does what it is for.
    """
    points = crash_points(run, *places)
    assert len(points) > least
    for point in sample(f"crashes at {places}", points, most):
        run(Counter(point))
