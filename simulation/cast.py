"""Who else acts in a seed, on which fleets, and what they are asked at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TypeVar

from localcloud.memory.memory_cloud import MemoryCloud
from simulation.actors import kinds as named
from simulation.actors.asked_rebuilds import RebuildActor
from simulation.actors.channels import Channels
from simulation.actors.checks import Checks
from simulation.actors.contributors import Contributors
from simulation.actors.grants import Grants
from simulation.actors.lifetimes import Lifetimes
from simulation.actors.lost_webhooks import LostWebhooks
from simulation.actors.notification_routes import RouteFaults
from simulation.actors.other_sources import OTHER_SOURCES, OtherSources
from simulation.actors.pauses import Pauses
from simulation.actors.pins_back import PINS_BACK, PinsBack
from simulation.actors.platform_team import PlatformTeam
from simulation.actors.promotions import PromotionActor
from simulation.actors.replacements import Replacements
from simulation.actors.requests import Requests
from simulation.actors.reviewers import Reviewers
from simulation.actors.rollbacks import RollbackActor
from simulation.actors.rollouts import RolloutActor
from simulation.actors.second_app import SecondApp
from simulation.actors.secrets import Secrets
from simulation.actors.sleepers import Sleepers
from simulation.actors.sweeps import SweepActor
from simulation.actors.systems import Systems
from simulation.actors.upkeep import ActorUpkeep, Surroundings
from simulation.actors.versions import Versions
from simulation.observed_ports import ObservedState

ACTORS: tuple[type[ActorUpkeep], ...] = (
    *(SweepActor, Checks, Systems, Grants, RebuildActor, Replacements, RollbackActor, Pauses, Sleepers),
    *(PlatformTeam, PinsBack, OtherSources, PromotionActor, Channels, Secrets, Versions, Lifetimes),
    *(Requests, LostWebhooks),
)
"""Those who act on all fleets, in their order."""
A = TypeVar("A", bound=ActorUpkeep)


class Cast:
    """The actors of some kinds; one that a seed does not have is None, or absent.

    ``contributors``, ``reviewers`` and ``second``, which is set by whoever can start an app, act on the first
    fleet, all others on every one.
    """

    def __init__(
        self, kinds: Collection[str], around: Surroundings, states: Mapping[MemoryCloud, ObservedState]
    ) -> None:
        seed, everybody, loop = around.seed, around.everybody, around.loop
        first = everybody[0]
        self.contributors = Contributors(seed, first) if named.PULL_REQUESTS in kinds else None
        reviewed = named.TEAM_REVIEWS in kinds and self.contributors is None
        self.reviewers = Reviewers(seed, first) if reviewed else None
        self.second: SecondApp | None = None
        present = {*kinds}
        if named.AZURE_EVENTS in kinds:  # people change clusters by hand
            present.add(named.SWEEPS)
        if {named.PLATFORM, named.ROLLOUTS} <= present:
            present |= {PINS_BACK, OTHER_SOURCES}
        self.upkeep: dict[str, ActorUpkeep] = {
            actor.kind: actor(around)
            for actor in ACTORS
            if actor.kind in present and not (actor.in_one_fleet and len(everybody) > 1)
        }
        histories = {operators.cloud: operators.history for operators in everybody}
        routes = named.ROUTES in kinds
        self.routes = RouteFaults(seed, states, histories, loop) if routes else None
        replaced = around.replaced
        self.rollouts = RolloutActor(seed, everybody, loop, replaced) if named.ROLLOUTS in kinds else None

    def find(self, actor: type[A]) -> A | None:
        """Return those of a class, None where a seed has none."""
        found = self.upkeep.get(actor.kind)
        return found if isinstance(found, actor) else None

    def schedule(self, seconds: float) -> None:
        """Let everybody act at some moments of so many seconds."""
        actors = (self.contributors, self.reviewers, self.second, *self.upkeep.values(), self.routes)
        for actor in (*actors, self.rollouts):
            if actor is not None:
                actor.schedule(seconds)

    def calm(self) -> None:
        """End what only they can end, when the faults have ended."""
        for actor in self.upkeep.values():
            actor.calm()
        if self.routes is not None:
            self.routes.calm()
        if self.contributors is not None:
            self.contributors.deliver_again()

    def acts(self) -> Counter[str]:
        """Return how often each acted, without a second app."""
        counted = Counter({kind: actor.acts for kind, actor in self.upkeep.items()})
        if self.reviewers is not None:
            counted[named.TEAM_REVIEWS] = self.reviewers.acts
        if self.routes is not None:
            counted[named.ROUTES] = self.routes.acts
        if self.rollouts is not None:
            counted[named.ROLLOUTS] = self.rollouts.acts
        if self.contributors is not None:
            counted[named.PULL_REQUESTS] = self.contributors.acts
        return counted
