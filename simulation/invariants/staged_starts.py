"""The rules of rollouts: clusters get a new generation in the order of the stages, and within the bounds.

The strategy is that of the operators. Which clusters share a group, and what people have decided, is in the
record of the rollout; where its clusters stand is known from their records, as they were written.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.rollouts.rollout import Member, Rollout, RolloutState, Stage
from simulation.actors.monitor_answers import opened_by, severe_since
from simulation.history import LONG_AGO
from simulation.invariants.approvals import approved_in_time, newly_entered
from simulation.invariants.context import CLOCKS, Context
from simulation.invariants.member_life import MemberLife
from simulation.invariants.taken_back import goes_back, is_created_again, is_own
from simulation.rule import RuleViolated
from simulation.staging import CHECK, StagedGroup, StagedStage, Staging, stage_named, stage_of

ASIDE = ("ClusterMissing", "ClusterStopped")
"""What a sweep finds of a cluster that cannot take part."""


class RolloutRules:
    """Checks every new generation of a cluster in a fleet with a strategy."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.seen: dict[tuple[str, str, str], MemberLife] = {}
        """What was seen of each life, by the fleet, the name and the uid."""
        self._stopped: dict[tuple[str, str], datetime] = {}
        """When a pause, or an abort, was stored."""
        self._began: dict[tuple[str, str], datetime] = {}
        """When the planner began that stored a rollout first, by the clock of the world."""
        self._opened: set[tuple[str, str, str]] = set()
        """The gates whose time is over: by the fleet, the commit that the stage releases, and its name."""

    def decided(self, cloud: MemoryCloud, before: Rollout | None, after: Rollout) -> None:
        """Note that somebody has paused or aborted a rollout, and check the stages that begin."""
        if not self._context.replaced[cloud.ports.config.fleet]:
            for stage in newly_entered(cloud, before, after):
                approved_in_time(self._context, cloud, after, stage)
        stops, stopped = _is_stopped(after), before is not None and _is_stopped(before)
        key = (cloud.ports.config.fleet, after.commit)
        if before is None or (before.state is not RolloutState.ACTIVE and after.state is RolloutState.ACTIVE):
            self._began[key] = self._context.loop.actor.since
        if stops and not stopped:
            self._stopped[key] = self._context.loop.clock()
        if not stops:
            self._stopped.pop(key, None)

    def saved(self, cloud: MemoryCloud, before: ClusterRecord | None, after: ClusterRecord) -> None:
        """Note where a cluster stands, and check one that got a new generation."""
        fleet, now = cloud.ports.config.fleet, self._context.loop.clock()
        seen = self.seen.setdefault((fleet, after.name, after.uid), MemberLife())
        if after.observed_generation == after.generation and after.phase is Phase.READY:
            seen.verified.setdefault(after.generation, now)
        if _counts_as_failed(after) and (before is None or not _counts_as_failed(before)):
            seen.failed = now
            seen.failures.add(after.generation)
        aside = after.contested or after.finding in ASIDE
        since, seen.found = seen.found, (seen.found or now) if aside else None
        seen.stands(after, now)
        if before is None or before.uid != after.uid or after.generation == before.generation:
            return
        seen.started[after.generation] = after.job.started
        staging = self._context.history(cloud).desired(after.commit).in_force
        if staging is not None and not (after.deleting or before.deleting or self._context.replaced[fleet]):
            self._in_turn(cloud, before, after, staging, since)

    def _in_turn(
        self,
        cloud: MemoryCloud,
        before: ClusterRecord,
        after: ClusterRecord,
        staging: Staging,
        aside: datetime | None,
    ) -> None:
        if is_own(before, after) or is_created_again(before, after) or before.recovering:
            return  # one whose tables were lost is compared at once, and not written to
        if goes_back(self._context.history(cloud), before, after):
            return
        if aside is not None and aside < self._context.loop.actor.since:
            what = f"{after.name} starts, and is {before.finding or 'contested'} since {aside}"
            raise RuleViolated("rollout aside", what)
        rollout = cloud.state.rollout(after.commit)
        member = _member(rollout, after) if rollout else None
        if rollout is None or member is None:
            raise RuleViolated("rollout", f"{after.name} starts and is in no rollout of {after.commit[:8]}")
        stage = rollout.stages[member.stage]
        by_name = bool(staging)  # otherwise the stages are the environments, which clusters by request have
        if by_name and not stage.back and stage_named(staging, stage.name) != stage_of(staging, after.name):
            raise RuleViolated("rollout", f"{after.name} is in the stage {stage.name}")
        if self._context.history(cloud).desired(after.commit).mistyped and not rollout.people.resumed:
            raise RuleViolated("rollout strategy", f"{after.name} starts, and its commit names no strategy")
        self._not_stopped(cloud, rollout, after, stage)
        self._not_held(cloud, rollout, before, stage)
        self._not_shut(rollout, after, staging)
        self._after_the_others(cloud, rollout, member, staging)
        if not before.job.active:
            self._within(cloud, rollout, member, staging)

    def _not_stopped(self, cloud: MemoryCloud, rollout: Rollout, after: ClusterRecord, stage: Stage) -> None:
        """Check that nobody stopped the rollout before the planner began that starts a cluster."""
        at = self._stopped.get((cloud.ports.config.fleet, rollout.commit))
        if at is not None and at < self._context.loop.actor.since:
            raise RuleViolated("rollout stopped", f"{after.name} starts after somebody stopped its rollout")
        if stage.back:
            return
        for place in rollout.places():
            if stage.ahead and not rollout.stages[place[0]].ahead:
                continue
            if _first_of(rollout, place[0]) != _first_of(rollout, rollout.stages.index(stage)):
                continue
            own = [member for member in rollout.members if (member.stage, member.group) == place]
            failed = [
                member.cluster for member in own if self._has_failed(cloud, rollout, member, known=True)
            ]
            if len(failed) >= rollout.stages[place[0]].groups[place[1]].budget:
                what = f"{after.name} starts although the budget is spent: {', '.join(failed)}"
                raise RuleViolated("rollout budget", what)

    def _not_held(self, cloud: MemoryCloud, rollout: Rollout, before: ClusterRecord, stage: Stage) -> None:
        """Check that a pause still holds back what it did when a newer commit came."""
        if rollout.people.paused is None or not rollout.people.inherited or stage.back:
            return
        if not stage.ahead:
            raise RuleViolated("rollout stopped", f"{before.name} starts although its pause was not lifted")
        for earlier in cloud.state.rollouts():
            member = next((member for member in earlier.members if member.cluster == before.name), None)
            if earlier.superseded_by != rollout.commit or earlier.people.paused is None or member is None:
                continue
            place, waited = earlier.stages[member.stage], before.generation < member.generation
            if waited and member.uid == before.uid and not (place.ahead or place.back or member.at_once):
                what = f"{before.name} starts past the pause of {earlier.commit[:8]}, which holds it"
                raise RuleViolated("rollout stopped", what)

    def _not_shut(self, rollout: Rollout, after: ClusterRecord, staging: Staging) -> None:
        """Check that a cluster starts inside its window, and in no freeze; clocks differ a little."""
        actor, shut = self._context.loop.actor, stage_of(staging, after.name).shut_for("changes")
        if shut is None or rollout.people.overridden:
            return
        first, last = actor.since - CLOCKS, self._context.loop.clock() + CLOCKS
        if shut.covers(first, last):
            raise RuleViolated("rollout window", f"{after.name} starts between {first} and {last}: {shut}")

    def is_excused(self, cloud: MemoryCloud, rollout: Rollout, other: Member, staging: Staging) -> bool:
        """Return whether a group may have passed without a cluster: it could not take part.

        One outside its window, or in a freeze, is left behind only if another cluster of its group was not,
        or if the group needs nobody, as that of the clusters which go back.
        """
        fleet, since = cloud.ports.config.fleet, self._since(cloud, rollout)
        if self.seen[fleet, other.cluster, other.uid].was_aside(other, since):
            return True
        if stage_of(staging, other.cluster).shut_for("changes") is None:
            return False
        group, rule = _group_of(rollout, other), _rule(rollout, other, staging)
        if rule is not None and rule.success and not rule.needs(len(group)):
            return True
        if rollout.stages[other.stage].back:
            return True
        for member in group:
            seen = self.seen.get((fleet, member.cluster, member.uid))
            if seen is not None and (seen.was_aside(member, since) or seen.is_verified(member)):
                return True
        return False

    def _since(self, cloud: MemoryCloud, rollout: Rollout) -> datetime:
        return self._began.get((cloud.ports.config.fleet, rollout.commit), LONG_AGO)

    def _after_the_others(
        self, cloud: MemoryCloud, rollout: Rollout, member: Member, staging: Staging
    ) -> None:
        stage = rollout.stages[member.stage]
        # A newer commit that changes nothing before the stage goes on with the wait of the older one, and one
        # that is planned again with its own.
        reached = LONG_AGO if stage.reached else min(rollout.began, self._since(cloud, rollout))
        written = stage_named(staging, stage.name)
        for other in rollout.members:
            if (other.stage, other.group) >= (member.stage, member.group) or other.at_once:
                continue
            if other.stage < _first_of(rollout, member.stage):
                continue
            if _is_left_out(cloud, rollout, other):
                continue
            seen = self.seen[cloud.ports.config.fleet, other.cluster, other.uid]
            times = [at for generation, at in seen.verified.items() if generation >= other.generation]
            if self.is_excused(cloud, rollout, other, staging):
                continue  # its group may have passed without it, before it caught up
            rule = _rule(rollout, other, staging)
            if rule is not None and rule.success and any(g >= other.generation for g in seen.failures):
                continue  # the others are enough
            if not times:
                what = f"{member.cluster} starts before {other.cluster} is Ready at {other.generation}"
                raise RuleViolated("rollout order", what)
            self._soaked(rollout, member, other, min(times), staging)
            if other.stage < member.stage:
                reached = max(reached, min(times))
        self._enough_succeeded(cloud, rollout, member, staging)
        self._shown(cloud, rollout, member, staging)
        if written is not None:
            self._past_its_gate(cloud, rollout, member, written, reached)
            runs = cloud.repository.pulls.checks(stage.commit or rollout.commit)
            succeeded = any((run.name, run.conclusion) == (CHECK, "success") for run in runs)
            if written.checked and not (succeeded or rollout.people.overridden):
                raise RuleViolated("rollout check", f"{member.cluster} starts, and {CHECK} has not succeeded")
            if (written.asked or written.measured or written.alerted) and not rollout.people.overridden:
                self._answered(cloud, rollout, member, written, reached)

    def _enough_succeeded(
        self, cloud: MemoryCloud, rollout: Rollout, member: Member, staging: Staging
    ) -> None:
        """Check that each group before has as many clusters verified as it asks for; none that was left out.

        One that was verified, and left out after that, counts as both.
        """
        for place in rollout.places():
            own = [peer for peer in rollout.members if (peer.stage, peer.group) == place]
            before = (_first_of(rollout, member.stage), 0) <= place < (member.stage, member.group)
            rule = _rule(rollout, own[0], staging) if before and own else None
            if rule is None or not rule.success:
                continue
            seen = (self.seen.get((cloud.ports.config.fleet, peer.cluster, peer.uid)) for peer in own)
            ready = [
                life is not None and life.is_verified(peer) for peer, life in zip(own, seen, strict=True)
            ]
            left = sum(
                not verified and _is_left_out(cloud, rollout, peer)
                for peer, verified in zip(own, ready, strict=True)
            )
            needed = min(rule.needs(len(own)), len(own) - left)
            if sum(ready) < needed:
                what = f"{member.cluster} starts, and of {place} with {rule} {sum(ready)} are Ready"
                raise RuleViolated("rollout success", f"{what}: {needed} must be")

    def _shown(self, cloud: MemoryCloud, rollout: Rollout, member: Member, staging: Staging) -> None:
        """Check that each stage before has a cluster that shows the change."""
        for number in range(_first_of(rollout, member.stage), member.stage):
            own = [peer for peer in rollout.members if peer.stage == number and not peer.at_once]
            own = [peer for peer in own if not _is_left_out(cloud, rollout, peer)]
            rule = _rule(rollout, own[0], staging) if own else None
            if rule is None or rule.success or rollout.stages[number].back:
                continue
            seen = (self.seen.get((cloud.ports.config.fleet, peer.cluster, peer.uid)) for peer in own)
            if not any(life and life.is_verified(peer) for peer, life in zip(own, seen, strict=True)):
                stage = rollout.stages[number].name
                what = f"{member.cluster} starts, and no cluster of {stage} shows the change"
                raise RuleViolated("rollout order", what)

    def _answered(
        self, cloud: MemoryCloud, rollout: Rollout, member: Member, written: StagedStage, reached: datetime
    ) -> None:
        """Check that who is asked said yes twice, and last, when the first cluster of its stage starts.

        An instance with another clock may think that its own last question was not due. An alert that has
        fired since the stage was ``reached`` was there at each question.
        """
        fleet = cloud.ports.config.fleet
        for other in rollout.members:
            seen = self.seen.get((fleet, other.cluster, other.uid))
            if seen is None or other.stage != member.stage or other == member:
                continue
            if any(generation >= other.generation for generation in seen.started):
                return
        answers = [answer for _, answer in cloud.endpoints.asked]
        if written.asked and (answers.count(200) < 2 or answers[-1] != 200):
            raise RuleViolated("rollout check", f"{member.cluster} starts after the answers {answers[-3:]}")
        severe = severe_since(cloud) if written.alerted else None
        if severe is not None and severe + CLOCKS < reached:
            raise RuleViolated("rollout check", f"{member.cluster} starts, an alert fires since {severe}")
        measured = [answer for *_, answer in cloud.monitor.asked]
        if written.measured and not opened_by(measured):
            raise RuleViolated("rollout check", f"{member.cluster} starts after the answers {measured[-2:]}")

    def _past_its_gate(
        self, cloud: MemoryCloud, rollout: Rollout, member: Member, written: StagedStage, reached: datetime
    ) -> None:
        """Check that people have approved a stage, and that its time has passed since it was ``reached``.

        A stage of which nothing is left to start needs no approval, so only its own clusters show one. Once
        it has started, its approvals may expire, and its time does not begin again with clusters that an
        approval adds to the rollout.
        """
        name = rollout.stages[member.stage].name
        if member.stage not in rollout.entered:
            approved_in_time(self._context, cloud, rollout, name)
        planned = rollout.stages[member.stage]
        gate = cloud.ports.config.fleet, planned.commit or rollout.commit, planned.plain
        if rollout.people.overridden or gate in self._opened:
            return
        if self._context.loop.clock() + CLOCKS < reached + timedelta(minutes=written.after):
            what = f"{member.cluster} starts, {name} waits for {written.after} min since {reached}"
            raise RuleViolated("rollout time", what)
        self._opened.add(gate)

    def _soaked(
        self, rollout: Rollout, member: Member, other: Member, ready: datetime, staging: Staging
    ) -> None:
        rule = _rule(rollout, other, staging)
        if rule is None:
            return
        if self._context.loop.clock() + CLOCKS < ready + timedelta(seconds=rule.soak):
            what = f"{member.cluster} starts at {self._context.loop.clock()}, {other.cluster} is Ready since"
            raise RuleViolated("rollout soak", f"{what} {ready}, and is watched for {rule.soak} s")

    def _within(self, cloud: MemoryCloud, rollout: Rollout, member: Member, staging: Staging) -> None:
        """Check the bounds of a group that has one more cluster, which no job changed before."""
        rule = _rule(rollout, member, staging)
        if rule is None:
            return
        group = _group_of(rollout, member)
        flying = [peer.cluster for peer in group if self._is_flying(cloud, rollout, peer)]
        failed = [peer.cluster for peer in group if self._has_failed(cloud, rollout, peer)]
        if len(flying) > rule.most or len(flying) + len(failed) > rule.budget:
            what = f"{', '.join(flying)} change and {', '.join(failed) or 'none'} failed"
            raise RuleViolated("rollout bound", f"{what}, and the rule is {rule}")

    def _is_flying(self, cloud: MemoryCloud, rollout: Rollout, member: Member) -> bool:
        """Return whether a cluster changes for the first time to the generation of the rollout.

        One that is still created, or that its commit suspends, waits for nobody, so it may join those that a
        group lets change. So may one that was refused, and goes on.
        """
        record = cloud.state.cluster(member.cluster)
        if record is None or record.uid != member.uid or rollout.skips(member.cluster):
            return False
        suspended = record.document["spec"].get("suspend")
        if member.at_once and (suspended or not record.observed_generation):
            return False
        seen = self.seen[cloud.ports.config.fleet, record.name, record.uid]
        first = (
            seen.started.get(record.generation) == record.job.started
            and record.generation not in seen.failures
        )
        changes = (
            record.job.active
            and record.phase not in (Phase.SUSPENDED, Phase.SLEEPING)
            and not record.deleting
        )
        return changes and first and record.generation >= member.generation

    def _has_failed(
        self, cloud: MemoryCloud, rollout: Rollout, member: Member, *, known: bool = False
    ) -> bool:
        """Return whether a cluster has failed at the generation of the rollout; ``known`` to this planner."""
        record = cloud.state.cluster(member.cluster)
        if record is None or record.uid != member.uid or rollout.skips(member.cluster) or record.deleting:
            return False
        seen = self.seen[cloud.ports.config.fleet, record.name, record.uid]
        at_it = _counts_as_failed(record) and record.generation >= member.generation
        before = not known or seen.failed < self._context.loop.actor.since
        return at_it and record.generation not in seen.verified and before


