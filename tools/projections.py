"""A plugin of mypy for ``projected`` of ``shared/app/api/projection.py``, which fills objects by names.

For each call it looks up every field of the shape, as ``projected`` does: in what is computed, and then in
each source. A field that none has, or that has another type than its JSON, is an error at the call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from mypy.checker import TypeChecker
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import Context, TypeInfo
from mypy.plugin import FunctionContext, Plugin
from mypy.subtypes import is_subtype
from mypy.types import (
    AnyType,
    Instance,
    LiteralType,
    NoneType,
    ProperType,
    TupleType,
    Type,
    TypedDictType,
    UnionType,
    get_proper_type,
)

PROJECTED = "shared.app.api.projection.projected"
_TEXTS = frozenset({"enum.Enum", "datetime.date"})
"""What becomes a text; ``datetime`` is a ``date``."""


class Projections(Plugin):
    """Checks calls of ``projected``."""

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        """Return the check for ``projected`` alone."""
        return _checked if fullname == PROJECTED else None


def plugin(_: str) -> type[Plugin]:
    """Return the plugin, whatever the version of mypy."""
    return Projections


def _checked(call: FunctionContext) -> Type:
    shape, checker = get_proper_type(call.default_return_type), call.api
    if not isinstance(shape, TypedDictType) or not isinstance(checker, TypeChecker):
        return shape  # of a function that is generic itself
    computed = {
        name: get_proper_type(of)
        for name, of in zip(call.arg_names[2], call.arg_types[2], strict=True)
        if name is not None
    }
    sources = [get_proper_type(of) for of in call.arg_types[1]]
    for problem in _Call(checker, call.context).problems(shape, sources, computed):
        checker.fail(problem, call.context)
    return shape


class _Call:
    """A call that is checked, at its place."""

    def __init__(self, checker: TypeChecker, place: Context) -> None:
        self._checker, self._place = checker, place

    def problems(
        self, shape: TypedDictType, sources: Sequence[ProperType], computed: Mapping[str, ProperType]
    ) -> Iterator[str]:
        """Yield a sentence for each field that nothing has, or that has another type."""
        what = (shape.fallback.type.fullname if shape.fallback else "").rpartition(".")[2]
        yield from (f"{what} has no field {name}" for name in computed.keys() - shape.items.keys())
        for name, field in shape.items.items():
            found = computed[name] if name in computed else self._found(name, sources)
            if found is None:
                yield f"{what}.{name} is computed by nobody, and no source has it"
            elif not self._fits(found, get_proper_type(field)):
                yield f"{what}.{name} has the type {field}, and gets {found}"

    def _found(self, name: str, sources: Sequence[ProperType]) -> ProperType | None:
        """Return the type of a field in the first source that has it; where that is None, it is empty."""
        attribute = re.sub("[A-Z]", r"_\g<0>", name).lower()
        for source in sources:
            for known in (attribute, attribute.removesuffix("_at")):
                kinds = [kind for kind in _kinds(source) if not isinstance(kind, NoneType)]
                found = [self._member(kind, name, known) for kind in kinds]
                types = [kind for kind in found if kind is not None]
                if types and len(types) == len(kinds):
                    return get_proper_type(UnionType.make_union(types))
        return None

    def _member(self, source: ProperType, name: str, attribute: str) -> ProperType | None:
        if isinstance(source, AnyType):
            return source
        if isinstance(source, TypedDictType):
            return get_proper_type(source.items[name]) if name in source.items else None
        source = _instance(source)
        if not isinstance(source, Instance):
            return None
        self._checker.module_refs.add(source.type.module_name)  # which a change of makes mypy look again
        if mapping := _base(source, "typing.Mapping"):
            value = get_proper_type(mapping.args[1])  # what its keys are is not known
            return value if isinstance(value, AnyType) else None
        if not source.type.has_readable_member(attribute):
            return None
        read = self._checker.expr_checker.analyze_external_member_access(attribute, source, self._place)
        return get_proper_type(read)

    def _fits(self, value: ProperType, field: ProperType) -> bool:
        """Return whether the JSON of a value is what a field of this type has."""
        return all(any(self._is(kind, wanted) for wanted in _kinds(field)) for kind in _kinds(value))

    def _is(self, value: ProperType, field: ProperType) -> bool:
        if isinstance(value, AnyType) or isinstance(field, AnyType) or is_subtype(value, field):
            return True
        if isinstance(field, TypedDictType):
            return not isinstance(value, NoneType) and not [*self.problems(field, [value], {})]
        value = _instance(value)
        if not isinstance(value, Instance) or not isinstance(field, Instance):
            return False
        if field.type.fullname == "builtins.str":
            return any(_base(value, name) for name in _TEXTS)
        if field.type.fullname == "builtins.dict":
            mapping = _base(value, "typing.Mapping")
            return mapping is not None and all(map(is_subtype, mapping.args, field.args))
        items = _base(value, "typing.Iterable") if field.type.fullname == "builtins.list" else None
        return items is not None and self._fits(*map(get_proper_type, (items.args[0], field.args[0])))


def _kinds(of: ProperType) -> Sequence[ProperType]:
    return [get_proper_type(kind) for kind in of.items] if isinstance(of, UnionType) else [of]


def _instance(of: ProperType) -> ProperType:
    """Return the class of a tuple and of a literal."""
    if isinstance(of, TupleType):
        return of.partial_fallback
    return of.fallback if isinstance(of, LiteralType) else of


def _base(value: Instance, name: str) -> Instance | None:
    """Return a type as this base of it, None for one that has not that base."""
    found: TypeInfo | None = next((kind for kind in value.type.mro if kind.fullname == name), None)
    return map_instance_to_supertype(value, found) if found else None
