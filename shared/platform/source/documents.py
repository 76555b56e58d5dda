"""The YAML documents of a file as Kubernetes and kustomize read them, with the place of every value.

Unlike a manifest of the fleet, such a file has several documents, aliases, merge keys and tags. It is bounded
all the same: what aliases stand for counts as if it were written out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import yaml

from shared.language.yaml.nodes import Items, Mark, Node
from shared.language.yaml.parser import CONFLICT, conflict_line

MAX_BYTES = 4 * 1024 * 1024
"""Larger than etcd takes of one object (1.5 MiB), and than any file of CustomResourceDefinitions."""
MAX_DEPTH = 100
MAX_NODES = 500_000
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
"""How a pointer of Git LFS begins (git-lfs docs/spec.md). source-controller does not fetch what it is for."""
IS_POINTER = "is a pointer of Git LFS, which Flux does not follow; commit the file itself (git lfs untrack)"


class UnreadableFile(Exception):
    """A file is no YAML that can be read; ``line`` is the line, and the message the reason."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column


class DuplicateKey(UnreadableFile):
    """A key is written twice in one object; which of the two counts depends on who reads it."""


@lru_cache(maxsize=1024)
def documents(content: bytes) -> tuple[Node, ...]:
    """Return the documents of a file that are not empty; the places of values name no file.

    Raise UnreadableFile for what is no YAML, or beyond the bounds, and DuplicateKey for a key that is twice.
    """
    if content.startswith(LFS_POINTER):
        raise UnreadableFile(IS_POINTER)
    if len(content) > MAX_BYTES:
        raise UnreadableFile(f"has {len(content)} bytes, more than {MAX_BYTES}; split it")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UnreadableFile("is not UTF-8 text; save it as UTF-8", line) from error
    try:
        return tuple(node for node in _Reader(text).documents() if node.value is not None)
    except yaml.MarkedYAMLError as error:
        if marked := conflict_line(text):
            raise UnreadableFile(CONFLICT, marked) from error
        place = error.problem_mark or error.context_mark
        line, column = (place.line + 1, place.column + 1) if place else (1, 1)
        raise UnreadableFile(f"is not valid YAML: {error.problem or error.context}", line, column) from error
    except yaml.YAMLError as error:
        raise UnreadableFile(f"is not valid YAML: {str(error).splitlines()[0]}") from error


def manifests(node: Node) -> Iterator[Node]:
    """Yield the objects of a document: itself, or the items of a list of objects (kustomize ``FooList``)."""
    kind = field_of(node, "kind")
    items = node.child("items")
    if kind.endswith("List") and items is not None and isinstance(items.value, Items):
        yield from items.value
    else:
        yield node


def field_of(node: Node | None, *path: str) -> str:
    """Return the string at a path of objects, "" where there is none."""
    for step in path:
        node = node.child(step) if node is not None and isinstance(node.value, dict) else None
    return node.value if node is not None and isinstance(node.value, str) else ""


class _Reader:
    """Builds nodes from libyaml's events; an alias is the node of its anchor, and counts as much as that."""

    def __init__(self, text: str) -> None:
        self._next: Callable[[], Any] = yaml.CSafeLoader(text).get_event
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._count = 0

    def documents(self) -> Iterator[Node]:
        self._next()  # the start of the stream
        while isinstance(self._next(), yaml.DocumentStartEvent):
            self._anchors.clear()
            yield self._node(self._next(), 0)
            self._next()  # the end of the document

    def _node(self, event: Any, depth: int) -> Node:
        place = event.start_mark
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise UnreadableFile(f"has no anchor &{event.anchor}", place.line + 1, place.column + 1)
            node, size = self._anchors[event.anchor]
            self._spend(size, place)
            return node
        before = self._count
        self._spend(1, place)
        if depth > MAX_DEPTH:
            raise UnreadableFile(f"is nested more than {MAX_DEPTH} levels deep", place.line + 1)
        mark = Mark("", place.line + 1, place.column + 1)
        if isinstance(event, yaml.ScalarEvent):
            node = Node(_scalar(event), mark)
        elif isinstance(event, yaml.MappingStartEvent):
            node = Node(self._mapping(depth), mark)
        else:
            items: list[Node] = []
            while not isinstance(inner := self._next(), yaml.SequenceEndEvent):
                items.append(self._node(inner, depth + 1))
            node = Node(Items(items), mark)
        if event.anchor is not None:
            self._anchors[event.anchor] = node, self._count - before
        return node

    def _mapping(self, depth: int) -> dict[str, Node]:
        own: dict[str, Node] = {}
        merged: dict[str, Node] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            place = event.start_mark
            key_node = self._node(event, depth + 1)
            key = event.value if isinstance(event, yaml.ScalarEvent) else str(key_node.value)
            value = self._node(self._next(), depth + 1)
            if key == "<<" and isinstance(event, yaml.ScalarEvent) and event.style not in _QUOTED:
                self._merge(value, merged, place)
                continue
            if key in own:
                raise DuplicateKey(
                    f"{key} is written twice, first in line {own[key].mark.line}; keep one",
                    place.line + 1,
                    place.column + 1,
                )
            own[key] = Node(value.value, Mark("", place.line + 1, place.column + 1))
        return {**merged, **own}

    def _merge(self, value: Node, merged: dict[str, Node], place: Any) -> None:
        for source in value.value if isinstance(value.value, Items) else (value,):
            if isinstance(source.value, dict):
                self._spend(len(source.value), place)
                for key, node in source.value.items():
                    merged.setdefault(key, node)

    def _spend(self, count: int, place: Any) -> None:
        self._count += count
        if self._count > MAX_NODES:
            raise UnreadableFile(f"has more than {MAX_NODES} values; split it", place.line + 1)


_QUOTED = ("'", '"', "|", ">")
_INT = re.compile(r"[-+]?[0-9]{1,18}\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?\Z")


def _scalar(event: Any) -> str | int | float | bool | None:
    text: str = event.value
    if event.tag is not None or event.style in _QUOTED:
        return text
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return text.lower() == "true"
    if _INT.match(text):
        return int(text)
    return float(text) if _FLOAT.match(text) else text