def _counts_as_failed(record: ClusterRecord) -> bool:
    return record.failed or record.refused


def _is_stopped(rollout: Rollout) -> bool:
    """Return whether a person has paused or aborted a rollout."""
    people = rollout.people
    return rollout.state is RolloutState.ABORTED or (people.paused is not None and not people.inherited)


def _member(rollout: Rollout, record: ClusterRecord) -> Member | None:
    found = (member for member in rollout.members if member.cluster == record.name)
    return next((member for member in found if member.generation == record.generation), None)


def _is_left_out(cloud: MemoryCloud, rollout: Rollout, member: Member) -> bool:
    """Return whether a cluster counts for nothing: it was deleted, or somebody took it out."""
    record = cloud.state.cluster(member.cluster)
    gone = record is None or record.uid != member.uid or record.deleting
    return gone or rollout.skips(member.cluster)


def _group_of(rollout: Rollout, member: Member) -> list[Member]:
    return [other for other in rollout.members if (other.stage, other.group) == (member.stage, member.group)]


def _rule(rollout: Rollout, member: Member, staging: Staging) -> StagedGroup | None:
    """Return the rule of a member's group as the operators wrote it; None for clusters that go back."""
    stage = rollout.stages[member.stage]
    return None if stage.back else stage_of(staging, member.cluster).groups[member.group]


def _first_of(rollout: Rollout, place: int) -> int:
    """Return the first of the stages that a stage follows, by the commits that they release."""
    releases = rollout.stages[place].commit
    while place and releases and rollout.stages[place - 1].commit == releases:
        place -= 1
    return place if releases else 0
