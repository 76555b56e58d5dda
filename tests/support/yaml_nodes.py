"""YAML nodes for tests of merging: plain data, all at one place."""

from __future__ import annotations

from typing import Any

from shared.language.yaml.nodes import Items, Mark, Node

HERE = Mark("test.yaml", 1, 1)


def node(value: Any) -> Node:
    """Wrap plain data as nodes."""
    if isinstance(value, dict):
        return Node({key: node(inner) for key, inner in value.items()}, HERE)
    if isinstance(value, list):
        return Node(Items(node(inner) for inner in value), HERE)
    return Node(value, HERE)
