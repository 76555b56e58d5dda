"""Matches paths against the route templates of HTTP triggers, as "clusters/{name}/{*rest}".

As in Azure: literal parts win over parameters, letters match in any case, and a path that has no
function for its method is 404, never 405 (Azure/azure-functions-host#10098).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from localcloud.functions.host_config import ConfigError
from localcloud.functions.worker.function_index import Function, HttpTrigger

_CONSTRAINTS = {"": "[^/]+", "alpha": "[a-zA-Z]+", "int": r"-?\d+", "guid": "[0-9a-fA-F-]{36}"}


@dataclass(frozen=True)
class _Route:
    function: Function
    pattern: re.Pattern[str]
    methods: tuple[str, ...]
    rank: tuple[int, ...]
    """Lower wins: for each part 0 a literal, 1 a parameter, 2 a catch-all."""


class RouteTemplates:
    """The routes of an app's HTTP functions below the host's route prefix."""

    def __init__(self, functions: Sequence[Function], *, prefix: str) -> None:
        routes = [_route(f, f.trigger, prefix) for f in functions if isinstance(f.trigger, HttpTrigger)]
        self._routes = sorted(routes, key=lambda route: route.rank)

    def match(self, method: str, path: str) -> tuple[Function, Mapping[str, str]] | None:
        """Return the function for a request and its route parameters, or None."""
        for route in self._routes:
            match = route.pattern.fullmatch("/" + path.strip("/"))
            if match and (not route.methods or method in route.methods):
                return route.function, {k: v for k, v in match.groupdict().items() if v is not None}
        return None


def _route(function: Function, trigger: HttpTrigger, prefix: str) -> _Route:
    parts = [part for part in f"{prefix}/{trigger.route}".split("/") if part]
    pattern = "".join(_pattern(part) for part in parts) or "/"
    rank = tuple(2 if part.startswith("{*") else int("{" in part) for part in parts)
    return _Route(function, re.compile(pattern, re.IGNORECASE), trigger.methods, rank)


def _pattern(part: str) -> str:
    """Return the pattern of one part of a template, with the slash before it."""
    match = re.fullmatch(r"\{(\*?)([A-Za-z_]\w*)(?::(\w+))?(\?)?\}", part)
    if match is None:
        if "{" in part:
            raise ConfigError(f"the development host cannot read this part of a route: {part}")
        return "/" + re.escape(part)
    star, name, constraint, optional = match.groups()
    if star:
        return f"(?:/(?P<{name}>.*))?"
    if (constraint or "") not in _CONSTRAINTS:
        raise ConfigError(f"the development host does not know this constraint: {part}")
    pattern = f"/(?P<{name}>{_CONSTRAINTS[constraint or '']})"
    return f"(?:{pattern})?" if optional else pattern
