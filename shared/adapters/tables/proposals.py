"""The proposals about drift, in the table of fleets: an entity for each cluster that has one."""

from __future__ import annotations

from dataclasses import replace

from shared.adapters.tables.clusters import FLEETS
from shared.adapters.tables.entities import packed
from shared.adapters.tables.reading import Entity, Reader, text_of
from shared.adapters.tables.storage import Storage, etag_of
from shared.cluster.forms import Listed, StoredText
from shared.ports.state import Proposal

_PROPOSAL = StoredText[Proposal](Proposal)


class ProposalsTable:
    """The part of the State port that is about proposals."""

    _storage: Storage
    _reader: Reader
    _fleet: str

    def proposals(self) -> Listed[Proposal]:
        """Return all proposals, by cluster."""
        found = self._storage.query(FLEETS, "PartitionKey eq @key", key=self._proposals)
        return self._reader.listed("proposal", FLEETS, found, proposal_of)

    def proposal(self, cluster: str) -> Proposal | None:
        """Return the proposal of a cluster, or None."""
        entity = self._storage.get(FLEETS, self._proposals, cluster)
        return self._reader.value("proposal", FLEETS, entity, proposal_of) if entity is not None else None

    def save_proposal(self, proposal: Proposal) -> Proposal:
        """Write a proposal over its version, and return it as saved; raise Stale."""
        body = packed(_PROPOSAL.write(proposal, "etag"))
        entity = {"PartitionKey": self._proposals, "RowKey": proposal.cluster, **body}
        return replace(proposal, etag=self._storage.write(FLEETS, entity, proposal.etag))

    def remove_proposal(self, proposal: Proposal) -> None:
        """Remove a proposal if it is still this version; raise Stale."""
        self._storage.delete(FLEETS, self._proposals, proposal.cluster, proposal.etag)

    @property
    def _proposals(self) -> str:
        return f"proposals|{self._fleet}"


def proposal_of(entity: Entity) -> Proposal:
    """Return what a record stores of a proposal; raise WrongText."""
    return replace(_PROPOSAL.read(text_of(entity)), etag=etag_of(entity))
