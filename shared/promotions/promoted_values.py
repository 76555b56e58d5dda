"""The values that a promotion can give to an environment, each a field of a cluster's spec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from shared.fleet.manifests.change_windows import span_of
from shared.fleet.manifests.promotion_rules import PromotionRule


class What(StrEnum):
    """What can be promoted."""

    VERSION = "version"
    COMPONENTS = "components"
    PLATFORM = "platform"


@dataclass(frozen=True, order=True)
class Value:
    """A field below ``spec``, such as ``flux.tag``, with its value."""

    path: str
    value: str

    @property
    def steps(self) -> Sequence[str]:
        """The path as steps."""
        return self.path.split(".")


@dataclass(frozen=True)
class Rule:
    """A rule of ``spec.promotions``."""

    source: str
    target: str
    what: tuple[What, ...]
    soak: timedelta


VERSION_PATH = "kubernetesVersion"
PLATFORM_PATHS = ("flux.tag", "flux.commit")
PATHS = (VERSION_PATH, "flux.components", "flux.extension.version", *PLATFORM_PATHS)
"""Every field that a promotion writes."""


def rules_of(written: Iterable[PromotionRule]) -> tuple[Rule, ...]:
    """Return the rules of fleet.yaml."""
    return tuple(
        Rule(each.from_, each.to, tuple(map(What, dict.fromkeys(each.what))), span_of(each.soak))
        for each in written
    )


def value_of(what: What, spec: Mapping[str, Any]) -> Value | None:
    """Return what a cluster has; None where its spec names none, as where Flux follows a branch."""
    return next(filter(None, (_at(path, spec) for path in _paths(what, spec))), None)


def values_in(spec: Mapping[str, Any]) -> frozenset[Value]:
    """Return every value of a spec, or of a part of one, that a promotion could have written."""
    return frozenset(filter(None, (_at(path, spec) for path in PATHS)))


def _paths(what: What, spec: Mapping[str, Any]) -> Sequence[str]:
    match what:
        case What.VERSION:
            return (VERSION_PATH,)
        case What.PLATFORM:
            return PLATFORM_PATHS
        case What.COMPONENTS:
            extension = (spec.get("flux") or {}).get("install") == "extension"
            return ("flux.extension.version",) if extension else ("flux.components",)


def _at(path: str, spec: Mapping[str, Any]) -> Value | None:
    found: Any = spec
    for step in path.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    return Value(path, found) if isinstance(found, str) and found else None
