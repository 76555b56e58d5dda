"""The shape of request bodies: names, JSON types and enum values, computed from the models of Azure's
library.

AKS decodes a body strictly since its API version 2024-01-01 (github.com/Azure/AKS/issues/4060): an unknown
name or a wrong JSON type is ``UnmarshalError``, as the text of Go's ``encoding/json``, which also takes
names in another case (pkg.go.dev/encoding/json#Unmarshal). A value outside an enum is ``InvalidParameter``.
What only Azure writes is decoded and ignored.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import date, datetime
from enum import Enum
from functools import cache, cached_property, partial
from importlib import import_module
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from azure.mgmt.containerservice import models
from azure.mgmt.kubernetesconfiguration.extensions import models as extensions
from azure.mgmt.kubernetesconfiguration.fluxconfigurations import models as configurations
from azure.mgmt.resource.resources import models as resources

from localcloud.azure.world.arm_errors import AksError, ArmError, invalid
from shared.json_tree import Json

Reader = Callable[[Any, str], Any]
"""Takes a JSON value and its path; returns the value as AKS keeps it, or raises ArmError."""
_INT32, _INT64 = 2**31, 2**63
_GO_TYPES: Mapping[type, str] = {str: "string", bool: "bool", int: "int32", float: "float64"}
_JSON_TYPES: Mapping[type, str] = {bool: "bool", str: "string", list: "array", dict: "object"}
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_NOTHING = object()
_NOT_GIVEN: Mapping[str, Any] = {
    **dict.fromkeys(("kubernetesVersion", "orchestratorVersion", "vmSize"), ""),
    "osDiskSizeGB": 0,
}
"""Values that stand for the default: azure-cli sends them (recording test_aks_create_again_should_fail)."""
_WIDE = frozenset({"fsFileMax"})
"""Integers of 64 bits: their documented range is wider than 32 (docs custom-node-configuration)."""


def read_cluster(body: Json) -> dict[str, Any]:
    """Return the body of a PUT of a cluster as AKS decodes it, without what only Azure writes."""
    return _read(models.ManagedCluster, body)


def read_pool(body: Json) -> dict[str, Any]:
    """Return the body of a PUT of an agent pool as AKS decodes it."""
    return _read(models.AgentPool, body)


def read_maintenance(body: Json) -> dict[str, Any]:
    """Return the body of a PUT of a maintenance configuration as AKS decodes it."""
    return _read(models.MaintenanceConfiguration, body)


def read_namespace(body: Json) -> dict[str, Any]:
    """Return the body of a PUT of a managed namespace as AKS decodes it."""
    return _read(models.ManagedNamespace, body)


def read_tags(body: Json) -> dict[str, str]:
    """Return the tags in the body of a PATCH of a cluster."""
    return _read(models.TagsObject, body).get("tags") or {}


def read_group(body: Json) -> dict[str, Any]:
    """Return the body of a PUT of a resource group, which Azure Resource Manager itself decodes."""
    return _read_by_arm(resources.ResourceGroup, "ResourceGroupDefinition", body)


def read_group_patch(body: Json) -> dict[str, Any]:
    """Return the body of a PATCH of a resource group."""
    return _read_by_arm(resources.ResourceGroupPatchable, "ResourceGroupPatchDefinition", body)


def read_extension(body: Json) -> dict[str, Any]:
    """Return the body of a PUT of an extension; how its provider refuses another shape is not published."""
    return _read_by_arm(extensions.Extension, "Extension", body)


def read_configuration(body: Json) -> dict[str, Any]:
    """Return the body of a PUT of a configuration of Flux, likewise."""
    return _read_by_arm(configurations.FluxConfiguration, "FluxConfiguration", body)


def unknown_field(name: str) -> ArmError:
    """Return the refusal of an unknown name (github.com/Azure/azure-rest-api-specs/issues/40740)."""
    return _unmarshal(
        f'unknown field "{name}" Check that the field is in the right location, is spelled correctly, and is '
        "supported in the API version. Visit aka.ms/aks/apiversions for more API version information."
    )


def _read(model: type, body: Json) -> dict[str, Any]:
    read: dict[str, Any] = _object(model)(body, "")
    return read


def _read_by_arm(model: type, kind: str, body: Json) -> dict[str, Any]:
    """Decode as Azure Resource Manager does (github.com/Azure/azure-sdk-for-java/issues/646)."""
    unknown = [key for key in body if key not in _object(model).fields]
    if unknown:
        detail = f"Could not find member '{unknown[0]}' on object of type '{kind}'. Path '{unknown[0]}'."
    else:
        try:
            return _read(model, body)
        except ArmError as error:
            detail = error.message.partition("json: ")[2]
    message = f"The request content was invalid and could not be deserialized: '{detail}'."
    raise ArmError(400, "InvalidRequestContent", message)


class _ModelReader:
    """The reader of one model; its fields are computed at the first use: models refer to each other."""

    def __init__(self, model: type) -> None:
        self._model = model

    @cached_property
    def fields(self) -> dict[str, tuple[str, Reader, bool]]:
        """The name, the reader, and whether only Azure writes it, by the name."""
        library = import_module(self._model.__module__.rpartition(".")[0])
        hints = get_type_hints(self._model, localns={"_models": library})
        declared = [
            (attribute, field)
            for parent in self._model.__mro__
            for attribute, field in vars(parent).items()
            if hasattr(field, "_rest_name_input")
        ]
        fields = {}
        for attribute, field in reversed(declared):
            name = field._rest_name_input or attribute
            only_azure = field._visibility == ["read"]
            fields[name] = (name, _reader(hints[attribute], name, self._model.__name__), only_azure)
        return fields

    @cached_property
    def folded(self) -> dict[str, str]:
        """The names by their form without case."""
        return {name.casefold(): name for name in self.fields}

    def __call__(self, value: Any, at: str) -> Any:
        """Return the fields that are given and that a caller may write."""
        if not isinstance(value, Mapping):
            raise _mismatch(value, self._model.__name__, at, f"containerservice.{self._model.__name__}")
        given: dict[str, Any] = {}
        for key, item in value.items():
            field = self.fields.get(key)
            if field is None:
                found = self.folded.get(key.casefold())
                if found is None:
                    raise unknown_field(key)
                field = self.fields[found]
            name, read, only_azure = field
            if item is None:
                continue
            kept = read(item, f"{at}.{name}" if at else name)
            if not (only_azure or kept is None or _NOT_GIVEN.get(name, _NOTHING) == kept):
                given[name] = kept
        return given


@cache
def _object(model: type) -> _ModelReader:
    return _ModelReader(model)


def _reader(hint: Any, name: str, owner: str) -> Reader:
    """Return the reader of a type hint."""
    origin, inner = get_origin(hint), [document for document in get_args(hint) if document is not type(None)]
    if origin in (Union, UnionType):
        enums = [document for document in inner if isinstance(document, type) and issubclass(document, Enum)]
        return partial(_enum, _values(enums[0]), owner) if enums else _reader(inner[0], name, owner)
    if origin is list:
        return partial(_list, _reader(inner[0], name, owner), owner)
    if origin is dict:
        return partial(_map, _reader(inner[1], name, owner), owner)
    if hint is Any:
        return lambda value, _: value
    if hint in (datetime, date):
        return partial(_moment, hint, owner)
    if hint is bytes:
        return partial(_base64, owner)
    if hint is int:
        return partial(_integer, _INT64 if name in _WIDE else _INT32, owner)
    if hint in (str, bool, float):
        return partial(_plain, hint, owner)
    return _object(hint)


def _values(enum: type[Enum]) -> dict[str, str]:
    return {str(member.value).casefold(): str(member.value) for member in enum.__members__.values()}


def _plain(kind: type, owner: str, value: Any, at: str) -> Any:
    fits = type(value) is kind or (kind is float and type(value) is int)
    if not fits:
        raise _mismatch(value, owner, at, _GO_TYPES[kind])
    return value


def _integer(limit: int, owner: str, value: Any, at: str) -> int:
    if type(value) is not int or not -limit <= value < limit:
        raise _mismatch(value, owner, at, "int32" if limit == _INT32 else "int64")
    return value


def _enum(values: Mapping[str, str], owner: str, value: Any, at: str) -> str | None:
    """Return the value in Azure's spelling; an empty one is not given."""
    text: str = _plain(str, owner, value, at)
    if text and text.casefold() not in values:
        allowed = ", ".join(values.values())
        raise invalid(f"The value of parameter {at} is invalid: '{text}' is none of {allowed}.", at)
    return values.get(text.casefold())


