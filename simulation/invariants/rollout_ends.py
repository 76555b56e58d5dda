"""The rule of the ends of rollouts: none is completed before its clusters have ended, and its final gate."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from shared.jobs.record import Phase
from shared.rollouts.rollout import Member, Rollout, State
from simulation.history import LONG_AGO
from simulation.invariants.context import CLOCKS, Context
from simulation.invariants.staged_starts import RolloutRules, group_of, rule_of
from simulation.rule import RuleViolated
from simulation.staging import CHECK, FINAL, StagedStage, Staging


class RolloutEnds:
    """Checks every rollout that is stored as completed."""

    def __init__(self, context: Context, starts: RolloutRules) -> None:
        self._context, self._starts = context, starts
        self._misdated: set[str] = set()
        """The commits of rollouts that an instance with a wrong clock has stored."""

    def decided(self, cloud: MemoryCloud, before: Rollout | None, after: Rollout) -> None:
        """Check a version of a rollout against the one before."""
        fleet, desired = cloud.ports.config.fleet, self._context.history(cloud).desired(after.commit)
        if self._context.loop.actor.jumped:
            self._misdated.add(after.commit)
        ended = after.state is State.COMPLETED and (before is None or before.state is not State.COMPLETED)
        if not ended or self._context.replaced[fleet] or desired.in_force is None:
            return
        failed, reached = list[Member](), after.began
        for member in after.members:
            verified = self._ended(cloud, after, member)
            failed += [member] if verified is None else []
            if verified is not None and not self._starts.is_excused(cloud, after, member, desired.in_force):
                reached = max(reached, verified)
        if desired.final_in_force is None or after.overridden:
            return
        if all(self._is_allowed(cloud, after, each, failed, desired.in_force) for each in failed):
            self._past_the_final_gate(cloud, after, desired.final_in_force, reached)

    def _is_allowed(
        self, cloud: MemoryCloud, rollout: Rollout, member: Member, failed: Sequence[Member], staging: Staging
    ) -> bool:
        """Return whether the group of a failed cluster passes without it: enough of the others are Ready."""
        rule, group = rule_of(rollout, member, staging), group_of(rollout, member)
        if rule is None or not rule.success:
            return False
        fleet = cloud.ports.config.fleet
        lives = [(each, self._starts.seen.get((fleet, each.cluster, each.uid))) for each in group]
        ready = [each for each, seen in lives if each not in failed and seen and seen.is_verified(each)]
        return len(ready) >= rule.needs(len(group))

    def _ended(self, cloud: MemoryCloud, rollout: Rollout, member: Member) -> datetime | None:
        """Check that a cluster has ended, and return when it was verified; None for one that has failed."""
        record = cloud.state.cluster(member.cluster)
        if record is None or record.uid != member.uid or record.deleting or rollout.skips(member.cluster):
            return LONG_AGO
        seen = self._starts.seen[cloud.ports.config.fleet, member.cluster, member.uid]
        times = [at for generation, at in seen.verified.items() if generation >= member.generation]
        if (
            times and record.phase is not Phase.FAILED
        ):  # that was Ready, and is stopped since, counts as failed
            return min(times)
        if record.generation >= member.generation and record.phase is Phase.SUSPENDED:
            return LONG_AGO
        if record.generation >= member.generation and seen.failed > LONG_AGO:
            return None
        what = f"that of {rollout.commit[:8]} is completed, and {member.cluster} is not Ready with it"
        raise RuleViolated("rollout end", what)

    def _past_the_final_gate(
        self, cloud: MemoryCloud, rollout: Rollout, final: StagedStage, reached: datetime
    ) -> None:
        """Check what is behind the last stage, which passed when its last cluster ``reached`` it.

        What could not take part catches up and keeps no group waiting.
        A newer commit that changes nothing goes on with the wait of the older one.
        """
        actor, what = self._context.loop.actor, f"that of {rollout.commit[:8]} is completed"
        inherited = any(stage.name == FINAL and stage.reached for stage in rollout.stages)
        opens = (LONG_AGO if inherited else reached) + timedelta(minutes=final.after)
        if rollout.commit not in self._misdated and self._context.loop.clock() + CLOCKS < opens:
            raise RuleViolated("rollout final", f"{what}, and its final gate opens at {opens}")
        runs = cloud.repository.pulls.checks(rollout.commit)
        succeeded = any((each.name, each.conclusion) == (CHECK, "success") for each in runs)
        if final.checked and not succeeded:
            raise RuleViolated("rollout final", f"{what}, and {CHECK} has not succeeded")
        answers = [answer for _, answer in cloud.endpoints.asked]
        if final.asked and not actor.jumped and (answers.count(200) < 2 or answers[-1] != 200):
            raise RuleViolated("rollout final", f"{what} after the answers {answers[-3:]}")
