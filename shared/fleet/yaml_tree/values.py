"""Reads the value of a YAML file without the places in it, in two thirds of the time that ``parse`` takes.

Places are needed once there is a problem. A file with anything unusual in it is not read here: ``parse``
decides what it is, and says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml
from yaml import AliasEvent, MappingEndEvent, ScalarEvent, SequenceEndEvent, SequenceStartEvent
from yaml.cyaml import CParser  # type: ignore[attr-defined]  # of the loaders, what only yields events

from shared.fleet.yaml_tree.merging import REMOVED
from shared.fleet.yaml_tree.parser import MAX_DEPTH, MAX_NODES
from shared.fleet.yaml_tree.scalars import ScalarError, scalar


class _UnusualError(Exception):
    """The file has something that only ``parse`` reads."""


def value_of(content: bytes) -> Any:
    """Return what ``parse(content, file).plain()`` has; None for a file that has to be parsed.

    That is one that ``parse`` refuses, that removes values of its layers, or that has so many bytes that it
    may have too many values.
    """
    if len(content) > MAX_NODES or b"<<<<<<<" in content or b">>>>>>>" in content:
        return None
    try:
        following = CParser(content.decode("utf-8")).get_event
        following()  # stream start
        if not isinstance(following(), yaml.DocumentStartEvent):
            return None
        value = _value(following(), following, 0)
        following()  # document end
        return value if isinstance(following(), yaml.StreamEndEvent) else None
    except (UnicodeDecodeError, yaml.YAMLError, ScalarError, _UnusualError):
        return None


def _value(event: Any, following: Callable[[], Any], depth: int) -> Any:
    if isinstance(event, ScalarEvent):
        value = scalar(event)
        if value is None or value == REMOVED[1]:
            raise _UnusualError
        return value
    if isinstance(event, AliasEvent) or event.tag is not None or depth == MAX_DEPTH:
        raise _UnusualError
    if isinstance(event, SequenceStartEvent):
        items = []
        while not isinstance(item := following(), SequenceEndEvent):
            items.append(_value(item, following, depth + 1))
        return items
    values: dict[str, Any] = {}
    while isinstance(key := following(), ScalarEvent):
        if key.value in values or key.tag is not None:
            raise _UnusualError
        values[key.value] = _value(following(), following, depth + 1)
    if not isinstance(key, MappingEndEvent):
        raise _UnusualError
    return values
