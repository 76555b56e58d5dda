"""The rollouts, in the table of fleets: an entity for each commit that changed clusters in stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from shared.adapters.tables.clusters import FLEETS
from shared.adapters.tables.entities import packed, unpacked
from shared.adapters.tables.storage import Storage, etag_of
from shared.rollouts.rollout import Rollout, State

_ROLLOUT: TypeAdapter[Rollout] = TypeAdapter(Rollout)


class RolloutsTable:
    """The part of the State port that is about rollouts."""

    _storage: Storage
    _fleet: str

    def rollout(self, commit: str) -> Rollout | None:
        """Return the rollout of a commit, or None."""
        entity = self._storage.get(FLEETS, self._rollouts, commit) if commit else None
        return _rollout(entity) if entity is not None else None

    def rollouts(self) -> Sequence[Rollout]:
        """Return the rollouts that are stored, newest first."""
        found = self._storage.query(FLEETS, "PartitionKey eq @key", key=self._rollouts)
        return sorted(map(_rollout, found), key=lambda each: each.began, reverse=True)

    def save_rollout(self, rollout: Rollout) -> Rollout:
        """Write a rollout over its version, and return it as saved; raise Stale or TooLarge."""
        body = packed(_ROLLOUT.dump_json(rollout, exclude={"etag"}).decode())
        key = {"PartitionKey": self._rollouts, "RowKey": rollout.commit}
        entity = {**key, "began": rollout.began, "state": rollout.state.value, **body}
        return replace(rollout, etag=self._storage.write(FLEETS, entity, rollout.etag))

    def prune_rollouts(self, keep: int) -> int:
        """Remove all but the newest rollouts and those that are active."""
        keys = self._storage.keys(FLEETS, "PartitionKey eq @key", "began", "state", key=self._rollouts)
        by_age = sorted(keys, key=lambda entity: entity["began"], reverse=True)
        return self._storage.remove(FLEETS, (old for old in by_age[keep:] if old["state"] != State.ACTIVE))

    @property
    def _rollouts(self) -> str:
        return f"rollouts|{self._fleet}"


def _rollout(entity: Any) -> Rollout:
    return replace(_ROLLOUT.validate_json(unpacked(entity)), etag=etag_of(entity))
