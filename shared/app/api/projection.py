"""Objects of the API, filled from values that have the same fields.

``tools/projections.py`` has mypy check each call: that the values have the fields, and of which types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from enum import Enum
from functools import cache
from operator import attrgetter, itemgetter
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints, is_typeddict

Shape = TypeVar("Shape")
_JSON = frozenset({str, int, float, bool, NoneType})


def projected(shape: type[Shape], *sources: object, **computed: object) -> Shape:
    """Return an object of the API: what is not computed are the fields of the same names of its sources.

    The first source that has a field counts; ``readAt`` may be its ``read``. Times, enums and collections
    become what JSON has of them, and a part that is an object itself what the shape has in its place. With a
    source that is None, what no other one has is empty: null, or "". Otherwise it is an AttributeError.
    """
    values = (computed, *sources)
    key = (shape, *computed, *map(type, sources))
    plan = _PLANS.get(key) or _PLANS.setdefault(key, _plan(shape, values))
    found = {}
    for name, number, read, part in plan:
        value = read(values[number])
        found[name] = value if type(value) in _JSON else _plain(value, part)
    return cast("Shape", found)


def exact(moment: datetime) -> str:
    """Return a time that is compared with others."""
    return moment.isoformat(timespec="milliseconds")


def iso(moment: datetime | None) -> str | None:
    """Return a time as the API writes it."""
    return moment.isoformat(timespec="seconds") if moment else None


_Part = type[Any] | None
_Field = tuple[str, int, Callable[[Any], object], _Part]
"""A field of a shape: which value has it, what reads it there, and the shape of its parts."""
_PLANS: dict[tuple[object, ...], tuple[_Field, ...]] = {}
"""By a shape, the names of what is computed, and the types of the sources."""


def _plan(shape: type[Any], values: tuple[Any, ...]) -> tuple[_Field, ...]:
    hints, computed = get_type_hints(shape), values[0]
    if not computed.keys() <= hints.keys():
        raise TypeError(f"{shape.__name__} has not all of {', '.join(computed)}")
    return tuple((name, *_reader(name, hint, values), _part_of(hint)) for name, hint in hints.items())


def _reader(name: str, hint: Any, values: tuple[Any, ...]) -> tuple[int, Callable[[Any], object]]:
    attribute = re.sub("[A-Z]", r"_\g<0>", name).lower()
    for number, value in enumerate(values):
        if isinstance(value, Mapping):
            if name in value:
                return number, itemgetter(name)
            continue
        for known in (attribute, attribute.removesuffix("_at")):
            if hasattr(value, known):
                return number, attrgetter(known)
    if None not in values:
        raise AttributeError(f"no source has {name}")
    empty = get_origin(hint) or hint
    return 0, lambda _: None if NoneType in get_args(hint) else empty()


def _part_of(hint: Any) -> _Part:
    kinds = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    return next((of for kind in kinds for of in (kind, *get_args(kind)) if is_typeddict(of)), None)


def _plain(value: Any, part: _Part) -> object:
    """Return the JSON of a value, or of the parts of another shape that it has."""
    kind: Any = type(value)
    return _conversion(kind)(value, part)


@cache
def _conversion(kind: type[Any]) -> Callable[[Any, _Part], object]:
    if issubclass(kind, Enum):
        return lambda value, _: value.value
    if issubclass(kind, str | int | float | NoneType):
        return lambda value, _: value
    if issubclass(kind, datetime):
        return lambda value, _: iso(value)
    if issubclass(kind, date):
        return lambda value, _: value.isoformat()
    if issubclass(kind, Mapping):
        return lambda value, _: dict(value)
    if issubclass(kind, Iterable):
        return lambda value, part: [_plain(entry, part) for entry in value]
    return lambda value, part: value if part is None else projected(part, value)
