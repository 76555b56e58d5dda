"""Printing: styled and wrapped on a terminal, plain lines elsewhere; other people's text stays text."""

from __future__ import annotations

import json
import sys
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


def scalar(value: Any) -> str:
    """Return a value in YAML on one line."""
    if isinstance(value, str) and not value.isprintable():
        return json.dumps(value)
    if value and isinstance(value, dict | list):
        return json.dumps(value)
    return yaml.safe_dump(value, width=10_000, allow_unicode=True).removesuffix("...\n").rstrip()
