"""Printing: styled and wrapped on a terminal, plain lines elsewhere; other people's text stays text."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from rich.console import Console

from shared.fleet.manifests.base import shown


def console() -> Console:
    """Return where a command prints for people."""
    return Console(highlight=False)


def print_json(value: Any) -> None:
    """Print JSON, indented for a person at a terminal."""
    sys.stdout.write(json.dumps(value, indent=2 if sys.stdout.isatty() else None) + "\n")


def line(text: str) -> str:
    """Return text from a repository as one printable line of bounded length."""
    return shown(text, 400)


def printable(value: Any) -> Any:
    """Return JSON for a terminal: its texts keep their lines, and have no other control characters."""
    if isinstance(value, str):
        return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in value)
    if isinstance(value, Mapping):
        return {key: printable(inner) for key, inner in value.items()}
    return [printable(inner) for inner in value] if isinstance(value, Sequence) else value


def scalar(value: Any) -> str:
    """Return a value in YAML on one line."""
    if isinstance(value, str) and not value.isprintable():
        return json.dumps(value)
    if value and isinstance(value, dict | list):
        return json.dumps(value)
    return yaml.safe_dump(value, width=10_000, allow_unicode=True).removesuffix("...\n").rstrip()
