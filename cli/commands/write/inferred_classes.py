"""Classes for clusters that exist: what most clusters of a similar shape share.

A class only shortens the files of its clusters. What a cluster says otherwise stays in its own file, which is
written over its class (``cli.commands.write.imported_file.minimal_spec``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cli.commands.write.imported_file import OURS
from shared.frozen import dataclass
from shared.json_tree import Json, Path, digest_of, is_named_list

OF_A_CLUSTER = frozenset(
    {
        *OURS,
        *(
            "class",
            "environment",
            "subscriptionId",
            "resourceGroup",
            "location",
            "dnsPrefix",
            "fqdnSubdomain",
        ),
        *("nodeResourceGroup", "identity", "identityProfile"),
    }
)
"""Fields that name a cluster or what belongs to it alone."""
SIMILAR = 0.5
"""The least part of their values that two clusters of a class share: the Jaccard index."""
Value = tuple[Path, str]
_NOTHING = object()


@dataclass(frozen=True)
class InferredClass:
    """The spec of a class, and the names of the clusters that it is for: two at least."""

    spec: Mapping[str, Any]
    clusters: tuple[str, ...]


def inferred_classes(specs: Mapping[str, Json]) -> list[InferredClass]:
    """Return classes for clusters, that of the most clusters first.

    ``specs`` are the clusters by name with what their own files would have without a class. A cluster that
    is like no other is in no class.
    """
    shapes = {name: _shape(spec) for name, spec in sorted(specs.items())}
    groups: list[list[str]] = []
    for name, spec in shapes.items():
        values = frozenset(_values(spec, ()))
        alike = (group for group in groups if _similar(values, frozenset(_values(shapes[group[0]], ()))))
        group = next(alike, None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    found = (
        InferredClass(_common([shapes[name] for name in group], len(group) // 2 + 1), tuple(group))
        for group in groups
        if len(group) > 1
    )
    return sorted(
        (kind for kind in found if kind.spec), key=lambda kind: (-len(kind.clusters), kind.clusters)
    )


def _shape(spec: Json) -> Json:
    return {key: value for key, value in spec.items() if key not in OF_A_CLUSTER}


def _values(value: Any, path: Path) -> Iterator[Value]:
    """Yield each value that is not an object, as its path and a digest."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _values(inner, (*path, key))
    elif is_named_list(value):
        for item in value:
            yield from _values(item, (*path, f"[{item['name']}]"))
    else:
        yield path, digest_of(value)


def _similar(values: frozenset[Value], others: frozenset[Value]) -> bool:
    together = values | others
    return bool(together) and len(values & others) >= SIMILAR * len(together)


def _common(documents: Sequence[Json], least: int) -> dict[str, Any]:
    """Return the entries that at least so many objects share."""
    keys = dict.fromkeys(key for document in documents for key in document)
    found = {
        key: _common_value([document[key] for document in documents if key in document], least)
        for key in keys
    }
    return {key: value for key, value in found.items() if value is not _NOTHING}


def _common_value(values: Sequence[Any], least: int) -> Any:
    if len(values) < least:
        return _NOTHING
    if all(isinstance(value, Mapping) and value for value in values):
        return _common(values, least) or _NOTHING
    if all(is_named_list(value) and value for value in values):
        return _common_items(values, least) or _NOTHING
    digest, count = Counter(map(digest_of, values)).most_common(1)[0]
    return next(value for value in values if digest_of(value) == digest) if count >= least else _NOTHING


def _common_items(lists: Sequence[Sequence[Json]], least: int) -> list[dict[str, Any]]:
    """Return the items, by name, of which at least so many lists share more than the name."""
    by_name: dict[str, list[Json]] = {}
    for items in lists:
        for item in items:
            by_name.setdefault(item["name"], []).append(item)
    shared = (_common(items, least) for items in by_name.values() if len(items) >= least)
    return [item for item in shared if len(item) > 1]
