"""The rule of approvals: who may let a stage begin, and when, by what fleet.yaml says and people did."""

from __future__ import annotations

from datetime import datetime, timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from shared.rollouts.rollout import Rollout
from simulation.history import StageApproval
from simulation.invariants.context import CLOCKS, Context
from simulation.rule import RuleViolated
from simulation.staging import ApprovalRule, stage_named


def approved_in_time(context: Context, cloud: MemoryCloud, rollout: Rollout, stage: str) -> None:
    """Check that a stage may begin now: as many as it asks for have approved it, each of whom may.

    The planner that lets it begin has decided since it began itself.
    """
    history, actor = context.history(cloud), context.loop.actor
    written = stage_named(history.desired(rollout.commit).in_force, stage)
    if written is None or not written.approvers:
        return
    releases = next((known.commit for known in rollout.stages if known.name == stage), "")
    of_platform = {(commit, stage) for commit in history.head_line} | {(releases, written.name)}
    named = of_platform if releases else {(rollout.commit, stage)}
    given = (approval for approval in history.approvals if (approval.commit, approval.stage) in named)
    by = {approval.by for approval in given if _counts(approval, written.rule, actor.since - CLOCKS)}
    if len(by) < written.approvers:
        people = ", ".join(sorted(by)) or "nobody"
        what = f"{stage} of {rollout.commit[:8]} begins, and {people} of {written.approvers} approved it"
        raise RuleViolated("rollout approval", f"{what}: {written.rule}")


def newly_entered(cloud: MemoryCloud, before: Rollout | None, after: Rollout) -> set[str]:
    """Return the stages that begin with a version of a rollout, and have a cluster left to start.

    A change that waits for nobody needs no approval.
    """
    earlier = {before.stages[place].name for place in before.entered} if before else set()
    left = set[str]()
    for member in after.members:
        record = cloud.state.cluster(member.cluster)
        waits = record is not None and record.uid == member.uid and record.generation < member.generation
        if waits and not member.at_once and member.stage in after.entered:
            left.add(after.stages[member.stage].name)
    return left - earlier


def _counts(given: StageApproval, rule: ApprovalRule, decided: datetime) -> bool:
    """Return whether an approval counts for a stage at a time."""
    if given.system and not (rule.system and given.proven):
        return False
    if (rule.admin and not given.admin) or (rule.others and given.author):
        return False
    times = (given.at - CLOCKS, given.at, given.at + CLOCKS)
    if rule.hours is not None and not any(map(rule.hours.cover, times)):
        return False
    return not rule.expires or decided < given.at + timedelta(minutes=rule.expires)
