"""The rollouts, in the table of fleets: an entity for each commit that changed clusters in stages."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from shared.adapters.tables.clusters import FLEETS
from shared.adapters.tables.entities import packed
from shared.adapters.tables.reading import Entity, Reader, text_of
from shared.adapters.tables.storage import Storage, etag_of
from shared.cluster.forms import Listed, StoredText
from shared.rollouts.rollout import Rollout, State

_ROLLOUT = StoredText[Rollout](Rollout)


class RolloutsTable:
    """The part of the State port that is about rollouts."""

    _storage: Storage
    _reader: Reader
    _fleet: str

    def rollout(self, commit: str) -> Rollout | None:
        """Return the rollout of a commit, or None."""
        entity = self._storage.get(FLEETS, self._rollouts, commit) if commit else None
        return self._reader.value("rollout", FLEETS, entity, rollout_of) if entity is not None else None

    def rollouts(self) -> Listed[Rollout]:
        """Return the rollouts that are stored, newest first."""
        found = self._storage.query(FLEETS, "PartitionKey eq @key", key=self._rollouts)
        listed = self._reader.listed("rollout", FLEETS, found, rollout_of)
        listed.sort(key=lambda rollout: rollout.began, reverse=True)
        return listed

    def save_rollout(self, rollout: Rollout) -> Rollout:
        """Write a rollout over its version, and return it as saved; raise Stale or TooLarge."""
        body = packed(_ROLLOUT.write(rollout, "etag"))
        key = {"PartitionKey": self._rollouts, "RowKey": rollout.commit}
        entity = {**key, "began": rollout.began, "state": rollout.state.value, **body}
        return replace(rollout, etag=self._storage.write(FLEETS, entity, rollout.etag))

    def prune_rollouts(self, keep: int) -> int:
        """Remove all but the newest rollouts and those that are active."""
        keys = self._storage.keys(FLEETS, "PartitionKey eq @key", "began", "state", key=self._rollouts)
        known = [entity for entity in keys if isinstance(entity.get("began"), datetime)]
        by_age = sorted(known, key=lambda entity: entity["began"], reverse=True)
        ended = (State.COMPLETED, State.ABORTED, State.SUPERSEDED)
        return self._storage.remove(FLEETS, (old for old in by_age[keep:] if old.get("state") in ended))

    @property
    def _rollouts(self) -> str:
        return f"rollouts|{self._fleet}"


def rollout_of(entity: Entity) -> Rollout:
    """Return what a record stores of a rollout; raise WrongText."""
    return replace(_ROLLOUT.read(text_of(entity)), etag=etag_of(entity))
