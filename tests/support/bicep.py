"""Reads Bicep templates for tests: enough of the language for declarations and their bodies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tree_sitter_bicep
from tree_sitter import Language, Node, Parser


@dataclass(frozen=True)
class Declaration:
    """A param, var, resource, module or output: its name, decorators, type, and value.

    Objects are dictionaries, arrays lists, strings and numbers themselves; every other expression is its
    source text.
    """

    kind: str
    name: str
    decorators: tuple[str, ...]
    type: str
    value: Any
    loop: Any = None
    """What a ``for`` runs over, when the value is repeated."""


class Template:
    """One parsed ``.bicep`` file."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text()
        self._root = Parser(Language(tree_sitter_bicep.language())).parse(self.text.encode()).root_node
        self.broken = [
            f"{path.name}:{node.start_point[0] + 1}: {node.type}"
            for node in _walk(self._root)
            if node.is_error or node.is_missing
        ]
        self.declarations = list(self._declarations())

    def of(self, kind: str) -> dict[str, Declaration]:
        """Return the declarations of a kind, by name."""
        return {d.name: d for d in self.declarations if d.kind == kind}

    def resource(self, resource_type: str) -> Declaration:
        """Return the one resource of an ARM type, whatever its API version."""
        (found,) = [d for d in self.of("resource").values() if d.type.partition("@")[0] == resource_type]
        return found

    def _declarations(self) -> Iterator[Declaration]:
        decorators: tuple[str, ...] = ()
        for node in self._root.named_children:
            if node.type == "decorators":
                decorators = tuple(_text(child) for child in node.named_children)
            elif node.type.endswith("_declaration"):
                yield _declaration(node, decorators)
                decorators = ()


_KINDS = {"parameter": "param", "variable": "var"}


def _declaration(node: Node, decorators: tuple[str, ...]) -> Declaration:
    keyword = node.type.removesuffix("_declaration")
    name, *rest = node.named_children
    kind, declared = _KINDS.get(keyword, keyword), ""
    if rest and (kind in ("resource", "module") or rest[0].type == "type"):
        declared = _text(rest[0]).strip("'")
        rest = rest[1:]
    value = rest[0] if rest else None
    loop = None
    if value is not None and value.type == "if_statement":
        value = value.named_children[-1]
    if value is not None and value.type == "for_statement":
        loop, value = _value(value.named_children[-2]), value.named_children[-1]
        if value.type == "if_statement":
            value = value.named_children[-1]
    return Declaration(kind, _text(name), decorators, declared, _value(value), loop)


def _value(node: Node | None) -> Any:
    if node is None:
        return None
    if node.type == "object":
        pairs = [child.named_children for child in node.named_children if child.type == "object_property"]
        return {_text(pair[0]).strip("'"): _value(pair[-1]) for pair in pairs}
    if node.type == "array":
        return [_value(child) for child in node.named_children if child.type != "comment"]
    if node.type == "number":
        return int(_text(node))
    if node.type == "boolean":
        return _text(node) == "true"
    if node.type == "string":
        return _text(node)[1:-1]
    return _text(node)


def _text(node: Node) -> str:
    return (node.text or b"").decode()


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _walk(child)
