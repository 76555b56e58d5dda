"""The differences of two inventories of one cluster, by Kustomization: what git says, and not what it does.

An object that moves from one Kustomization to another leaves the first and comes to the second. The values of
a Secret are in no text: only that they differ.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal

from shared.frozen import dataclass, field, replace
from shared.json_tree import Children, Json, Path, children, differing, is_named_list, path_text
from shared.masking import without_secrets
from shared.platform.changes.needs import needs_of
from shared.platform.credentials import HIDDEN, without_values
from shared.platform.inventory import BuiltObject, Inventory, ObjectId, Owner

_QUANTITY = re.compile(r"([+-]?[0-9.]{1,40})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?")
_POWERS = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def quantity(text: str) -> Decimal | None:
    """Return a quantity of Kubernetes as a number, None for another text.

    ``10Gi`` and ``10240Mi`` are one size, ``1000m`` and ``1`` one number: the API server writes each in one
    form (k8s.io/apimachinery ``pkg/api/resource``).
    """
    found = _QUANTITY.fullmatch(text)
    if found is None or found[1].count(".") > 1 or not found[1].strip("+-."):
        return None
    number, unit = Decimal(found[1]), found[2] or ""
    if unit.endswith("i"):
        return number * Decimal(1024) ** ("KMGTPE".index(unit[0]) + 1)
    power = int(unit[1:]) if len(unit) > 1 else _POWERS.get(unit, 0)
    return Decimal(number.scaleb(power))


Sign = Literal["+", "~", "-"]
_LONGEST = 80
_SHOWN_OF_SECRETS = ("apiVersion", "kind", "metadata", "type", "immutable")
_NOT_SHOWN = "metadata.annotations"
"""One of them, that of kubectl, has the whole Secret."""


@dataclass(frozen=True)
class FieldDifference:
    """A field that differs: its path, and both values as short text, "" for no value."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class ObjectChange:
    """An object of a Kustomization that differs; None on the side that does not have it."""

    id: ObjectId
    before: BuiltObject | None
    after: BuiltObject | None
    fields: tuple[FieldDifference, ...] = ()

    @property
    def sign(self) -> Sign:
        """Whether it comes, differs or goes."""
        return _sign(self.before, self.after)


@dataclass(frozen=True)
class OwnerChange:
    """A Kustomization that differs, or one of whose objects does.

    ``fields`` are the differences of its spec. ``renamed`` is the Kustomization that has its path on the
    other side, where it is on one alone.
    """

    id: ObjectId
    before: Owner | None
    after: Owner | None
    fields: tuple[FieldDifference, ...] = ()
    objects: tuple[ObjectChange, ...] = ()
    renamed: ObjectId | None = None

    @property
    def sign(self) -> Sign:
        """Whether it comes, differs or goes."""
        return _sign(self.before, self.after)


@dataclass(frozen=True)
class Comparison:
    """What differs; of Kustomizations without a difference there is nothing in ``owners``."""

    before: Inventory
    after: Inventory
    owners: Mapping[ObjectId, OwnerChange] = field(default_factory=dict)

    @cached_property
    def places_before(self) -> Mapping[ObjectId, tuple[ObjectId, ...]]:
        """The Kustomizations that have each object before."""
        return _places(self.before)

    @cached_property
    def places_after(self) -> Mapping[ObjectId, tuple[ObjectId, ...]]:
        """The Kustomizations that have each object after."""
        return _places(self.after)

    @cached_property
    def users_after(self) -> Mapping[ObjectId, Collection[str]]:
        """The objects that need each one by its name after."""
        users: dict[ObjectId, dict[str, None]] = {}
        for owner in self.after.owners.values():
            for user, built in owner.objects.items():
                for need in needs_of(user, built.manifest):
                    users.setdefault(need.id, {})[str(user)] = None
        return users


def compare(before: Inventory, after: Inventory) -> Comparison:
    """Return the differences; where a file moves and no object differs, there are none."""
    names = sorted(before.owners.keys() | after.owners.keys())
    changes = {name: _owner(before.owners.get(name), after.owners.get(name)) for name in names}
    found = {name: change for name, change in changes.items() if change is not None}
    return Comparison(before, after, _with_renames(found))


def _sign(before: object, after: object) -> Sign:
    return "+" if before is None else "-" if after is None else "~"


def _places(inventory: Inventory) -> Mapping[ObjectId, tuple[ObjectId, ...]]:
    found: dict[ObjectId, tuple[ObjectId, ...]] = {}
    for owner in inventory.owners.values():
        for name in owner.objects:
            found[name] = (*found.get(name, ()), owner.id)
    return found


def _owner(before: Owner | None, after: Owner | None) -> OwnerChange | None:
    """Return how a Kustomization differs, None for not at all; what is not built differs with its files."""
    known = before or after
    if known is None:
        return None
    unbuilt = before is not None and after is not None and is_unknown(before, after)
    fields = tuple(_fields({"spec": before.spec}, {"spec": after.spec})) if before and after else ()
    objects = () if unbuilt else tuple(_objects(before, after))
    if before and after and not (fields or objects or unbuilt):
        return None
    return OwnerChange(known.id, before, after, fields, objects)


def is_unknown(before: Owner, after: Owner) -> bool:
    """Return whether nobody knows how the objects of a Kustomization differ: one side is not built."""
    same = before.digest == after.digest != "" and before.unbuilt == after.unbuilt
    return bool(before.unbuilt or after.unbuilt) and not same


