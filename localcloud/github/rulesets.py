"""The branches that a ruleset is about: its patterns are those of Ruby's ``File.fnmatch``, by path.

docs.github.com, "Creating rulesets for a repository", says so: ``qa/*`` is about branches with one slash, and
``qa/**/*`` about any number of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_SIGNS = {"**/": "(?:[^/]+/)*", "*": "[^/]*", "?": "[^/]"}
_SIGN = re.compile(r"((?<![^/])\*\*/|\*|\?)")


def guards(patterns: Iterable[str], branch: str) -> bool:
    """Return whether one of the patterns is about a branch."""
    return any(re.fullmatch(_expression(pattern), branch) for pattern in patterns)


def _expression(pattern: str) -> str:
    return "".join(_SIGNS.get(part) or re.escape(part) for part in _SIGN.split(pattern))
