"""The rule of the ends of rollouts: none is completed before its clusters have ended, and its final gate."""

from __future__ import annotations

from datetime import datetime, timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.rollouts.rollout import Member, Rollout, RolloutState
from simulation.desired_state import RequestedFleet
from simulation.history import LONG_AGO
from simulation.invariants.context import CLOCKS, Context
from simulation.invariants.staged_starts import RolloutRules
from simulation.rule import RuleViolated
from simulation.staging import CHECK, FINAL, StagedStage


class RolloutEnds:
    """Checks every rollout that is stored as completed."""

    def __init__(self, context: Context, starts: RolloutRules) -> None:
        self._context, self._starts = context, starts

    def decided(self, cloud: MemoryCloud, before: Rollout | None, after: Rollout) -> None:
        """Check a version of a rollout against the one before."""
        fleet, desired = cloud.ports.config.fleet, self._selected(cloud, after)
        ended = after.state is RolloutState.COMPLETED and (
            before is None or before.state is not RolloutState.COMPLETED
        )
        if not ended or self._context.replaced[fleet] or desired.in_force is None:
            return
        failed, reached = False, after.began
        for member in after.members:
            verified = self._ended(cloud, after, member)
            failed |= verified is None
            if verified is not None and not self._starts.is_excused(cloud, after, member, desired.in_force):
                reached = max(reached, verified)
        if self._selected(cloud, after, at_once=False).final_in_force is None:
            return
        if not any(_has_started(cloud, member) for member in after.members):
            return  # all were left out, and no record says in which commit's strategy it goes on
        if desired.final_in_force is not None and not failed and not after.people.overridden:
            self._past_the_final_gate(cloud, after, desired.final_in_force, reached)

    def _selected(self, cloud: MemoryCloud, rollout: Rollout, *, at_once: bool = True) -> RequestedFleet:
        """Return the fleet of the commit that selects the strategy: the newest one that changed a member.

        A commit that changes no cluster goes on with the rollout before it, in its strategy (docs/fleet.md).
        So does one that takes a delete back and no more: ``at_once``, that member counts all the same.
        """
        history = self._context.history(cloud)
        members = (member for member in rollout.members if at_once or not member.at_once)
        records = (cloud.state.cluster(member.cluster) for member in members)
        changed = {record.rollout for record in records if record is not None}
        newest = (commit for commit in reversed(history.head_line) if commit in changed)
        return history.desired(rollout.commit if rollout.commit in changed else next(newest, rollout.commit))

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
        if record.generation >= member.generation and record.phase in (Phase.SUSPENDED, Phase.SLEEPING):
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
        what = f"that of {rollout.commit[:8]} is completed"
        inherited = any(stage.name == FINAL and stage.reached for stage in rollout.stages)
        opens = (LONG_AGO if inherited else reached) + timedelta(minutes=final.after)
        if self._context.loop.clock() + CLOCKS < opens:
            raise RuleViolated("rollout final", f"{what}, and its final gate opens at {opens}")
        runs = cloud.repository.pulls.checks(rollout.commit)
        succeeded = any((run.name, run.conclusion) == (CHECK, "success") for run in runs)
        if final.checked and not succeeded:
            raise RuleViolated("rollout final", f"{what}, and {CHECK} has not succeeded")
        answers = [answer for _, answer in cloud.endpoints.asked]
        if final.asked and (answers.count(200) < 2 or answers[-1] != 200):
            raise RuleViolated("rollout final", f"{what} after the answers {answers[-3:]}")


def _has_started(cloud: MemoryCloud, member: Member) -> bool:
    """Return whether a cluster has started to change to what a rollout brings it."""
    record = cloud.state.cluster(member.cluster)
    return record is not None and record.uid == member.uid and record.generation >= member.generation
