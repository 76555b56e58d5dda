"""Bodies that somebody else sends, with each part missing, null, of every other type, huge or deep.

Each commit tries a sample of the changed ones; ``make deep`` tries all.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from shared.cluster.failures.errors import ReconcileError
from tests.support.receivers import Inbox
from tests.support.sample import sample

JSON = {"Content-Type": "application/json"}

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


def takes_any(
    ask: Callable[[], object],
    inbox: Inbox,
    body: Any,
    *,
    headers: dict[str, str] = JSON,
    before: Callable[[], object] = lambda: None,
) -> None:
    """Ask for a body in each of its odd forms: what comes of it is a result or an error of ours.

    ``before`` is done before each, such as to empty a cache.
    """
    for odd in odd_bodies(body):
        before()
        inbox.default = (200, headers, odd)
        with suppress(ReconcileError):
            ask()


def refuses_any(
    ask: Callable[[], object], inbox: Inbox, status: int, body: Any, headers: dict[str, str] = JSON
) -> None:
    """Answer with a refusal in each of its odd forms: each is an error of ours."""
    for odd in odd_bodies(body):
        inbox.default = (status, headers, odd)
        with pytest.raises(ReconcileError):
            ask()


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
