"""``python -m tools.kubernetes_openapi FOLDER VERSION``: reduce the OpenAPI documents of Kubernetes.

FOLDER is ``api/openapi-spec/v3`` of the module ``k8s.io/kubernetes`` (``go mod download
k8s.io/kubernetes@VERSION``). The result has the types of the kinds that the local cloud serves, without their
descriptions. It is the same bytes every time.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from localcloud.kubernetes.schema.definitions import DATA
from localcloud.kubernetes.world.kinds import BUILT_IN

_PREFIX = "#/components/schemas/"
_KEPT = (
    "type",
    "format",
    "required",
    "default",
    "enum",
    "oneOf",
    "additionalProperties",
    "items",
    "properties",
)
_ALSO = (("v1", "DeleteOptions"),)


def reduced(folder: Path, version: str) -> dict[str, Any]:
    """Return the types of the served kinds, each definition once, by its name."""
    definitions: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    wanted = [*((kind.api_version, kind.kind) for kind in BUILT_IN), *_ALSO]
    for api_version, kind in wanted:
        path = f"apis__{api_version.replace('/', '__')}" if "/" in api_version else f"api__{api_version}"
        document = json.loads((folder / f"{path}_openapi.json").read_text())["components"]["schemas"]
        name = _named(document, api_version, kind)
        kinds[f"{api_version} {kind}"] = name
        _collect(document, name, definitions)
    return {
        "source": f"k8s.io/kubernetes@{version}, api/openapi-spec/v3",
        "licence": "Apache-2.0",
        "version": version.removeprefix("v"),
        "kinds": kinds,
        "definitions": dict(sorted(definitions.items())),
    }


def _named(document: Mapping[str, Any], api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    wanted = {"group": group, "version": version, "kind": kind}
    found = (
        name
        for name, schema in document.items()
        if wanted in schema.get("x-kubernetes-group-version-kind", ())
    )
    return next(found)


def _collect(document: Mapping[str, Any], name: str, definitions: dict[str, Any]) -> None:
    if name in definitions:
        return
    definitions[name] = _plain(document[name])
    for inner in _references(definitions[name]):
        _collect(document, inner, definitions)


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without descriptions; ``$ref`` names a definition, beside what is added to it."""
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "allOf":
            kept["$ref"] = value[0]["$ref"].removeprefix(_PREFIX)
        elif key == "$ref":
            kept["$ref"] = value.removeprefix(_PREFIX)
        elif key == "properties":
            kept[key] = {name: _plain(inner) for name, inner in sorted(value.items())}
        elif key in ("items", "additionalProperties") and isinstance(value, Mapping):
            kept[key] = _plain(value)
        elif key == "x-kubernetes-group-version-kind":
            continue
        elif key in _KEPT or key.startswith("x-kubernetes-"):
            kept[key] = value
    if kept.get("default") == {}:
        del kept["default"]
    return kept


def _references(schema: Mapping[str, Any]) -> Iterator[str]:
    if "$ref" in schema:
        yield schema["$ref"]
    for inner in (
        *schema.get("properties", {}).values(),
        schema.get("items"),
        schema.get("additionalProperties"),
    ):
        if isinstance(inner, Mapping):
            yield from _references(inner)


if __name__ == "__main__":
    content = json.dumps(reduced(Path(sys.argv[1]), sys.argv[2]), separators=(",", ":"), sort_keys=True)
    DATA.write_bytes(gzip.compress(content.encode(), 9, mtime=0))
