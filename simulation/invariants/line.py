"""The rules of stages that go on with a commit of the platform while newer ones come.

A stage takes a commit only from the stage before it, and nothing newer while what it has is watched: so a
team that merges faster than stages soak still reaches the last one.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.rollouts.rollout import Rollout, Stage
from simulation.history import FleetHistory
from simulation.invariants.context import CLOCKS, Context
from simulation.invariants.staged_starts import RolloutRules
from simulation.invariants.taken_back import goes_back
from simulation.rule import RuleViolated
from simulation.staging import StagedStage, Staging, stage_of


class LineRules:
    """Checks every generation that moves a pin, by what was verified before."""

    def __init__(self, context: Context, starts: RolloutRules) -> None:
        self._context, self._starts = context, starts
        self._verified: defaultdict[tuple[str, str], dict[str, datetime]] = defaultdict(dict)
        """When the clusters of a fleet were verified first with each pin."""
        self._replaced: defaultdict[str, set[str]] = defaultdict(set)
        """What of the platform pins of a fleet have moved away from."""

    def saved(self, cloud: MemoryCloud, before: ClusterRecord | None, after: ClusterRecord) -> None:
        """Note which pin was verified, and check one that moves."""
        fleet, history = cloud.ports.config.fleet, self._context.history(cloud)
        pin = _pin(after)
        if after.observed_generation == after.generation and after.phase is Phase.READY and pin:
            self._verified[fleet, after.name].setdefault(pin, self._context.loop.clock())
        if before is None or before.uid != after.uid or before.generation == after.generation:
            return
        known = {_pin(before), pin} <= {*history.head_line}
        if not known or pin == _pin(before) or after.deleting or before.recovering:
            return
        staging, rollout = history.desired(after.commit).in_force, cloud.state.rollout(after.commit)
        left = history.desired(_pin(before)).platform
        if (
            staging
            and rollout
            and not self._context.replaced[fleet]
            and not goes_back(history, before, after)
        ):
            stage = _stage(rollout, after)
            if stage is not None and not (stage.back or stage.ahead or rollout.choice.selected):
                self._passed_before(cloud, after, staging, pin)
                self._watched(cloud, before, after, staging)
        self._replaced[fleet].add(left)

    def _passed_before(self, cloud: MemoryCloud, after: ClusterRecord, staging: Staging, pin: str) -> None:
        """Check that a cluster of the stage before has been verified with what a cluster gets."""
        fleet, history = cloud.ports.config.fleet, self._context.history(cloud)
        before = [stage for stage in staging or () if after.name not in stage.clusters]
        own = stage_of(staging, after.name)
        earlier = before[: (staging or ()).index(own)] if own in (staging or ()) else before
        for stage in reversed(earlier):
            names = [name for name in stage.clusters if self._takes_part(cloud, after.commit, name, pin)]
            if not names:
                continue
            had = (commit for name in names for commit in self._verified[fleet, name])
            if not any(_has(history, commit, pin) for commit in had):
                what = f"{after.name} gets {pin[:8]}, with which no cluster of {stage.name} was Ready"
                raise RuleViolated("stage order", f"{fleet}: {what}")
            return

    def _takes_part(self, cloud: MemoryCloud, head: str, name: str, pin: str) -> bool:
        """Return whether a cluster can keep the stages after its own waiting for a commit."""
        history = self._context.history(cloud)
        record, wanted = cloud.state.cluster(name), history.desired(head).clusters.get(name)
        if wanted is None or wanted.invalid or wanted.suspended:
            return False
        if name in history.sources:
            return False  # it pulls nothing of the fleet repository
        since = history.place(pin)
        if any(r.skips(name) for r in cloud.state.rollouts() if history.place(r.commit) >= since):
            return False  # somebody took it out
        if record is None or record.deleting or not _pin(record):
            return False
        verified = self._verified[cloud.ports.config.fleet, name].values()
        if min(verified, default=self._context.loop.clock()) >= history.moved_at(head):
            return False  # its stage may have passed before, without any cluster
        life = self._starts.seen.get((cloud.ports.config.fleet, name, record.uid))
        return life is not None and not life.aside and record.phase is Phase.READY

    def _watched(
        self, cloud: MemoryCloud, before: ClusterRecord, after: ClusterRecord, staging: Staging
    ) -> None:
        """Check that a stage which is watched with a commit gets no newer one that corrects nothing."""
        fleet, history = cloud.ports.config.fleet, self._context.history(cloud)
        own, ready = stage_of(staging, after.name), self._verified[fleet, after.name].get(_pin(before))
        if (
            ready is None
            or before.phase is not Phase.READY
            or before.observed_generation != before.generation
        ):
            return
        same = {**before.document, "pin": None} == {**after.document, "pin": None}
        soaks = timedelta(seconds=min(group.soak for group in own.groups))
        over = self._context.loop.clock() + CLOCKS >= ready + soaks
        if over or not same or self._is_excused(cloud, before, own, staging):
            return
        if history.desired(_pin(after)).platform in self._replaced[fleet]:
            return  # it takes back what a cluster has
        what = f"{after.name} is watched with {_pin(before)[:8]} since {ready}, and gets {_pin(after)[:8]}"
        raise RuleViolated("stage starves", f"{fleet}: {what}, before {soaks} are over")

    def _is_excused(
        self, cloud: MemoryCloud, before: ClusterRecord, own: StagedStage, staging: Staging
    ) -> bool:
        """Return whether a stage may have passed already, or gives up what it has as it should."""
        fleet, history = cloud.ports.config.fleet, self._context.history(cloud)
        earlier = cloud.state.rollout(before.commit)
        if own.shut or any(group.success for group in own.groups) or earlier is None:
            return True
        if history.desired(before.commit).in_force != staging:
            return True
        lives = [life for (of, _, _), life in self._starts.seen.items() if of == fleet]
        return any(life.failed >= earlier.began or life.aside for life in lives) or any(
            _is_stopped(rollout) for rollout in cloud.state.rollouts() if rollout.began >= earlier.began
        )


def _is_stopped(rollout: Rollout) -> bool:
    people = rollout.people
    return bool(people.paused or people.aborted or people.resumed or rollout.refused)


def _stage(rollout: Rollout, record: ClusterRecord) -> Stage | None:
    found = (m for m in rollout.members if (m.cluster, m.generation) == (record.name, record.generation))
    return next((rollout.stages[member.stage] for member in found), None)


def _pin(record: ClusterRecord) -> str:
    return str((record.document.get("pin") or {}).get("commit", ""))


def _has(history: FleetHistory, commit: str, wanted: str) -> bool:
    """Return whether a commit has what another one has of the platform, or is a newer one."""
    same = history.desired(commit).platform == history.desired(wanted).platform
    return same or history.place(commit) >= history.place(wanted)
