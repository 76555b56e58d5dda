"""Azure's limits: once Azure has refused a call, no other step sends one of that kind before its Retry-After.

"rate limit": a step that began after the refusal was known, and that had no reservation, was refused too.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from shared.azure.rate_limits import SLACK
from simulation.event_loop import MAX_SKEW, ActingFunction, EventLoop
from simulation.rule import RuleViolated

EARLY = timedelta(seconds=SLACK + MAX_SKEW)
SHARED = ("read", "write", "delete", "AllOtherHandlers")
"""The limits of a whole subscription; the others of AKS are those of one cluster."""


@dataclass
class _Refusal:
    """A refusal of a limit: who was refused, until when, and from when the others know of it."""

    actor: ActingFunction
    until: datetime
    known_since: datetime | None = None


class Throttling:
    """Remembers the refusals of each fleet, by limit; ``refused`` counts those that were checked."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._refusals: dict[tuple[str, str], _Refusal] = {}
        self.refused = 0

    def refuse(self, limit: str, key: Hashable, seconds: float) -> None:
        """Note, and check, that Azure refuses the call of the present actor.

        What an instance reads in the subscription of the apps, before any step, takes no token of a step.
        """
        actor, now = self._loop.actor, self._loop.clock()
        if actor.cloud is None or limit not in SHARED:
            return
        apps = actor.cloud.ports.config.app_group
        if apps is not None and key == apps.subscription:
            return
        fleet = _app(actor.cloud)
        before = self._refusals.get((fleet, limit))
        known = before is not None and before.known_since is not None and before.known_since < actor.since
        if before is not None and known and now < before.until - EARLY and not self._excused(actor):
            since = f"{before.known_since:%H:%M:%S}"
            raise RuleViolated("rate limit", f"{fleet}: a {limit} is refused, known since {since}")
        self.refused += 1
        if actor.lock is not None and actor.lock.session == actor.cloud.ports.config.fleet:
            return  # the planner takes no token to look for clusters of lost tables, and saves no refusal
        if before is None or before.actor is not actor or before.until < now:
            self._refusals[fleet, limit] = _Refusal(actor, now + timedelta(seconds=seconds))

    def forget(self, fleet: str) -> None:
        """Drop the refusals of a fleet whose tables, with the buckets, were replaced."""
        self._refusals = {key: refusal for key, refusal in self._refusals.items() if key[0] != fleet}

    def after_event(self, actor: ActingFunction) -> None:
        """Note the end of a step: its refusals are known, unless a fault prevented it from saving them."""
        for key, refusal in [*self._refusals.items()]:
            if refusal.actor is not actor or refusal.known_since is not None:
                continue
            if actor.faulty:
                del self._refusals[key]
            else:
                refusal.known_since = self._loop.clock()

    def _excused(self, actor: ActingFunction) -> bool:
        """Return whether the step has a reservation, which counts from before."""
        if actor.cloud is None or actor.lock is None:
            return True
        record = actor.cloud.state.cluster(actor.lock.session)
        return record is None or bool(record.job.next_run.reservations)


def _app(cloud: MemoryCloud) -> str:
    """Return the fleet of an app; a second app of the fleet, on another branch, has buckets of its own."""
    config = cloud.ports.config
    return config.fleet if config.branch == "main" else f"{config.fleet} on {config.branch}"
