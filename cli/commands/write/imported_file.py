"""A manifest of a cluster that exists, as it is written into a fleet repository, and the classes of many.

A class only shortens the files of its clusters: it has what most clusters of a similar shape share. What a
cluster says otherwise stays in its own file, which is written over its class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from cli.text import line
from cli.worktree import Worktree
from shared.app.api import schema
from shared.azure.changes.comparison import same
from shared.frozen import dataclass
from shared.json_tree import Json, Path, children, digest_of, is_named_list
from shared.kubernetes_versions import numbers
from shared.language.model.cluster.spec import OPERATION_FIELDS
from shared.language.resolve.manifest_file import Placeholders
from shared.language.yaml.editing import ManifestDumper
from shared.language.yaml.nodes import REMOVED, plain_value


def own_part(tree: Worktree, found: schema.Import, chosen: Mapping[str, str]) -> dict[str, Any]:
    """Return what the file of a cluster says over the fleet and its ``class`` and ``environment``."""
    name = str(found["manifest"]["metadata"]["name"])
    layers = _layers(tree, {**chosen, "name": name, "location": found["spec"]["location"]})
    own: dict[str, Any] = {key: value for key, value in chosen.items() if value}
    return own | minimal_spec(found["spec"], found["manifest"]["spec"], layers)


def _layers(tree: Worktree, values: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the merged fields of the fleet, a class and an environment, placeholders filled in."""
    base = tree.layers().base(values["class"], values["environment"])
    merged = plain_value(base.node, Placeholders(values).fill)
    return merged if isinstance(merged, dict) else {}


def comments_of(left: Sequence[str], changes: Sequence[str]) -> str:
    """Return what a manifest cannot express, and what an adoption would write, as comments of YAML."""
    comments = [f"# Left out: {line(name)}\n" for name in left]
    comments += [f"# Differs from the cluster: {line(change)}\n" for change in changes]
    return "".join(comments)


def text_of(document: Mapping[str, Any]) -> str:
    """Return a document as YAML, in its own order."""
    return yaml.dump(dict(document), Dumper=ManifestDumper, sort_keys=False, allow_unicode=True, width=100)


# A cluster's own part of its spec: what its layers lack, and removals of what the cluster lacks.

OURS = (*OPERATION_FIELDS, "flux", "minNodeImageVersion")
"""Fields that Azure does not know: the cluster inherits them from its layers."""


def minimal_spec(spec: Json, short: Json, base: Json) -> dict[str, Any]:
    """Return the spec of a cluster's own file that gives ``spec`` when it is merged over ``base``.

    ``short`` is the spec without defaults; ``base`` are the merged layers with their placeholders filled in.
    What the layers have and the cluster does not is removed.
    """
    inherited = {key: value for key, value in base.items() if key not in OURS}
    version, runs = (numbers(str(entry.get("kubernetesVersion") or "")) for entry in (inherited, spec))
    if version and runs[: len(version)] == version:
        inherited["kubernetesVersion"] = spec["kubernetesVersion"]  # any patch satisfies "1.36"
    return _entries(spec, short, inherited, ())


def _entries(full: Json, short: Json, base: Json, path: Path) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for key, value, inherited in children(full, base) or ():
        at = (*path, key)
        if inherited is None:
            if key in short:
                entries[key] = short[key]
        elif value is None:
            if not _requests_nothing(inherited, at):
                entries[key] = None
        elif own := _own(value, short.get(key), inherited, at):
            entries[key] = own[0]
    return entries


def _own(full: Any, short: Any, base: Any, path: Path) -> tuple[Any] | tuple[()]:
    """Return the value that the cluster's file needs in place of an inherited one, () for none."""
    if isinstance(full, Mapping) and isinstance(base, Mapping):
        entries = _entries(full, short if isinstance(short, Mapping) else {}, base, path)
        return (entries,) if entries else ()
    if is_named_list(full) and is_named_list(base):
        items = _items(full, short if is_named_list(short) else [], base)
        return (items,) if items else ()
    return () if same(full, base, path) and same(base, full, path) else (full,)


def _items(full: list[Any], short: list[Any], base: list[Any]) -> list[dict[str, Any]]:
    brief = {item["name"]: item for item in short}
    items: list[dict[str, Any]] = []
    for _, item, inherited in children(full, base) or ():
        name = (item or inherited)["name"]
        if item is None:
            items.append({"name": name, REMOVED[0]: REMOVED[1]})
        elif inherited is None:
            items.append({"name": name, **(brief.get(name) or item)})
        elif entries := _entries(item, brief.get(name, {}), inherited, ()):
            items.append({"name": name, **entries})
    return items


def _requests_nothing(value: Any, path: Path) -> bool:
    """Return whether a layer's value means the default, so that there is nothing to remove.

    An object without fields is removed: that it is there can ask for another field, as a NAT gateway does.
    """
    if isinstance(value, Mapping):
        return bool(value) and all(_requests_nothing(inner, (*path, key)) for key, inner in value.items())
    return same(value, None, path)


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
        values = frozenset(_leaves(spec, ()))
        alike = (group for group in groups if _similar(values, frozenset(_leaves(shapes[group[0]], ()))))
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


def _leaves(value: Any, path: Path) -> Iterator[Value]:
    """Yield each value that is not an object, as its path and a digest."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif is_named_list(value):
        for item in value:
            yield from _leaves(item, (*path, f"[{item['name']}]"))
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
