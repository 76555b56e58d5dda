"""Frozen dataclasses that cost little: to define, as every process that starts does, and to copy.

Each function has the name and the meaning of the one in ``dataclasses``; a type checker sees that one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields
from functools import cache, partial
from operator import attrgetter, eq, ge, gt, le, lt
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["dataclass", "field", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass, replace  # which a type checker knows the fields of
else:
    T = TypeVar("T")

    def dataclass(kind: type | None = None, /, *, frozen: bool = False, **options: Any) -> Any:
        """Make a dataclass; of a frozen one only the constructor is compiled.

        ``dataclasses.dataclass`` compiles six functions for each class. In Python 3.11 that is two fifths of
        what a start of the app costs. A class with further options is left to it.
        """
        if not frozen or options.keys() - {"kw_only", "order"}:
            return dataclasses.dataclass(kind, frozen=frozen, **options)
        return partial(_frozen, **options)

    def replace(value: T, /, **changes: Any) -> T:
        """Return a copy with other values in some fields, as ``dataclasses.replace`` does.

        That sets each field by a call, which takes 15 times as long for a record with its 41 fields. Neither
        copies what a ``cached_property`` has found.
        """
        kind = type(value)
        names = _names(kind)
        if names is None:
            return dataclasses.replace(value, **changes)
        copy = object.__new__(kind)
        values = copy.__dict__
        values.update(value.__dict__, **changes)
        if len(values) > len(names):
            if not changes.keys() <= names:
                raise TypeError(f"{kind.__name__} has no field {', '.join(sorted(changes.keys() - names))}")
            for found in values.keys() - names:
                del values[found]
        return copy


def _frozen(kind: type[Any], *, order: bool = False, **options: Any) -> type[Any]:
    dataclasses.dataclass(init=False, repr=False, eq=False, **options)(kind)
    known = fields(kind)
    names = [given.name for given in known if given.compare]
    values: Callable[[object], Any] = attrgetter(*names) if names else lambda _: ()

    def hashed(self: object) -> int:
        return hash(values(self))

    def compared_by(comparison: Callable[[Any, Any], bool]) -> Callable[[object, object], Any]:
        def compares(self: object, other: object) -> Any:
            # NotImplemented is the answer by which Python asks the other value, as dataclasses give it.
            alike = other.__class__ is self.__class__
            return comparison(values(self), values(other)) if alike else NotImplemented

        return compares

    own = vars(kind)
    if own.get("__hash__") is None:  # Python itself sets it to None where a class has an __eq__ alone
        kind.__hash__ = hashed  # type: ignore[assignment]
    for name, function in (("__init__", None), ("__repr__", _shown), ("__eq__", compared_by(eq))):
        if name not in own:
            setattr(kind, name, function or _constructor(kind, known))
    for comparison in (lt, le, gt, ge) if order else ():
        setattr(kind, f"__{comparison.__name__}__", compared_by(comparison))
    kind.__setattr__ = _keep
    kind.__delattr__ = _keep  # type: ignore[assignment]
    return kind


def _constructor(kind: type[Any], known: Sequence[Field[Any]]) -> Any:
    """Compile the constructor as ``dataclasses`` does, which takes each field by its name."""
    scope: dict[str, Any] = {"_set": object.__setattr__, "_new": MISSING}
    by_place, by_name, lines = ["self"], ["*"], ["pass"]
    for given in known:
        name = given.name
        taken = by_name if given.kw_only else by_place
        if given.default_factory is not MISSING:
            scope[f"_of_{name}"] = given.default_factory
            taken.append(f"{name}=_new")
            lines.append(f"_set(self, {name!r}, _of_{name}() if {name} is _new else {name})")
            continue
        if given.default is not MISSING:
            scope[f"_of_{name}"] = given.default
        taken.append(name if given.default is MISSING else f"{name}=_of_{name}")
        lines.append(f"_set(self, {name!r}, {name})")
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join(by_place + (by_name if len(by_name) > 1 else []))
    exec(f"def __init__({parameters}):\n " + "\n ".join(lines), scope)  # noqa: S102
    scope["__init__"].__qualname__ = f"{kind.__qualname__}.__init__"
    return scope["__init__"]


def _shown(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _keep(self: object, name: str, *_: object) -> None:
    raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed: it is frozen")


@cache
def _names(kind: type[Any]) -> frozenset[str] | None:
    """Return the fields of a class that needs no more than their values, None of any other."""
    if hasattr(kind, "__post_init__") or hasattr(kind, "__slots__"):
        return None
    return frozenset(field.name for field in fields(kind))
