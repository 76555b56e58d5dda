"""Escapes text from elsewhere: repositories and services must not move a terminal's cursor."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

View = TypeVar("View")


def line(text: str, limit: int = 400) -> str:
    """Return text as one printable line of bounded length, without credentials."""
    from shared.language.model.base import shown

    return shown(text, limit)


def problem(text: str, limit: int = 600) -> str:
    """Return the message of an error as ``line`` does; a long one loses its middle: advice is at the end."""
    whole = line(text, max(limit, len(text)))
    half = limit // 2 - 3
    return whole if len(whole) <= limit else f"{whole[:half].rstrip()} ... {whole[-half:].lstrip()}"


def printable(view: View) -> View:
    """Return JSON whose texts keep their line ends and have no other control characters."""
    cleaned: Any = _printable(view)
    return cleaned  # type: ignore[no-any-return]


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        if value.isprintable():
            return value
        return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in value)
    if isinstance(value, Mapping):
        return {key: _printable(inner) for key, inner in value.items()}
    return [_printable(inner) for inner in value] if isinstance(value, Sequence) else value


def scalar(value: Any) -> str:
    """Return a value in YAML on one line."""
    import yaml

    if isinstance(value, str) and not value.isprintable():
        return json.dumps(value)
    if value and isinstance(value, dict | list):
        return json.dumps(value)
    return yaml.safe_dump(value, width=10_000, allow_unicode=True).removesuffix("...\n").rstrip()
