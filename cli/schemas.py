"""JSON Schemas (draft 2020-12) of every kind, generated from the models that validate manifests.

A layer of a cluster's spec is partial: nothing in it is required, and ``null`` removes any value. The schemas
omit rules across files or fields, which ``roadstead validate`` checks. They also omit the patterns of
strings, because a string may contain a placeholder; the descriptions state these patterns.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.kinds import Cluster, ClusterClass, Environment, Fleet, System, Versions

DRAFT = "https://json-schema.org/draft/2020-12/schema"
SPEC = "clusterspec.json"
FOLDER = ".roadstead/schemas"
"""Where a fleet repository has its copy, so that editors need no network."""
KINDS: Mapping[str, type[BaseModel]] = {
    kind.__name__.lower(): kind for kind in (Fleet, Environment, Versions, ClusterClass, Cluster, System)
}
Schema = dict[str, Any]
_NAME: Schema = {"type": "string"}
NULL: Schema = {"type": "null"}
OWN: Mapping[str, Schema] = {
    "class": {**_NAME, "description": "The class to begin with: the name of a file in classes/."},
    "environment": {**_NAME, "description": "The environment: the name of a file in environments/."},
}


@cache
def _docstrings(path: Path) -> Mapping[str, Mapping[str, str]]:
    """Return the docstrings of the fields of each class in a source file."""
    classes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]
    return {definition.name: dict(_described(definition.body)) for definition in classes}


def _described(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield the fields that a string follows, with that string."""
    for field, after in pairwise(body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            yield field.target.id, inspect.cleandoc(after.value.value)


def _descriptions(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the docstrings of a model's fields; a class wins over those that it extends."""
    found: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if kind is not BaseModel and issubclass(kind, BaseModel):
            found |= _docstrings(Path(inspect.getfile(kind))).get(kind.__name__, {})
    return found


class _WithRules(GenerateJsonSchema):
    """Adds the docstrings of fields, and the rule that the check of a string states, as ``rule``.

    pydantic could read the docstrings itself while it builds the models. Then each start of the function app
    would read and parse their source code, which takes a sixth of its time.
    """

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a model, with the docstrings of its fields as descriptions."""
        result = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        for name, text in _descriptions(model).items():
            field = model.model_fields[name]
            shown = result.get("properties", {}).get(field.alias or name)
            if shown is not None:
                shown.setdefault("description", text)
        return result

    def function_after_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a checked value, with the rule of the check."""
        result = super().function_after_schema(schema)
        check: Any = inspect.unwrap(schema["function"]["function"])
        rule = inspect.getclosurevars(check).nonlocals.get("rule") if inspect.isfunction(check) else None
        return {**result, "rule": rule} if isinstance(rule, str) else result


def documents() -> dict[str, Schema]:
    """Return the schemas by the name of their file; those of kinds refer to that of a cluster's spec."""
    kinds = {f"{name}.json": _kind(model) for name, model in KINDS.items()}
    return {name: _with_descriptions(schema) for name, schema in (kinds | {SPEC: _spec()}).items()}


def _kind(model: type[BaseModel]) -> Schema:
    schema = generated(model)
    spec = schema["properties"]["spec"]
    if model is Cluster:
        schema["properties"]["spec"] = _layer("ClusterSpec")
    elif model is ClusterClass:
        schema["properties"]["spec"] = _layer("ClassSpec")
    elif "$ref" in spec:
        fields = schema["$defs"][spec["$ref"].rpartition("/")[2]]["properties"]
        if "defaults" in fields:
            fields["defaults"] = _layer("Defaults")
    used = _reachable(schema, schema.pop("$defs"))
    return {"$schema": DRAFT, "title": model.__name__, **schema, "$defs": used}


def _layer(name: str) -> Schema:
    return {"$ref": f"{SPEC}#/$defs/{name}"}


def _spec() -> Schema:
    schema = generated(ClusterSpec)
    parts = {name: _partial(part) for name, part in schema.pop("$defs").items()}
    spec = _partial(schema)
    suspend = {"suspend": spec["properties"].pop("suspend")}
    for name, own, more in (
        ("Defaults", (), {}),
        ("ClassSpec", ("class",), {}),
        ("ClusterSpec", ("class", "environment"), suspend),
    ):
        fields = {key: _nullable(OWN[key]) for key in own} | spec["properties"] | more
        parts[name] = {**spec, "properties": fields}
    return {"$schema": DRAFT, "title": "Layers of a cluster's spec", "$defs": dict(sorted(parts.items()))}


def generated(model: type[BaseModel]) -> Schema:
    """Return the schema of a whole model, with rules separate from descriptions."""
    schema = _with_values(model.model_json_schema(by_alias=True, schema_generator=_WithRules))
    return {key: _tidy(value) if key != "$defs" else _each(value) for key, value in _tidy(schema).items()}


def _with_values(schema: Schema) -> Schema:
    """Return a schema that has the values of an enumeration at each field, as those of a Literal."""
    values = {f"#/$defs/{name}": part["enum"] for name, part in schema["$defs"].items() if "enum" in part}

    def inlined(value: Any) -> Any:
        if isinstance(value, list):
            return [inlined(inner) for inner in value]
        if not isinstance(value, dict):
            return value
        found = values.get(str(value.get("$ref")))
        rest = {key: inlined(inner) for key, inner in value.items() if found is None or key != "$ref"}
        return rest if found is None else {**rest, "enum": found, "type": "string"}

    parts = {name: inlined(part) for name, part in schema["$defs"].items() if "enum" not in part}
    return {**inlined(schema), "$defs": parts}


def _each(schemas: Mapping[str, Schema]) -> Schema:
    return {name: _tidy(schema) for name, schema in schemas.items()}


def _tidy(value: Any) -> Any:
    """Remove generated titles and empty defaults; join the lines of descriptions."""
    if isinstance(value, list):
        return [_tidy(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    tidy: Schema = {}
    for key, inner in value.items():
        if key in ("properties", "$defs"):
            tidy[key] = _each(inner)
        elif key == "description":
            tidy[key] = " ".join(inner.replace("``", "`").split())
        elif key == "enum":
            tidy[key] = sorted(inner)  # Python shares equal Literals, in the order of the first
        elif key == "anyOf":
            tidy[key] = [_tidy(option) for option in inner]
            rules = [option.pop("rule") for option in tidy[key] if "rule" in option]
            tidy |= {"rule": rules[0]} if rules else {}
        elif key != "title" and not (key == "default" and (inner is None or isinstance(inner, dict | list))):
            tidy[key] = inner if key in ("const", "required", "default") else _tidy(inner)
    return tidy


def _with_descriptions(value: Any) -> Any:
    """Move rules into the descriptions."""
    if isinstance(value, list):
        return [_with_descriptions(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    schema = {key: _with_descriptions(inner) for key, inner in value.items()}
    rule = schema.pop("rule", None)
    if isinstance(rule, str):
        schema["description"] = f"{schema.get('description', '')} Must be {rule}.".strip()
    return schema


def _partial(schema: Schema) -> Schema:
    """Return the schema of one layer of several."""
    fields = {name: _nullable(field) for name, field in schema.get("properties", {}).items()}
    if not fields:
        return schema
    required = ["name"] if "name" in schema.get("required", ()) else []
    if "name" in fields:
        fields["$patch"] = {"const": "delete", "description": "Removes the item of this name."}
    rest = {key: value for key, value in schema.items() if key not in ("required", "properties")}
    more: Schema = {"required": required} if required else {}
    return {**rest, "properties": fields, **more}


def _nullable(field: Schema) -> Schema:
    """Return the schema of a field that null removes, and whose list or map may be partial."""
    loose = _loose(field)
    options = [option for option in loose.pop("anyOf", ()) if option != NULL]
    if len(options) == 1:
        loose, options = {**options[0], **loose}, []
    if not options and isinstance(loose.get("type"), str) and "const" not in loose:
        more = {"enum": [*loose["enum"], None]} if "enum" in loose else {}
        return {**loose, "type": [loose["type"], "null"], **more}
    texts: Schema = {key: loose.pop(key) for key in ("description", "rule", "default") if key in loose}
    allowed = options or ([loose] if loose else [])
    return {**texts, "anyOf": [*allowed, NULL]} if allowed else texts


def _loose(field: Schema) -> Schema:
    loose = {key: value for key, value in field.items() if key not in ("minItems", "required")}
    if "anyOf" in loose:
        loose["anyOf"] = [_loose(option) for option in loose["anyOf"]]
    if isinstance(loose.get("additionalProperties"), dict):
        loose["additionalProperties"] = _nullable(loose["additionalProperties"])
    return loose


def _reachable(schema: Any, parts: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return the parts that a schema refers to, directly or through other parts."""
    reachable: dict[str, Schema] = {}
    todo = list(_references(schema))
    while todo:
        name = todo.pop()
        if name not in reachable:
            reachable[name] = parts[name]
            todo += _references(parts[name])
    return dict(sorted(reachable.items()))


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if str(value.get("$ref", "")).startswith("#"):
            yield value["$ref"].rpartition("/")[2]
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def texts() -> dict[str, str]:
    """Return the schemas as JSON texts, by the name of their file."""
    return {name: json.dumps(schema, indent=1) + "\n" for name, schema in documents().items()}


def write(folder: Path) -> None:
    """Write the schemas into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("schemas"))
