"""The promotions, in the table of fleets: an entity for each environment that has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from shared.adapters.tables.clusters import FLEETS
from shared.adapters.tables.entities import packed, unpacked
from shared.adapters.tables.storage import Storage, etag_of
from shared.ports.state import Promotion

_PROMOTION: TypeAdapter[Promotion] = TypeAdapter(Promotion)


class PromotionsTable:
    """The part of the State port that is about promotions."""

    _storage: Storage
    _fleet: str

    def promotions(self) -> Sequence[Promotion]:
        """Return all promotions, by environment."""
        found = self._storage.query(FLEETS, "PartitionKey eq @key", key=self._promotions)
        return [_promotion(entity) for entity in found]

    def promotion(self, target: str) -> Promotion | None:
        """Return the promotion to an environment, or None."""
        entity = self._storage.get(FLEETS, self._promotions, target)
        return _promotion(entity) if entity is not None else None

    def save_promotion(self, promotion: Promotion) -> Promotion:
        """Write a promotion over its version, and return it as saved; raise Stale."""
        body = packed(_PROMOTION.dump_json(promotion, exclude={"etag"}).decode())
        entity = {"PartitionKey": self._promotions, "RowKey": promotion.target, **body}
        return replace(promotion, etag=self._storage.write(FLEETS, entity, promotion.etag))

    @property
    def _promotions(self) -> str:
        return f"promotions|{self._fleet}"


def _promotion(entity: Any) -> Promotion:
    return replace(_PROMOTION.validate_json(unpacked(entity)), etag=etag_of(entity))
