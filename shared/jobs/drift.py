"""What is stored of drift: the fields in which Azure differs from git, and how a cluster was verified."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.fleet.drift.differences import Difference

FIELDS = 25
"""So many fields of a cluster are stored; the others are counted."""
VALUE_LIMIT = 400
"""Characters of a stored value."""
NAMED = 3


@dataclass(frozen=True)
class DriftedField:
    """A field below ``spec``: its path, both values as JSON ("" for none), and since when a sweep sees that.

    A long value is cut, and then is no JSON. ``left_alone``: no job changes it.
    """

    path: str
    git: str
    live: str
    since: datetime
    left_alone: bool = False


@dataclass(frozen=True)
class Drift:
    """The fields in which a cluster differs: at least one. ``more`` counts those that are not stored."""

    first: DriftedField
    rest: tuple[DriftedField, ...] = ()
    more: int = 0

    @property
    def fields(self) -> tuple[DriftedField, ...]:
        """The stored fields."""
        return self.first, *self.rest

    @property
    def count(self) -> int:
        """The number of fields that differ."""
        return len(self.fields) + self.more

    def __str__(self) -> str:
        """Return the first paths, such as ``sku.tier, tags.cost and 2 more``."""
        more = f" and {self.count - NAMED} more" if self.count > NAMED else ""
        return ", ".join(each.path for each in self.fields[:NAMED]) + more


@dataclass(frozen=True)
class Verified:
    """How Azure showed a cluster when it was compared last.

    ``digest`` is that of the cluster if nothing differed, "" otherwise: such a cluster is compared again with
    each sweep. ``unmanaged`` names the tags, labels, taints and node pools that git does not have and that
    the cluster had when it became Ready.
    """

    digest: str = ""
    unmanaged: tuple[str, ...] = ()


def drift_from(differences: Sequence[Difference], before: Drift | None, now: datetime) -> Drift | None:
    """Return what is stored of differences, None for none; a field that differed before keeps its time."""
    since = {each.path: each.since for each in before.fields} if before else {}
    fields = [
        DriftedField(
            each.path,
            _text(each.git),
            _text(each.live),
            since.get(each.path, now),
            left_alone=each.left_alone,
        )
        for each in differences[:FIELDS]
    ]
    return Drift(fields[0], tuple(fields[1:]), len(differences) - len(fields)) if fields else None


def paths_of(drift: Drift | None) -> tuple[str, ...]:
    """Return the paths of the fields that differ."""
    return tuple(each.path for each in drift.fields) if drift else ()


def _text(value: Any) -> str:
    if value is None:
        return ""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= VALUE_LIMIT else f"{text[:VALUE_LIMIT]}..."