def _list(read: Reader, owner: str, value: Any, at: str) -> list[Any]:
    if not isinstance(value, list):
        raise _mismatch(value, owner, at, "[]interface {}")
    return [read(item, at) for item in value if item is not None]


def _map(read: Reader, owner: str, value: Any, at: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _mismatch(value, owner, at, "map[string]interface {}")
    return {key: read(item, f"{at}.{key}") for key, item in value.items() if item is not None}


def _moment(kind: type[date], owner: str, value: Any, at: str) -> str:
    text: str = _plain(str, owner, value, at)
    try:
        fits = kind is not datetime or _TIME.fullmatch(text) is not None
        kind.fromisoformat(text)
    except ValueError:
        fits = False
    if not fits:
        layout = "2006-01-02T15:04:05Z07:00" if kind is datetime else "2006-01-02"
        raise _unmarshal(f'parsing time "{text}" as "{layout}": cannot parse "{text}"')
    return text


def _base64(owner: str, value: Any, at: str) -> str:
    text: str = _plain(str, owner, value, at)
    try:
        b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
    except ValueError:
        raise _unmarshal("illegal base64 data at input byte 0", prefix="") from None
    return text


def _mismatch(value: Any, owner: str, at: str, wanted: str) -> ArmError:
    """Return the refusal of a JSON type, with the text of Go (github.com/Azure/azure-cli/issues/13050)."""
    given = _JSON_TYPES.get(type(value), "number")
    if given == "number" and wanted in ("int32", "int64"):
        given = f"number {value}"
    return _unmarshal(f"cannot unmarshal {given} into Go struct field {owner}.{at} of type {wanted}")


def _unmarshal(message: str, prefix: str = "json: ") -> ArmError:
    return AksError(400, "UnmarshalError", f"UnmarshalEntity encountered error: {prefix}{message}.")
