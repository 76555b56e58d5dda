"""The promotions, in the table of fleets: an entity for each environment that has one."""

from __future__ import annotations

from dataclasses import replace

from shared.adapters.tables.clusters import FLEETS
from shared.adapters.tables.entities import packed
from shared.adapters.tables.reading import Entity, Reader, text_of
from shared.adapters.tables.storage import Storage, etag_of
from shared.cluster.forms import Listed, StoredText
from shared.ports.state import Promotion

_PROMOTION = StoredText[Promotion](Promotion)


class PromotionsTable:
    """The part of the State port that is about promotions."""

    _storage: Storage
    _reader: Reader
    _fleet: str

    def promotions(self) -> Listed[Promotion]:
        """Return all promotions, by environment."""
        found = self._storage.query(FLEETS, "PartitionKey eq @key", key=self._promotions)
        return self._reader.listed("promotion", FLEETS, found, promotion_of)

    def promotion(self, target: str) -> Promotion | None:
        """Return the promotion to an environment, or None."""
        entity = self._storage.get(FLEETS, self._promotions, target)
        return self._reader.value("promotion", FLEETS, entity, promotion_of) if entity is not None else None

    def save_promotion(self, promotion: Promotion) -> Promotion:
        """Write a promotion over its version, and return it as saved; raise Stale."""
        body = packed(_PROMOTION.write(promotion, "etag"))
        entity = {"PartitionKey": self._promotions, "RowKey": promotion.target, **body}
        return replace(promotion, etag=self._storage.write(FLEETS, entity, promotion.etag))

    @property
    def _promotions(self) -> str:
        return f"promotions|{self._fleet}"


def promotion_of(entity: Entity) -> Promotion:
    """Return what a record stores of a promotion; raise WrongText."""
    return replace(_PROMOTION.read(text_of(entity)), etag=etag_of(entity))
