"""The types of objects: of built-in kinds from published OpenAPI documents, of CRDs from their schema.

``kubernetes-openapi.json.gz`` is created by ``tools/kubernetes_openapi.py`` from the documents of one
Kubernetes version; it names its source, version and licence. Types are compiled when they are first used.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("kubernetes-openapi.json.gz")
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SCALARS = ("string", "integer", "number", "boolean")


@dataclass(frozen=True)
class FieldProblem:
    """A field that is refused: its path, the reason of a ``Status`` cause, and the text."""

    field: str
    reason: str
    message: str


def invalid(field_path: str, value: Any, text: str) -> FieldProblem:
    """Return the problem of a value that its rule refuses."""
    return FieldProblem(field_path, "FieldValueInvalid", f"Invalid value: {as_json(value)}: {text}")


def required(field_path: str, text: str = "") -> FieldProblem:
    """Return the problem of a missing value."""
    return FieldProblem(
        field_path, "FieldValueRequired", f"Required value: {text}" if text else "Required value"
    )


def unsupported(field_path: str, value: Any, values: Iterable[str]) -> FieldProblem:
    """Return the problem of a value that is none of those supported."""
    shown = ", ".join(as_json(supported) for supported in values)
    text = f"Unsupported value: {as_json(value)}: supported values: {shown}"
    return FieldProblem(field_path, "FieldValueNotSupported", text)


def forbidden(field_path: str, text: str) -> FieldProblem:
    """Return the problem of a field that may not be set, or not be changed."""
    return FieldProblem(field_path, "FieldValueForbidden", f"Forbidden: {text}")


def as_json(value: Any) -> str:
    """Return a value as the API server shows it in its messages."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, eq=False)
class Type:
    """One type; ``name`` is that of its definition, "" for an anonymous one.

    ``sort`` is object (named fields), map (any names, one type), list, string, integer, number, boolean,
    int-or-string, quantity, or any. ``custom``: it comes from a CRD.
    """

    raw: Mapping[str, Any]
    name: str = ""
    custom: bool = False
    extra: Mapping[str, Type] = field(default_factory=dict)

    @cached_property
    def sort(self) -> str:
        """What values look like."""
        raw, written = self.raw, self.raw.get("type")
        if raw.get("x-kubernetes-int-or-string") or raw.get("format") == "int-or-string":
            return "int-or-string"
        if self.name.endswith(".Quantity"):
            return "quantity"
        if written == "object":
            if isinstance(raw.get("additionalProperties"), Mapping):
                return "map"
            return (
                "object" if raw.get("properties") or self.extra or (self.custom and not self.open) else "any"
            )
        if written == "array":
            return "list" if isinstance(raw.get("items"), Mapping) else "any"
        return str(written) if written in _SCALARS else "any"

    @property
    def open(self) -> bool:
        """Whether fields that the schema does not name are retained."""
        return bool(
            self.raw.get("x-kubernetes-preserve-unknown-fields")
            or self.raw.get("additionalProperties") is True
        )

    @cached_property
    def fields(self) -> Mapping[str, Type]:
        """The fields of an object."""
        own = {name: self._of(raw) for name, raw in (self.raw.get("properties") or {}).items()}
        if self.raw.get("x-kubernetes-embedded-resource"):
            own |= envelope()
        return {**own, **self.extra}

    @cached_property
    def item(self) -> Type:
        """The type of a list's items, or of a map's values."""
        return self._of(self.raw["items"] if self.sort == "list" else self.raw["additionalProperties"])

    @cached_property
    def keys(self) -> Mapping[str, Any]:
        """The key fields of a list that is merged by keys, each with its default (None: it has none)."""
        if self.sort != "list" or self.raw.get("x-kubernetes-list-type") != "map":
            return {}
        names = self.raw.get("x-kubernetes-list-map-keys") or ()
        return {name: self.item.fields[name].raw.get("default") for name in names if name in self.item.fields}

    @cached_property
    def is_set(self) -> bool:
        """Whether it is a list whose items are its keys."""
        return self.sort == "list" and self.raw.get("x-kubernetes-list-type") == "set"

    @cached_property
    def atomic(self) -> bool:
        """Whether an apply replaces a value as a whole."""
        if self.sort == "list":
            return not self.keys and not self.is_set
        if self.sort == "any":
            return not self.custom
        return self.raw.get("x-kubernetes-map-type") == "atomic"

    def child(self, name: str) -> Type | None:
        """Return the type of a field, or None when there is no such field."""
        if self.sort == "object":
            found = self.fields.get(name)
            return ANYTHING if found is None and self.open else found
        if self.sort == "map":
            return self.item
        return ANYTHING if self.custom else NOTHING_KNOWN

    def _of(self, raw: Mapping[str, Any]) -> Type:
        if self.custom:
            return Type(raw, custom=True)
        reference = raw.get("$ref")
        if reference is None:
            return Type(raw)
        added = {
            key: value for key, value in raw.items() if key.startswith("x-kubernetes-") or key == "default"
        }
        if not added:
            return definition(reference)
        return Type({**_document()["definitions"][reference], **added}, reference)


ANYTHING = Type({"x-kubernetes-preserve-unknown-fields": True}, custom=True)
"""A value whose type is deduced from itself: its maps are merged, its lists are replaced."""
NOTHING_KNOWN = Type({})
"""A value of a built-in kind that may be anything, and is replaced as a whole."""


@cache
def _document() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(gzip.decompress(DATA.read_bytes()))
    return found


def published_version() -> str:
    """Return the Kubernetes version of the published documents, such as "1.34.4"."""
    return str(_document()["version"])


@cache
def definition(name: str) -> Type:
    """Return a published definition."""
    return Type(_document()["definitions"][name], name)


@cache
def built_in(api_version: str, kind: str) -> Type:
    """Return the type of a built-in kind."""
    return definition(_document()["kinds"][f"{api_version} {kind}"])


@cache
def envelope() -> Mapping[str, Type]:
    """Return the fields that every object has: apiVersion, kind, metadata."""
    text = Type({"type": "string"})
    return {"apiVersion": text, "kind": text, "metadata": definition(_OBJECT_META)}


def custom(schema: Mapping[str, Any] | None) -> Type:
    """Return the type of a custom kind; ``schema`` is the ``openAPIV3Schema`` of its version."""
    return Type(schema or {"type": "object"}, custom=True, extra=envelope())
