"""The kinds and fields of Kubernetes by version, as its OpenAPI documents publish them.

``kubernetes-kinds.json.gz`` is created by ``tools/kubernetes_kinds.py``; it names its source, versions and
licence. It has for each kind its definition, whether its objects are in namespaces, and the versions that
serve it; and for each definition its forms: the first and the last version of the form, the required fields,
and the type of each field. A type is one letter, or ``REFERENCE`` and the name of a definition, behind a
``LIST`` or ``MAP`` for each level of these. It is read when it is first needed.

``flux-definitions.json.gz`` has the definitions of Flux's kinds, by ``tools/flux_definitions.py``.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from shared.frozen import dataclass
from shared.kubernetes_versions import numbers

DATA = "kubernetes-kinds.json.gz"
"""The file next to this one that has them."""
FLUX = "flux-definitions.json.gz"
_OPEN = "x-kubernetes-preserve-unknown-fields"
REFERENCE, LIST, MAP = "@", "[", "{"
ANY, QUANTITY, INT_OR_STRING, BYTES = "*", "q", "x", "y"


@dataclass(frozen=True)
class PublishedKind:
    """A kind of Kubernetes; ``versions`` are the minors that serve it, such as (1, 36), oldest first."""

    definition: str
    is_namespaced: bool
    versions: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Definition:
    """The fields of an object of Kubernetes: the type of each, and those that are required."""

    name: str
    required: Sequence[str]
    fields: Mapping[str, str]


@cache
def _document(name: str = DATA) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(gzip.decompress(files(__package__).joinpath(name).read_bytes()))
    return found


def flux_definitions() -> tuple[Mapping[str, Any], ...]:
    """Return the definitions that ``flux install --export`` writes, without descriptions."""
    return tuple(_document(FLUX)["definitions"])


@cache
def flux_version() -> str:
    """Return the version of Flux whose definitions these are, such as 2.7."""
    found = re.search(r"--version=v([0-9]+\.[0-9]+)", _document(FLUX)["source"])
    return found[1] if found else ""


@cache
def flux_schemas() -> Mapping[tuple[str, str], Mapping[str, Any]]:
    """Return the schemas of Flux's kinds, by ``apiVersion`` and kind; any more field is right.

    They are for clusters whose definitions nobody here has, and whose Flux may be a newer one.
    """
    return {named: _opened(schema) for named, schema in closed_flux_schemas().items()}


@cache
def closed_flux_schemas() -> Mapping[tuple[str, str], Mapping[str, Any]]:
    """Return the schemas of Flux's kinds, by ``apiVersion`` and kind, as this version of Flux has them."""
    return {
        (f"{spec['group']}/{version['name']}", spec["names"]["kind"]): version["schema"]["openAPIV3Schema"]
        for spec in (definition["spec"] for definition in flux_definitions())
        for version in spec["versions"]
    }


def _opened(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_opened(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    inner = {key: _opened(value) for key, value in schema.items()}
    return inner | ({_OPEN: True} if schema.get("type") == "object" else {})


@cache
def minors() -> tuple[tuple[int, ...], ...]:
    """Return the minors that the documents cover, such as (1, 36), oldest first."""
    return tuple(numbers(version)[:2] for version in _document()["versions"])


def minor_of(version: str) -> tuple[int, ...]:
    """Return the minor whose documents a version of a cluster is checked against, the nearest one there is.

    Of a version that nobody knows it is the newest.
    """
    wanted = numbers(version)[:2]
    return min(max(wanted, minors()[0]), minors()[-1]) if len(wanted) == 2 else minors()[-1]


@cache
def kinds() -> Mapping[tuple[str, str], PublishedKind]:
    """Return every kind that one of the versions serves, by apiVersion and kind."""
    found: dict[tuple[str, str], PublishedKind] = {}
    for name, entry in _document()["kinds"].items():
        api_version, _, kind = name.partition(" ")
        served = tuple(minors()[number] for number in entry["in"])
        found[api_version, kind] = PublishedKind(entry["of"], entry["namespaced"], served)
    return found


@cache
def groups() -> frozenset[str]:
    """Return the groups that Kubernetes itself serves; "" is the core."""
    return frozenset(
        api_version.rpartition("/")[0] if "/" in api_version else "" for api_version, _ in kinds()
    )


@cache
def definition(name: str, minor: tuple[int, ...]) -> Definition:
    """Return a definition as a minor has it, or the form that is nearest to it."""
    number = minors().index(minor)
    variants = _document()["definitions"][name]
    first, _, required, fields = min(
        variants, key=lambda variant: max(variant[0] - number, number - variant[1], 0)
    )
    del first
    return Definition(name, required, fields)
