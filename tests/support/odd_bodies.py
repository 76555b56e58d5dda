"""Bodies that somebody else sends, with each part missing, null, of every other type, huge or deep.

Each commit tries a sample of the changed ones; ``make deep`` tries all.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from typing import Any

from tests.support.sample import sample

DEEP = "[" * 30_000
"""As JSON: deeper than any parser here goes."""
HUGE = "x" * 70_000
OTHERS: tuple[Any, ...] = (
    "text",
    "",
    7,
    -1,
    10**30,
    1.5,
    True,
    [],
    ["text"],
    [None],
    {},
    {"a": {"b": 1}},
    HUGE,
)
"""One value of each type, and some that are unlike what is expected."""
_DEEP_MARK = "the deep part"


def odd_bodies(body: Any, most: int = 50) -> Iterator[bytes]:
    """Yield a JSON body with each of its parts changed, one at a time, and bodies that are none."""
    bodies = [b"", b"null", b"{", b"\xff", DEEP.encode(), HUGE.encode()]
    for changed in sample(f"odd {body}", _changed(body), most):
        bodies.append(json.dumps(changed).replace(f'"{_DEEP_MARK}"', DEEP + "]" * len(DEEP)).encode())
    for odd in bodies:
        gc.collect(0)  # no garbage is due while a deep one fills the stack: its finalizers would need some
        yield odd


def _changed(value: Any) -> Iterator[Any]:
    """Yield what may stand where a value is: other values, and the value with a part of it changed."""
    yield from (None, _DEEP_MARK, *OTHERS)
    if isinstance(value, dict):
        for key, below in value.items():
            rest = {name: item for name, item in value.items() if name != key}
            yield rest
            yield from (value | {key: changed} for changed in _changed(below))
    if isinstance(value, list) and value:
        yield from ([changed, *value[1:]] for changed in _changed(value[0]))