def _objects(before: Owner | None, after: Owner | None) -> Iterator[ObjectChange]:
    old, new = (owner.objects if owner else {} for owner in (before, after))
    for name in sorted(old.keys() | new.keys()):
        left, right = old.get(name), new.get(name)
        fields = object_differences(left.manifest, right.manifest) if left and right else ()
        if fields or not (left and right):
            yield ObjectChange(name, left, right, fields)


def _with_renames(found: Mapping[ObjectId, OwnerChange]) -> Mapping[ObjectId, OwnerChange]:
    """Add to each Kustomization that comes or goes the one on the other side with the same path."""
    gone = [change for change in found.values() if change.sign == "-"]
    new = [change for change in found.values() if change.sign == "+"]
    pairs: dict[ObjectId, ObjectId] = {}
    for alike in (_path, _names):
        for change in gone:
            other = next(
                (
                    candidate
                    for candidate in new
                    if candidate.id not in pairs and alike(candidate.after) == alike(change.before)
                ),
                None,
            )
            if other is not None and change.id not in pairs and alike(change.before):
                pairs |= {change.id: other.id, other.id: change.id}
    return {name: replace(change, renamed=pairs.get(name)) for name, change in found.items()}


def _path(owner: Owner | None) -> str:
    return owner.path if owner else ""


def _names(owner: Owner | None) -> frozenset[ObjectId]:
    return frozenset(owner.objects) if owner else frozenset()


# Fields


def object_differences(old: Json, new: Json) -> tuple[FieldDifference, ...]:
    """Return every field in which two manifests of one object differ, without values of a Secret."""
    old, new = _without_status(old), _without_status(new)
    if _stored(old) == _stored(new):
        return ()
    found = _fields(old, new)
    if "Secret" in (old.get("kind"), new.get("kind")):
        return tuple(_masked(difference) for difference in found)
    return tuple(found)


def value_differences(old: Any, new: Any) -> Iterator[tuple[Path, Any, Any]]:
    """Yield the path of every pair of leaves that differ, with both values; None is no value."""
    return differing(old, new, below=_below, equal=lambda _, left, right: left == right)


def _fields(old: Any, new: Any) -> Iterator[FieldDifference]:
    for path, before, after in value_differences(old, new):
        if _is_one_size(path, before, after):
            continue
        name = _name_at(path)
        sides = (short(without_values(side, name)) for side in (before, after))
        yield FieldDifference(path_text(path), *sides)


def _without_status(manifest: Json) -> Json:
    """Return an object without a status, which the API server takes by a resource of its own alone."""
    group = str(manifest.get("apiVersion") or "").rpartition("/")[0]
    if "." in group and not group.endswith(".k8s.io"):
        return manifest
    return {key: value for key, value in manifest.items() if key != "status"}


def _stored(manifest: Json) -> Json:
    """Return a Secret as the cluster has it: texts become data (fluxcd/pkg ``ssa/normalize``)."""
    texts = manifest.get("stringData")
    if manifest.get("kind") != "Secret" or not isinstance(texts, Mapping):
        return manifest
    data = manifest.get("data")
    encoded = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
    rest = {key: value for key, value in manifest.items() if key != "stringData"}
    return {**rest, "data": {**(data if isinstance(data, Mapping) else {}), **encoded}}


_SIZES = ("requests", "limits", "capacity", "hard")


def _is_one_size(path: Path, old: Any, new: Any) -> bool:
    """Return whether two texts of a quantity mean the same."""
    if len(path) < 2 or path[-2] not in _SIZES or isinstance(old, Mapping) or isinstance(new, Mapping):
        return False
    sizes = [quantity(str(side)) for side in (old, new)]
    return sizes[0] is not None and sizes[0] == sizes[1]


def _name_at(path: Path) -> str:
    """Return what a value is called: its key, or the name next to it, as that of a container's variable."""
    last = str(path[-1]) if path else ""
    if last != "value":
        return last
    return str(path[-2]).strip("[]") if len(path) > 1 else last


def _masked(difference: FieldDifference) -> FieldDifference:
    if difference.path.split(".")[0] in _SHOWN_OF_SECRETS and not difference.path.startswith(_NOT_SHOWN):
        return difference
    old, new = (HIDDEN if side else "" for side in (difference.old, difference.new))
    return FieldDifference(difference.path, old, new)


def _below(_path: Path, old: Any, new: Any) -> Children | None:
    if isinstance(old, list) and isinstance(new, list):
        left, right = _by_name(old), _by_name(new)
        if left and right:
            both = [[name for name in side if name in left and name in right] for side in (left, right)]
            return children(left, right) if both[0] == both[1] else None  # an order can have a meaning
        if len(old) == len(new) and any(isinstance(item, Mapping | list) for item in (*old, *new)):
            return [(f"[{place}]", *pair) for place, pair in enumerate(zip(old, new, strict=True))]
        return None
    return children(old, new) if isinstance(old, Mapping) and isinstance(new, Mapping) else None


def _by_name(value: Sequence[Any]) -> Json | None:
    """Return a list of objects by their names, None where they do not each have one of their own."""
    named: list[Any] = [item.get("metadata", item) if isinstance(item, Mapping) else None for item in value]
    if not is_named_list(named):
        return None
    found = {f"[{names['name']}]": item for names, item in zip(named, value, strict=True)}
    return found if len(found) == len(value) else None


def short(value: Any) -> str:
    """Return a value as at most 80 characters on one line, "" for none; credentials are masked."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    safe = " ".join(without_secrets(text).split()) or '""'
    return safe if len(safe) <= _LONGEST else f"{safe[:38]}...{safe[-39:]}"
