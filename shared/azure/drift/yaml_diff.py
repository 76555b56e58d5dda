"""Fields that differ, as a unified diff of two YAML documents: git against Azure."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import yaml

_POOL = re.compile(r"nodePools\[([^\]]*)\](?:\.(.*))?", re.DOTALL)
_FREE_KEYS = ("tags", "nodeLabels")
"""Objects whose keys may contain a dot."""
_WIDTH = 100


class Sides(NamedTuple):
    """A field below ``spec``: its path, and both values as JSON; "" for none."""

    path: str
    git: str
    live: str


def yaml_diff(name: str, fields: Iterable[Sides]) -> str:
    """Return the diff of a cluster; only what differs is in the two documents."""
    listed = list(fields)
    git = _lines((path, value) for path, value, _ in listed)
    live = _lines((path, value) for path, _, value in listed)
    headers = f"{name} in git", f"{name} in Azure"
    return "\n".join(difflib.unified_diff(git, live, *headers, lineterm="", n=len(git) + len(live)))


def steps_of(path: str) -> list[str]:
    """Return the steps of a field's path; ``[name]`` is the item of a list."""
    pool = _POOL.fullmatch(path)
    if pool is None:
        return _keys(path)
    return ["nodePools", f"[{pool[1]}]", *(_keys(pool[2]) if pool[2] else ())]


def _lines(values: Iterable[tuple[str, str]]) -> list[str]:
    """Return one side as YAML, each pool below its name."""
    spec: dict[str, Any] = {}
    pools: dict[str, dict[str, Any]] = {}
    for path, text in values:
        pool = _POOL.fullmatch(path)
        if pool is None:
            _put(spec, _keys(path), text)
        elif text and not pool[2]:
            pools.setdefault(pool[1], {}).update(_parsed(text))
        elif pool[2]:
            _put(pools.setdefault(pool[1], {}), _keys(pool[2]), text)
    if pools:
        spec["nodePools"] = [{"name": name, **pool} for name, pool in sorted(pools.items())]
    document: str = yaml.safe_dump({"spec": spec}, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return document.splitlines()


def _put(document: dict[str, Any], keys: list[str], text: str) -> None:
    for key in keys[:-1]:
        document = document.setdefault(key, {})
    if text:
        document[keys[-1]] = _parsed(text)


def _keys(path: str) -> list[str]:
    return list(_split(path))


def _split(path: str) -> Iterator[str]:
    key, dot, rest = path.partition(".")
    yield key
    if dot:
        yield from ((rest,) if key in _FREE_KEYS else _split(rest))


def _parsed(text: str) -> Any:
    """Return the value of JSON; a value that was cut is a string."""
    try:
        return json.loads(text)
    except ValueError:
        return text
