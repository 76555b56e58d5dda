"""Reads the API again and again until a time, also while the app does not answer for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from cli.errors import NoAnswer

Found = TypeVar("Found")
EVERY_SECONDS = 2.0


def polled(read: Callable[[], Found], until: float, *, answered: bool = False) -> Iterator[Found | NoAnswer]:
    """Yield what is read every few seconds until a time of the monotonic clock, or why there was no answer.

    Raise NoAnswer of an app that has not ``answered`` yet: its address may be wrong.
    """
    while True:
        try:
            yield read()
            answered = True
        except NoAnswer as error:
            if not answered:
                raise
            yield error
        if time.monotonic() >= until:
            return
        time.sleep(EVERY_SECONDS)
