"""``python -m tools.kubernetes_kinds FOLDER ...``: the kinds and fields of several versions of Kubernetes.

Each FOLDER is that of a version of the module ``k8s.io/kubernetes``, oldest first (``go mod download
k8s.io/kubernetes@VERSION``); its ``api/openapi-spec/v3`` is read. The result has what an API server creates,
each definition once for all versions in which it is the same, without descriptions and without statuses. It
is the same bytes every time. ``shared/platform/schemas/published.py`` describes the form.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shared.platform.schemas import published
from shared.platform.schemas.published import ANY, BYTES, DATA, INT_OR_STRING, LIST, MAP, QUANTITY, REFERENCE

_PREFIX = "#/components/schemas/"
_COLLECTION = re.compile(r"/apis?/.*/(?!watch/)[a-z0-9]+")
_SCALARS = {"string": "s", "integer": "i", "number": "n", "boolean": "b"}
Definition = tuple[list[str], dict[str, str]]


def reduced(folders: list[Path]) -> dict[str, Any]:
    """Return kinds and definitions, each with the numbers of its first and its last version."""
    kinds: dict[str, dict[str, Any]] = {}
    definitions: dict[str, list[list[Any]]] = {}
    versions = [folder.name.partition("@v")[2] for folder in folders]
    for number, folder in enumerate(folders):
        for path in sorted((folder / "api" / "openapi-spec" / "v3").glob("api*__v*_openapi.json")):
            document = json.loads(path.read_text())
            schemas = document["components"]["schemas"]
            for kind, name, namespaced in _created(document):
                entry = kinds.setdefault(kind, {"of": name, "namespaced": namespaced, "in": []})
                entry["in"].append(number)
                _collect(schemas, name, number, definitions, is_kind=True)
    return {
        "source": f"k8s.io/kubernetes@v{', v'.join(versions)}: api/openapi-spec/v3",
        "licence": "Apache-2.0",
        "versions": versions,
        "kinds": dict(sorted(kinds.items())),
        "definitions": dict(sorted(definitions.items())),
    }


def _created(document: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """Yield the kinds that are created at a path of their own: name, definition, whether in a namespace."""
    for path, operations in sorted(document["paths"].items()):
        action = operations.get("post") or {}
        kind = action.get("x-kubernetes-group-version-kind")
        if kind is None or "{name}" in path or not _COLLECTION.fullmatch(path):
            continue
        group, version, name = kind["group"], kind["version"], kind["kind"]
        wanted = {"group": group, "version": version, "kind": name}
        found = [
            schema
            for schema, content in document["components"]["schemas"].items()
            if wanted in content.get("x-kubernetes-group-version-kind", ())
        ]
        api_version = f"{group}/{version}" if group else version
        yield f"{api_version} {name}", found[0], "{namespace}" in path


def _collect(
    schemas: Mapping[str, Any],
    name: str,
    number: int,
    definitions: dict[str, list[list[Any]]],
    *,
    is_kind: bool = False,
) -> None:
    variants = definitions.setdefault(name, [])
    if variants and variants[-1][1] == number:
        return
    schema = schemas[name]
    properties = sorted((schema.get("properties") or {}).items())
    fields = {field: ANY if is_kind and field == "status" else _type_of(inner) for field, inner in properties}
    required = sorted(schema.get("required") or ())
    if variants and variants[-1][2:] == [required, fields] and variants[-1][1] == number - 1:
        variants[-1][1] = number
    else:
        variants.append([number, number, required, fields])
    for type_of in fields.values():
        _, found, inner = type_of.partition(REFERENCE)
        if found:
            _collect(schemas, inner, number, definitions)


def _type_of(schema: Mapping[str, Any]) -> str:
    reference = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf") or ()), "")
    if reference:
        return _named(reference.removeprefix(_PREFIX))
    if schema.get("format") == "int-or-string":
        return INT_OR_STRING
    if schema.get("type") == "array":
        return LIST + _type_of(schema["items"])
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return MAP + _type_of(schema["additionalProperties"])
    if schema.get("format") == "byte":
        return BYTES
    return _SCALARS.get(str(schema.get("type")), ANY)


def _named(name: str) -> str:
    special = {"Quantity": QUANTITY, "IntOrString": INT_OR_STRING, "Time": "s", "MicroTime": "s"}
    last = name.rpartition(".")[2]
    if (last.startswith("JSON") and last != "JSONSchemaProps") or last in ("RawExtension", "FieldsV1"):
        return ANY
    return special.get(last, REFERENCE + name)


if __name__ == "__main__":
    content = json.dumps(reduced([Path(folder) for folder in sys.argv[1:]]), separators=(",", ":"))
    Path(str(published.__file__)).with_name(DATA).write_bytes(gzip.compress(content.encode(), 9, mtime=0))
