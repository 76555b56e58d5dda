"""Kubernetes versions: "1.33" asks for a minor, "1.33.2" for a patch, and nothing is ever taken back."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1024)
def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, () when it is none."""
    parts = version.removeprefix("v").split(".")
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else ()


def must_rise(wanted: str, current: str) -> bool:
    """Tell whether what runs is older than what is asked for; a minor alone is met by all its patches."""
    asked, runs = numbers(wanted), numbers(current)
    return bool(asked) and runs[: len(asked)] < asked[: len(runs) or None]


def runs_newer(wanted: str, current: str) -> bool:
    """Tell whether what runs is newer than what is asked for; AKS has no way back."""
    asked = numbers(wanted)
    return bool(asked) and numbers(current)[: len(asked)] > asked
