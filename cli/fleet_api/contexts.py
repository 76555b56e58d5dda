"""Contexts: the fleets that the command knows by name, from a file that a person writes and nothing else
does.

The file has addresses only. It is TOML: ``$XDG_CONFIG_HOME/roadstead/contexts.toml``, by default below
``~/.config``.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.errors import UsageError

CONTEXT, FILE = "ROADSTEAD_CONTEXT", "ROADSTEAD_CONTEXTS"
SCOPE, SIGN_IN = "ROADSTEAD_SCOPE", "ROADSTEAD_SIGN_IN"
LOCAL_URL = "http://127.0.0.1:7071"
WAYS = ("az", "browser", "device-code", "managed-identity")
_FIELDS = {"url", "scope", "sign-in", "tenant"}


@dataclass(frozen=True)
class FleetContext:
    """A fleet's app: its address, and the scope of its tokens; without a scope nobody signs in.

    ``sign_in`` is one of ``WAYS``, "" for the usual ones one after the other; ``tenant`` "" for the usual
    one.
    """

    name: str
    url: str
    scope: str = ""
    sign_in: str = ""
    tenant: str = ""

    @property
    def origin(self) -> str:
        """Where its scope is from, for messages."""
        return f"the context {self.name} in {path()}" if self.name else SCOPE


def chosen(url: str) -> FleetContext:
    """Return what to connect to: an address, or the context of the environment or of the file."""
    name = os.environ.get(CONTEXT, "").removeprefix("context/")
    if url and name:
        raise UsageError(f"give an address or a context, not both: {url} and {name}")
    if url:
        return _checked(FleetContext("", url, os.environ.get(SCOPE, ""), os.environ.get(SIGN_IN, "")))
    default, known = read_contexts()
    name = name or default
    if not name:
        return _checked(FleetContext("", LOCAL_URL, os.environ.get(SCOPE, ""), os.environ.get(SIGN_IN, "")))
    if name not in known:
        names = ", ".join(known) or "none"
        raise UsageError(f"there is no context {name!r} in {path()}; the contexts are: {names}")
    return known[name]


def path() -> Path:
    """Return where the contexts are."""
    given = os.environ.get(FILE)
    if given:
        return Path(given)
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "roadstead" / "contexts.toml"


def read_contexts() -> tuple[str, Mapping[str, FleetContext]]:
    """Return the name of the default context, and the contexts by name; raise UsageError for a wrong file."""
    file = path()
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return "", {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error
    unknown = content.keys() - {"default", "contexts"}
    contexts = content.get("contexts", {})
    if unknown or not isinstance(contexts, dict):
        others = ", ".join(sorted(unknown)) or "another form"
        raise UsageError(f"{file}: only `default` and [contexts.NAME] are known, not {others}")
    known = {name: _context(file, name, context) for name, context in contexts.items()}
    return str(content.get("default", "")), known


def _context(file: Path, name: str, given: Any) -> FleetContext:
    fields = given if isinstance(given, dict) else {}
    unknown = fields.keys() - _FIELDS
    if unknown:
        known = ", ".join(sorted(_FIELDS))
        raise UsageError(f"{file}: context {name!r} has {', '.join(sorted(unknown))}; the fields are {known}")
    if not fields.get("url") or not all(isinstance(value, str) for value in fields.values()):
        raise UsageError(f"{file}: context {name!r} needs an `url`, and every field is a string")
    return _checked(
        FleetContext(
            name, fields["url"], fields.get("scope", ""), fields.get("sign-in", ""), fields.get("tenant", "")
        )
    )


def _checked(context: FleetContext) -> FleetContext:
    """Return the context; raise UsageError for a way to sign in that there is not."""
    if context.sign_in not in ("", *WAYS):
        where = f"context {context.name!r}" if context.name else SIGN_IN
        raise UsageError(f"{where}: {context.sign_in!r} is no way to sign in; the ways are {', '.join(WAYS)}")
    return context
