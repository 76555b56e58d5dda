"""The stored text of a value: JSON that its class reads, with the version of its form.

Every time in it has a zone. A text that cannot be read raises WrongText, which says where and what kind of
error, and quotes nothing of it. A list names the records that it lacks for that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from shared.frozen import dataclass

# The forms of what is stored and sent: the one place where an older one is read, and a newer one refused.
#
# Each record and each message says the version of its form. A release that changes a form, so that an
# earlier one would misread it, gives the form its next version, and adds to ``UPGRADES`` what turns an
# older one into it.

Json = Mapping[str, Any]
Upgrades = Mapping[tuple[str, int], Callable[[Json], Json]]

VERSION = "schema_version"
"""The field that has the version of a form."""
FORM = 1
"""The version of the forms that no release has changed."""
UPGRADES: Upgrades = {}
"""By the name of a form and a version of it: what returns the next version."""


class NewerForm(Exception):
    """A record or a message has a newer form: it is left, as it is, to an instance that knows that."""

    def __init__(self, form: str, found: int, known: int) -> None:
        super().__init__(f"{form} has the form {found}, and this app knows {known}: a newer app handles it")


def present(form: str, known: int, stored: Json, upgrades: Upgrades = UPGRADES) -> Json:
    """Return what is stored in the version of its form that is ``known``.

    Raise NewerForm for a newer version, and ValueError for none.
    """
    found = stored.get(VERSION)
    if type(found) is not int or found < 1:
        raise ValueError(f"{VERSION} is missing, or is no version")
    if found > known:
        raise NewerForm(form, found, known)
    for version in range(found, known):
        stored = {**upgrades[form, version](stored), VERSION: version + 1}
    return stored


T = TypeVar("T")
_KINDS: Mapping[str, str] = {
    "missing": "is missing",
    "json_invalid": "is no JSON",
    "timezone_aware": "is a time without a zone",
    "enum": "has an unknown value",
}
"""What kind of error it is, by pydantic's type of it."""
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,60}")
"""What of a place is shown: names of fields, and no key that somebody chose."""


class WrongText(ValueError):
    """What is stored cannot be read: where in it, and what kind of error; nothing of it is quoted."""


class NewerText(WrongText):
    """What is stored has a newer form: nobody replaces it but an instance that knows that."""


class StoredText(Generic[T]):
    """Writes the values of a class as text, and reads them again; ``version`` is that of its form."""

    def __init__(self, kind: Any, version: int = FORM, upgrades: Upgrades = UPGRADES) -> None:
        self._kind, self._form, self._version, self._upgrades = kind, kind.__name__, version, upgrades
        self._start = f'{{"{VERSION}":{version},'

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self._kind)  # on first use: it takes milliseconds, and a process uses a few

    @cached_property
    def _validator(self) -> SchemaValidator:
        return SchemaValidator(_with_zones(self._adapter.core_schema), _use_prebuilt=False)

    def write(self, value: T, *without: str) -> str:
        """Return the text of a value, ``without`` some fields of it."""
        text = self._adapter.dump_json(value, exclude={*without} or None).decode()
        return self._start + text[1:] if text != "{}" else f"{self._start[:-1]}}}"

    def read(self, text: str) -> T:
        """Return the value of a text; raise WrongText."""
        if isinstance(text, str):
            text = "{" + text[len(self._start) :] if text.startswith(self._start) else self._present(text)
        try:
            value: T = self._validator.validate_json(text)
        except ValidationError as error:
            raise WrongText(_described(error)) from None
        return value

    def _present(self, text: str) -> str:
        """Return the text in the present form, without its version; one that is no object as it is."""
        try:
            stored = json.loads(text)
        except (ValueError, RecursionError):
            return text
        if not isinstance(stored, dict):
            return text
        try:
            found = present(self._form, self._version, stored, self._upgrades)
        except NewerForm as error:
            raise NewerText(str(error)) from None
        except ValueError as error:
            raise WrongText(str(error)) from None
        return json.dumps({key: value for key, value in found.items() if key != VERSION})


def _described(error: ValidationError) -> str:
    first, *others = error.errors(include_input=False, include_url=False, include_context=False)
    path = ".".join(str(part) if _is_shown(part) else "*" for part in first["loc"])
    kind = _KINDS.get(first["type"], f"is wrong ({first['type']})")
    more = f", and {len(others)} more" if others else ""
    return f"{path or 'the text'} {kind}{more}"


def _is_shown(part: int | str) -> bool:
    return isinstance(part, int) or _FIELD.fullmatch(part) is not None


def _with_zones(schema: Any) -> Any:
    """Return a core schema in which every time has a zone."""
    if isinstance(schema, list | tuple):
        return type(schema)(map(_with_zones, schema))
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "datetime":
        return {**schema, "tz_constraint": "aware"}
    return {key: value if key == "metadata" else _with_zones(value) for key, value in schema.items()}


CLUSTER = "cluster"


@dataclass(frozen=True)
class UnreadableRecord:
    """A record that cannot be read: what it is of, its place, and where in it which kind of error is.

    ``kind`` is what the record stores, such as ``CLUSTER``; ``key`` is its RowKey, for a cluster the name.
    ``problem`` quotes nothing of the record. ``newer``: it has the form of a newer version.
    """

    kind: str
    table: str
    partition: str
    key: str
    problem: str
    newer: bool = False

    def __str__(self) -> str:
        place = f"the record {self.key} in the partition {self.partition} of the table {self.table}"
        return f"{place} cannot be read: {self.problem}"


class RecordList(list[T]):
    """What a list has that can be read; ``unreadable`` are the records that it lacks."""

    def __init__(self, found: Iterable[T] = (), unreadable: Iterable[UnreadableRecord] = ()) -> None:
        super().__init__(found)
        self.unreadable: Sequence[UnreadableRecord] = tuple(unreadable)

    @property
    def unreadable_names(self) -> frozenset[str]:
        """The keys of the records that cannot be read: of clusters, the names."""
        return frozenset(record.key for record in self.unreadable)

    def keyed(self, key: Callable[[T], str]) -> dict[str, T | UnreadableRecord]:
        """Return what the list has by its key, with the records that cannot be read by theirs."""
        return {key(item): item for item in self} | {record.key: record for record in self.unreadable}
