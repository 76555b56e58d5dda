"""The OpenAPI document of the API, from the declarations of its routes: who may call, and what is said.

What is answered are the classes of ``schema``, which the server writes and the command reads. A schema of
OpenAPI 3.1 is JSON Schema 2020-12.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import BaseModel

from shared.frozen import dataclass

Json = dict[str, Any]
_PARTS = "#/components/schemas/"
_TYPES: Mapping[Any, Json] = {
    **{str: {"type": "string"}, bool: {"type": "boolean"}, int: {"type": "integer"}},
    **{float: {"type": "number"}, NoneType: {"type": "null"}, Any: {}},
}
_PLACES: Mapping[str, Json] = {
    "name": {"description": "a cluster of the fleet; 404 for another one"},
    "commit": {"description": "the full id of a commit with a plan or a rollout; 404 for another one"},
}
_SECURITY = {
    "token": {"type": "http", "scheme": "bearer", "description": "a token of Entra for the API"},
    "key": {"type": "apiKey", "in": "header", "name": "x-functions-key"},
}


@dataclass(frozen=True)
class Operation:
    """A route of the API: who may call it, the classes of what it takes and answers, and its parameters."""

    name: str
    method: Literal["GET", "POST"]
    path: str
    role: str
    answer: Any
    body: type[BaseModel] | None = None
    query: Sequence[str] = ()


def document(operations: Iterable[Operation]) -> Json:
    """Return the document; raise KeyError for a class that has no JSON."""
    parts: Json = {"Error": {"type": "object", "properties": {"error": {"type": "string"}}}}
    paths: dict[str, Json] = {}
    for operation in operations:
        path = paths.setdefault(f"/api/{operation.path}", {})
        path[operation.method.lower()] = _operation(operation, parts)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Roadstead", "version": "v1alpha"},
        "security": [{name: []} for name in _SECURITY],
        "paths": paths,
        "components": {"schemas": parts, "securitySchemes": _SECURITY},
    }


def _operation(operation: Operation, parts: Json) -> Json:
    parameters = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": _TYPES[str],
            "description": _PLACES.get(name, ""),
        }
        for name in re.findall(r"{(\w+)}", operation.path)
    ]
    parameters += [{"name": name, "in": "query", "schema": _TYPES[str]} for name in operation.query]
    found: Json = {
        "operationId": operation.name,
        "summary": f"For the role {operation.role}",
        "parameters": parameters,
        "responses": {
            "2XX": _content(_schema(operation.answer, parts), "what was asked for, or a receipt"),
            "default": _content({"$ref": f"{_PARTS}Error"}, "why not, in a sentence"),
        },
    }
    if operation.body is None:
        return found
    taken = operation.body.model_json_schema(ref_template=f"{_PARTS}{{model}}")
    parts |= taken.pop("$defs", {})
    if operation.method == "POST":
        return {**found, "requestBody": _content(taken)}
    required = taken.get("required", ())
    parameters += [
        {"name": name, "in": "query", "required": name in required, "explode": False, "schema": part}
        for name, part in taken["properties"].items()
    ]
    return found


def _content(schema: Json, description: str = "") -> Json:
    content = {"content": {"application/json": {"schema": schema}}}
    return {"description": description, **content} if description else content


def _schema(hint: Any, parts: Json) -> Json:
    """Return the schema of a type; those of objects are added to ``parts``."""
    origin, given = get_origin(hint), get_args(hint)
    if origin in (UnionType, Union):
        return {"anyOf": [_schema(kind, parts) for kind in given]}
    if origin is Literal:
        return {"enum": [*given]}
    if origin is list:
        return {"type": "array", "items": _schema(given[0], parts)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(given[1], parts)}
    if not is_typeddict(hint):
        return _TYPES[hint]
    name = hint.__name__.removesuffix("View")  # the suffix is of our code, not of the API
    if name not in parts:
        parts[name] = {}  # first: a class may have itself as a part
        fields = {field: _schema(of, parts) for field, of in get_type_hints(hint).items()}
        parts[name] = {
            "type": "object",
            "description": (hint.__doc__ or "").strip(),
            "properties": fields,
            "required": [*fields],
            "additionalProperties": False,
        }
    return {"$ref": f"{_PARTS}{name}"}
