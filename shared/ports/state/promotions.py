"""What is stored of the app's own pull requests, and of rollouts.

A pull request promotes what is proven to another environment, or takes drift into a manifest.
"""

from __future__ import annotations

from datetime import datetime

from shared.cluster.forms import RecordList
from shared.frozen import dataclass, field
from shared.ports.state.clusters import FLEETS
from shared.ports.state.reading import TableRepository, TextKind
from shared.promotions import Value, What
from shared.rollouts.rollout import Rollout, RolloutState


@dataclass(frozen=True)
class LiftedHold:
    """A hold of a value that a person lifted, by promoting it."""

    value: Value
    at: datetime


@dataclass(frozen=True)
class Promotion:
    """The pull request of one environment, and what came of earlier ones.

    One with ``what`` a channel has, has that as its ``source``: one for each of these. Otherwise ``what`` is
    None, and ``source`` is where the values of the newest pull request were proven; ``by`` is who asked for
    it, "" for a rule of fleet.yaml, and ``asked`` when. ``values`` are what it gives, () once it is
    merged or closed. ``commits`` are the commits of ours that its branch may point to. ``number`` and ``url``
    are 0 and "" before the first one.

    ``merged`` and ``declined`` are the values of pull requests that were merged, or closed without that;
    ``lifted`` are those that a person promoted nevertheless. ``digest`` is what a rule was carried out for,
    ``problem`` why nothing is proposed, or why the branch is left as it is.
    ``etag`` is the version that was read, "" for one not saved yet.
    """

    target: str
    source: str = ""
    by: str = ""
    asked: datetime | None = None
    values: tuple[Value, ...] = ()
    number: int = 0
    url: str = ""
    commits: tuple[str, ...] = ()
    merged: tuple[Value, ...] = ()
    declined: tuple[Value, ...] = ()
    lifted: tuple[LiftedHold, ...] = ()
    digest: str = ""
    problem: str = ""
    what: What | None = None
    etag: str = field(default="", compare=False)

    @property
    def key(self) -> str:
        """Its key among all of the fleet."""
        return f"{self.target} {self.what}" if self.what else self.target


@dataclass(frozen=True)
class OmittedField:
    """A field that is not proposed, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Proposal:
    """The pull request about one cluster's drift, and what came of earlier ones.

    ``digest`` is that of the drift for which everything was done (``digest_of_proposal``), "" for none.
    ``number`` and ``url`` are those of the newest pull request, 0 and "" before the first one, ``opened``
    when it was asked for. ``values`` has a digest of each field that it proposes, with both values.
    ``commits`` are the commits of ours that the branch may point to.

    ``declined`` are the values of pull requests that somebody closed without merging. ``left_out`` says why
    fields are not proposed, ``problem`` why the branch or the pull request is left as it is; ``commit`` is
    the one that was planned last when that was so.
    ``etag`` is the version that was read, "" for one not saved yet.
    """

    cluster: str
    digest: str = ""
    number: int = 0
    url: str = ""
    opened: datetime | None = None
    values: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    declined: tuple[str, ...] = ()
    left_out: tuple[OmittedField, ...] = ()
    problem: str = ""
    commit: str = ""
    etag: str = field(default="", compare=False)


class Promotions(TableRepository):
    """The pull requests to environments: one of promotions, and one of each channel."""

    def promotions(self) -> RecordList[Promotion]:
        """Return all, by environment."""
        return self._listed(PROMOTION)

    def promotion(self, target: str, what: What | None = None) -> Promotion | None:
        """Return that of an environment, or of ``what`` its channel has, or None; raise Unreadable."""
        return self._value(PROMOTION, Promotion(target, what=what).key)

    def save_promotion(self, promotion: Promotion) -> Promotion:
        """Write one over the version that was read, and return it as saved; raise Stale."""
        return self._write(PROMOTION, promotion.key, promotion)


class Proposals(TableRepository):
    """The proposals of the fleet, one for a cluster."""

    def proposals(self) -> RecordList[Proposal]:
        """Return all proposals, by cluster."""
        return self._listed(PROPOSAL)

    def proposal(self, cluster: str) -> Proposal | None:
        """Return the proposal of a cluster, or None; raise Unreadable."""
        return self._value(PROPOSAL, cluster)

    def save_proposal(self, proposal: Proposal) -> Proposal:
        """Write a proposal over the version that was read, and return it as saved; raise Stale."""
        return self._write(PROPOSAL, proposal.cluster, proposal)

    def remove_proposal(self, proposal: Proposal) -> None:
        """Remove a proposal if it is still this version; raise Stale."""
        self._tables[FLEETS].delete(self._partition(PROPOSAL), proposal.cluster, proposal.etag)


class Rollouts(TableRepository):
    """The rollouts of the fleet, each by its commit; only the planner writes them."""

    def rollout(self, commit: str) -> Rollout | None:
        """Return the rollout of a commit, or None; raise Unreadable."""
        return self._value(ROLLOUT, commit) if commit else None

    def rollouts(self) -> RecordList[Rollout]:
        """Return the rollouts that are stored, newest first."""
        listed = self._listed(ROLLOUT)
        listed.sort(key=lambda rollout: rollout.began, reverse=True)
        return listed

    def save_rollout(self, rollout: Rollout) -> Rollout:
        """Write a rollout over the version that was read, and return it as saved; raise Stale or TooLarge."""
        return self._write(ROLLOUT, rollout.commit, rollout, began=rollout.began, state=rollout.state.value)

    def prune_rollouts(self, keep: int) -> int:
        """Remove all but the newest rollouts; return how many were removed. An active one stays."""
        entities = self._keys(ROLLOUT, also=("began", "state"))
        known = [entity for entity in entities if isinstance(entity.get("began"), datetime)]
        by_age = sorted(known, key=lambda entity: entity["began"], reverse=True)
        old = (entity.place for entity in by_age[keep:] if entity.get("state") in _ENDED)
        return self._tables[FLEETS].remove(old)


PROMOTION = TextKind[Promotion]("promotion", FLEETS, Promotion, "promotions|{}")
PROPOSAL = TextKind[Proposal]("proposal", FLEETS, Proposal, "proposals|{}")
ROLLOUT = TextKind[Rollout]("rollout", FLEETS, Rollout, "rollouts|{}")
_ENDED = (RolloutState.COMPLETED, RolloutState.ABORTED, RolloutState.SUPERSEDED)
