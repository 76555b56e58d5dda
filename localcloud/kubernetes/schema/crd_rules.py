"""What the API server validates in a CustomResourceDefinition.

Source: ``apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go``: names, one storage
version, a structural schema for each version, and versions that objects may still be stored in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from localcloud.kubernetes.schema.definitions import FieldProblem, forbidden, invalid, required


def definition_problems(spec: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    """Yield what is refused in the spec of a definition."""
    versions = spec.get("versions") or []
    if sum(bool(version.get("storage")) for version in versions) != 1:
        text = "must have exactly one version marked as storage version"
        yield invalid(f"{path}.versions", versions, text)
    for number, version in enumerate(versions):
        place = f"{path}.versions[{number}].schema.openAPIV3Schema"
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            yield required(place)
            continue
        if schema.get("type") != "object":
            yield from _root(schema, place)
        yield from _structural(schema, place)


def name_problem(name: str, spec: Mapping[str, Any]) -> FieldProblem | None:
    """Return what is wrong with the name of a definition, or None."""
    wanted = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
    return (
        None if name == wanted else invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    )


def stored_problems(value: Mapping[str, Any]) -> Iterator[FieldProblem]:
    """Yield the versions in ``status.storedVersions`` that the spec no longer has."""
    names = [version["name"] for version in value["spec"].get("versions") or ()]
    for number, name in enumerate((value.get("status") or {}).get("storedVersions") or ()):
        if name not in names:
            text = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in "
                f"{name} and removes "
                f"{name} from status.storedVersions"
            )
            yield invalid(f"status.storedVersions[{number}]", name, text)


def _root(schema: Mapping[str, Any], place: str) -> Iterator[FieldProblem]:
    if not schema.get("type"):
        yield required(f"{place}.type", "must not be empty at the root")
    else:
        yield invalid(f"{place}.type", schema["type"], "must be object at the root")


def _structural(schema: Mapping[str, Any], place: str) -> Iterator[FieldProblem]:
    """Yield what makes a schema not structural: a value without a type, an array without items."""
    untyped = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not schema.get("type") and not untyped:
        yield required(f"{place}.type", "must not be empty for specified object fields")
    if schema.get("type") == "array" and not isinstance(schema.get("items"), Mapping):
        yield required(f"{place}.items", "must be specified")
    if schema.get("properties") and schema.get("additionalProperties"):
        yield forbidden(
            f"{place}.additionalProperties", "additionalProperties and properties are mutual exclusive"
        )
    for name, inner in (schema.get("properties") or {}).items():
        yield from _structural(inner, f"{place}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), Mapping):
            yield from _structural(schema[name], f"{place}.{name}")
