"""Ranges of versions, as Flux reads them: the newest tag that is a version within one.

Source: github.com/Masterminds/semver v3, of whose forms these are known: comparisons, ``1.x``, ``~1.2`` and
``^1.2``, joined by blanks or commas. A version with a part such as ``-rc.1`` counts only where the range
has one too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_Version = tuple[int, int, int]
_VERSION = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")
_PART = re.compile(
    r"(>=|<=|>|<|=|\^|~)?\s*v?(\d+|[xX*])(?:\.(\d+|[xX*]))?(?:\.(\d+|[xX*]))?(-[0-9A-Za-z.-]+)?"
)
_END: _Version = (10**9, 0, 0)


def newest(tags: Iterable[str], wanted: str) -> str | None:
    """Return the tag with the newest version of a range, None for none."""
    parts = [found.groups() for found in map(_PART.fullmatch, _split(wanted)) if found]
    with_parts = any(part[4] for part in parts)
    fits = []
    for tag in tags:
        found = _VERSION.fullmatch(tag)
        if found is None or (found[4] and not with_parts):
            continue
        version = _numbers(found.groups()[:3])
        if parts and all(_fits(version, *_bounds(part)) for part in parts):
            fits.append((version, not found[4], found[4] or "", tag))
    return max(fits)[3] if fits else None


def _split(wanted: str) -> list[str]:
    return [part for part in re.split(r"[\s,]+", re.sub(r"([<>=^~])\s+", r"\1", wanted)) if part]


def _numbers(parts: Iterable[str | None]) -> _Version:
    major, minor, patch = (int(part or 0) for part in parts)
    return major, minor, patch


def _bounds(part: tuple[str | None, ...]) -> tuple[_Version, _Version]:
    """Return the first version of a part of a range, and the first one after it."""
    sign, *written, _ = part
    numbers = [int(number) for number in written if number and number not in "xX*"]
    least = _numbers([str(number) for number in numbers] + [None] * (3 - len(numbers)))
    after = _after(numbers, sign or "")
    match sign:
        case ">=":
            return least, _END
        case ">":
            return _after(numbers, ""), _END
        case "<":
            return (0, 0, 0), least
        case "<=":
            return (0, 0, 0), after
    return least, after


def _after(numbers: list[int], sign: str) -> _Version:
    """Return the first version after all that begin with these numbers, or that are like them."""
    if not numbers:
        return _END
    if sign == "^":
        place = next((index for index, number in enumerate(numbers) if number), len(numbers) - 1)
    elif sign == "~":
        place = min(1, len(numbers) - 1)
    else:
        place = len(numbers) - 1
    raised = [*numbers[:place], numbers[place] + 1, *[0] * (2 - place)]
    return raised[0], raised[1], raised[2]


def _fits(version: _Version, least: _Version, after: _Version) -> bool:
    return least <= version < after
