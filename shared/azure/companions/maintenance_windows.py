"""A maintenance window: when Azure may change the cluster by itself. Pure.

A window that the manifest does not name is left alone, even if it named it before. AKS fills ``startDate``
with the day of a write that has none, and refuses a write with one of the past, though it is its own answer
(github.com/hashicorp/terraform-provider-azurerm/issues/22762). So a window that is in force already has no
such date here: none is compared, and none is sent back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Self

from shared.azure.changes.comparison import overlay, without_left
from shared.azure.changes.exclusive_groups import one_schedule
from shared.azure.companions.companion import Companion
from shared.azure.differences import Difference
from shared.frozen import dataclass, replace
from shared.json_tree import Json, Path
from shared.language.desired import Desired


@dataclass(frozen=True)
class WindowCompanion(Companion):
    """A maintenance window; its fields have objects in them."""

    noun, entries, segment = "maintenance window", "maintenanceWindows", "/maintenanceconfigurations/"
    has_name_of_entry, is_removed = True, False

    today: str = ""
    """The day of the comparison, in ISO 8601; without one, no window is in force."""

    def as_of(self, today: date) -> Self:
        """Return the window as it is compared and written on a day."""
        day = today.isoformat()
        return replace(self, today=day, fields=_begun(self.fields, day))

    @classmethod
    def of(cls, desired: Desired) -> Sequence[Self]:
        """Return the windows of a manifest."""
        found = []
        for window in desired.spec.maintenance_windows:
            fields: dict[str, Any] = window.model_dump(by_alias=True, mode="json", exclude_none=True)
            resource = cls.id_of(desired.id, fields)
            found.append(cls(desired.id, fields.pop("name"), resource, fields, fields))
        return found

    def differences(self, live: Json | None, *, left_alone: bool = False) -> Iterator[Difference]:
        """Yield the leaves that differ."""
        if live is None:
            yield from super().differences(live, left_alone=left_alone)
            return
        for leaf in overlay(self._live(live), self._body(self.fields))[1]:
            yield Difference(self._at(leaf.path), leaf.new, leaf.old)

    def written(self, live: Json | None, left: Collection[str]) -> Json | None:
        """Return the body to write, which has one schedule; None for nothing."""
        if self.path in left:
            return None
        wanted = without_left(self._body(self.fields), lambda path: self._at(path) in left)
        merged, changes = overlay(self._live(live or {}), wanted)
        return self._body(one_schedule(merged, wanted)["properties"]) if changes else None

    def _live(self, live: Json) -> Json:
        return {**live, "properties": _begun(live.get("properties") or {}, self.today)}

    def _at(self, path: Path) -> str:
        return ".".join((self.path, *path))


def _begun(fields: Mapping[str, Any], today: str) -> Mapping[str, Any]:
    """Return the fields without a day of the past on which the window began."""
    window = fields.get("maintenanceWindow") or {}
    if str(window.get("startDate") or today) >= today:
        return fields
    kept = {key: value for key, value in window.items() if key != "startDate"}
    return {**fields, "maintenanceWindow": kept}
