"""The proposals about drift, in the table of fleets: an entity for each cluster that has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from shared.adapters.tables.clusters import FLEETS
from shared.adapters.tables.entities import packed, unpacked
from shared.adapters.tables.storage import Storage, etag_of
from shared.ports.state import Proposal

_PROPOSAL: TypeAdapter[Proposal] = TypeAdapter(Proposal)


class ProposalsTable:
    """The part of the State port that is about proposals."""

    _storage: Storage
    _fleet: str

    def proposals(self) -> Sequence[Proposal]:
        """Return all proposals, by cluster."""
        found = self._storage.query(FLEETS, "PartitionKey eq @key", key=self._proposals)
        return [_proposal(entity) for entity in found]

    def proposal(self, cluster: str) -> Proposal | None:
        """Return the proposal of a cluster, or None."""
        entity = self._storage.get(FLEETS, self._proposals, cluster)
        return _proposal(entity) if entity is not None else None

    def save_proposal(self, proposal: Proposal) -> Proposal:
        """Write a proposal over its version, and return it as saved; raise Stale."""
        body = packed(_PROPOSAL.dump_json(proposal, exclude={"etag"}).decode())
        entity = {"PartitionKey": self._proposals, "RowKey": proposal.cluster, **body}
        return replace(proposal, etag=self._storage.write(FLEETS, entity, proposal.etag))

    def remove_proposal(self, proposal: Proposal) -> None:
        """Remove a proposal if it is still this version; raise Stale."""
        self._storage.delete(FLEETS, self._proposals, proposal.cluster, proposal.etag)

    @property
    def _proposals(self) -> str:
        return f"proposals|{self._fleet}"


def _proposal(entity: Any) -> Proposal:
    return replace(_PROPOSAL.validate_json(unpacked(entity)), etag=etag_of(entity))
