"""Stored JSON that is read again gives the model that it gave before."""

from collections.abc import Mapping
from typing import Any

import pytest

from shared.process_memory import MOST, recently_read


def test_equal_json_is_read_once_and_other_json_again() -> None:
    seen: list[Any] = []

    @recently_read
    def read(stored: Mapping[str, Any]) -> str:
        seen.append(stored)
        return str(stored)

    assert [read({"a": value}) for value in (1, 1, True, 2)] == [
        "{'a': 1}",
        "{'a': 1}",
        "{'a': True}",
        "{'a': 2}",
    ]
    assert seen == [{"a": 1}, {"a": True}, {"a": 2}]


def test_what_cannot_be_read_fails_each_time() -> None:
    @recently_read
    def read(stored: Mapping[str, Any]) -> str:
        return str(stored["name"])

    for _ in range(2):
        with pytest.raises(KeyError):
            read({})


def test_only_the_last_ones_are_remembered() -> None:
    seen: list[Any] = []

    @recently_read
    def read(stored: Mapping[str, Any]) -> int:
        seen.append(stored)
        return len(seen)

    for number in [*range(MOST + 1), 0]:
        read({"a": number})
    assert len(seen) == MOST + 2
