"""Who else acts in a seed, on which fleets, and what they are asked at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from localcloud.memory.memory_cloud import MemoryCloud
from simulation.actors import kinds as named
from simulation.actors.asked_rebuilds import RebuildActor
from simulation.actors.channels import Channels
from simulation.actors.checks import Checks
from simulation.actors.contributors import Contributors
from simulation.actors.grants import Grants
from simulation.actors.large_records import ENTITY_BYTES, LargeRecords
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
from simulation.actors.upkeep import ActorUpkeep
from simulation.actors.versions import Versions
from simulation.history import AzureHistory
from simulation.observed_ports import ObservedState
from simulation.operators import Operators
from simulation.oracle import Oracle


class Cast:
    """The actors of some kinds; one that a seed does not have is None, or absent.

    ``contributors``, ``others`` and ``second``, which is set by whoever can start an app, act on the first
    fleet, all others on every one. ``replaced`` counts how often the tables of a fleet were lost.
    """

    def __init__(
        self,
        seed: int,
        kinds: Collection[str],
        everybody: Sequence[Operators],
        states: Mapping[MemoryCloud, ObservedState],
        oracle: Oracle,
        history: AzureHistory,
        replaced: Mapping[str, int],
    ) -> None:
        first, loop = everybody[0], everybody[0].loop
        self.contributors = Contributors(seed, first) if named.PULL_REQUESTS in kinds else None
        self.others: dict[str, LargeRecords | Reviewers] = {}
        if named.LARGE_RECORDS in kinds:
            self.others[named.LARGE_RECORDS] = LargeRecords(seed, first)
            states[first.cloud].entity_bytes = ENTITY_BYTES
        if named.TEAM_REVIEWS in kinds and self.contributors is None:
            self.others[named.TEAM_REVIEWS] = Reviewers(seed, first)
        self.second: SecondApp | None = None
        self.upkeep: dict[str, ActorUpkeep] = {}
        if {named.SWEEPS, named.AZURE_EVENTS} & set(kinds):  # people change clusters by hand
            self.upkeep[named.SWEEPS] = SweepActor(seed, everybody, loop, oracle, history, replaced)
        if named.CHECKS in kinds:
            self.upkeep[named.CHECKS] = Checks(seed, everybody, loop, history)
        if named.SYSTEMS in kinds:
            self.upkeep[named.SYSTEMS] = Systems(seed, everybody, loop)
        if named.IDENTITY_ACCESS in kinds:
            self.upkeep[named.IDENTITY_ACCESS] = Grants(seed, everybody, loop, history, replaced)
        if named.REBUILDS in kinds:
            self.upkeep[named.REBUILDS] = RebuildActor(seed, everybody, loop)
        if named.REPLACEMENTS in kinds:
            self.upkeep[named.REPLACEMENTS] = Replacements(seed, everybody, loop)
        if named.ROLLBACKS in kinds:
            self.upkeep[named.ROLLBACKS] = RollbackActor(seed, everybody, loop, replaced)
        self.sources: OtherSources | None = None
        if named.PAUSES in kinds:
            self.upkeep[named.PAUSES] = Pauses(seed, everybody, loop)
        if named.SLEEPERS in kinds:
            self.upkeep[named.SLEEPERS] = Sleepers(seed, everybody, loop, oracle)
        self.platform_team: PlatformTeam | None = None
        if named.PLATFORM in kinds:
            self.platform_team = self.upkeep[named.PLATFORM] = PlatformTeam(seed, everybody, loop)
            if named.ROLLOUTS in kinds:
                self.upkeep[PINS_BACK] = PinsBack(seed, everybody, loop)
                self.sources = self.upkeep[OTHER_SOURCES] = OtherSources(seed, everybody, loop)
        self.promotions = (
            PromotionActor(seed, everybody, loop, replaced) if named.PROMOTIONS in kinds else None
        )
        if self.promotions is not None:
            self.upkeep[named.PROMOTIONS] = self.promotions
        self.channels: Channels | None = None
        if named.CHANNELS in kinds:
            self.channels = self.upkeep[named.CHANNELS] = Channels(seed, everybody, loop, oracle, replaced)
        self.secrets = Secrets(seed, everybody, loop) if named.SECRETS in kinds else None
        if self.secrets is not None:
            self.upkeep[named.SECRETS] = self.secrets
        self.versions = Versions(seed, everybody, loop) if named.VERSIONS in kinds else None
        if self.versions is not None:
            self.upkeep[named.VERSIONS] = self.versions
        self.lifetimes: Lifetimes | None = None
        if named.LIFETIMES in kinds:
            self.lifetimes = self.upkeep[named.LIFETIMES] = Lifetimes(seed, everybody, loop, replaced)
        self.requests: Requests | None = None
        if named.REQUESTS in kinds:
            self.requests = self.upkeep[named.REQUESTS] = Requests(seed, everybody, loop)
        if named.LOST_WEBHOOKS in kinds:
            self.upkeep[named.LOST_WEBHOOKS] = LostWebhooks(seed, everybody, loop)
        histories = {operators.cloud: operators.history for operators in everybody}
        routes = named.ROUTES in kinds
        self.routes = RouteFaults(seed, states, histories, loop) if routes else None

        self.rollouts = RolloutActor(seed, everybody, loop, replaced) if named.ROLLOUTS in kinds else None

    def schedule(self, seconds: float) -> None:
        """Let everybody act at some moments of so many seconds."""
        actors = (self.contributors, *self.others.values(), self.second, *self.upkeep.values(), self.routes)
        for actor in (*actors, self.rollouts):
            if actor is not None:
                actor.schedule(seconds)

    def calm(self) -> None:
        """End what only they can end, when the faults have ended."""
        if self.versions is not None:
            self.versions.calm()
        if self.routes is not None:
            self.routes.calm()
        if self.secrets is not None:
            self.secrets.calm()
        if self.contributors is not None:
            self.contributors.deliver_again()

    def acts(self) -> Counter[str]:
        """Return how often each acted, without a second app."""
        counted = Counter({kind: actor.acts for kind, actor in {**self.others, **self.upkeep}.items()})
        if self.routes is not None:
            counted[named.ROUTES] = self.routes.acts
        if self.rollouts is not None:
            counted[named.ROLLOUTS] = self.rollouts.acts
        if self.contributors is not None:
            counted[named.PULL_REQUESTS] = self.contributors.acts
        return counted
