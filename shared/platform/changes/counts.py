"""How many objects go with a definition that a commit removes: git has few of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from shared.frozen import dataclass
from shared.kubernetes.readiness.observation import ObjectCount
from shared.platform.changes.guards import PlatformChange
from shared.platform.changes.objects import is_definition, kind_defined, objects_in, value_at
from shared.sentences import many

Counts = Mapping[str, Mapping[str, ObjectCount]]
"""What was counted of each cluster, by the names of definitions."""
DefinedKind = tuple[str, str, str]
"""The name of a definition, and the API version and the kind that it defines."""


def removed_kinds(change: PlatformChange) -> Iterator[DefinedKind]:
    """Yield the kinds whose definitions a change deletes, and with them everybody's objects."""
    for found in change.consequences:
        if not (found.destroys and is_definition(found.id) and found.manifest):
            continue
        group, kind = kind_defined(found.manifest)
        versions = objects_in(value_at(found.manifest, "spec.versions"))
        served = [version for _, version in versions if version.get("served")]
        if group and kind and served:
            yield found.id.name, f"{group}/{served[0].get('name')}", kind


@dataclass(frozen=True)
class Total:
    """What is counted on some clusters together; ``at`` is the oldest of these times, None for none."""

    objects: int
    clusters: int
    unknown: int = 0
    at: datetime | None = None
    more: bool = False

    def __str__(self) -> str:
        if self.at is None:
            return "how many of them exist is unknown: no cluster has counted them yet"
        least = "at least " if self.more else ""
        known = many(self.clusters - self.unknown, "cluster")
        rest = f"; unknown on {self.unknown} more" if self.unknown else ""
        return f"{least}{many(self.objects, 'object')} on {known}, counted {self.at:%Y-%m-%d %H:%M} UTC{rest}"


def total(definition: str, clusters: Sequence[str], counts: Counts) -> Total:
    """Return how many objects of a definition clusters have together."""
    found = [counts.get(name, {}).get(definition) for name in clusters]
    known = [reading for reading in found if reading is not None and reading.objects is not None]
    return Total(
        sum(reading.objects or 0 for reading in known),
        len(clusters),
        len(clusters) - len(known),
        min((reading.at for reading in known), default=None),
        any(reading.more for reading in known),
    )
