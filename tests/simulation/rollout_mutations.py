"""Mutations of rollouts: a bound, an order or a decision counts for nothing, or no message comes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shared.app import outbox
from shared.app.api.acts import cluster as cluster_acts
from shared.app.api.views import rollouts as rollout_views
from shared.app.planner import compute, planner, rollouts
from shared.app.planner.rollouts import StagedPlan
from shared.app.repository import read_resolved
from shared.app.sweep import corrections
from shared.cluster.queues.messages import QueueRequest, RolloutRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.transitions import acceptance
from shared.plan.plan import Action, Item
from shared.rollouts import begin, calendar, decide, of_plan
from shared.rollouts import waits as standing
from shared.rollouts.candidates import NOTHING, choose
from shared.rollouts.report import state_of
from shared.rollouts.rollout import Rollout, RolloutState
from shared.rollouts.waits import GroupStanding, StartWait, WaitReason
from simulation.actors.kinds import ROLLOUTS, SWEEPS
from tests.simulation.mutations import mutation


def every_cluster_of_a_rollout_starts_at_once(patch: pytest.MonkeyPatch) -> None:
    original = rollouts.stage

    def stage(*args: Any, **named: Any) -> StagedPlan:
        return replace(original(*args, **named), held=frozenset())

    patch.setattr(compute, "stage", stage)


def a_group_waits_for_no_other(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupStanding, "unfinished", lambda _: None)


def a_ready_cluster_counts_at_any_generation(patch: pytest.MonkeyPatch) -> None:
    original = standing.standing

    def stale(member: Any, *args: Any) -> Any:
        found = original(member, *args)
        return standing.MemberStanding.VERIFIED if found is standing.MemberStanding.IN_FLIGHT else found

    patch.setattr(decide, "standing", stale)


def a_failed_cluster_counts_for_nothing(patch: pytest.MonkeyPatch) -> None:
    original = standing.standing

    def forgiving(*args: Any) -> Any:
        found = original(*args)
        return standing.MemberStanding.OUT if found is standing.MemberStanding.FAILED else found

    patch.setattr(decide, "standing", forgiving)


def a_soak_is_over_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupStanding, "soaking", lambda *_: None)


def a_rollout_ends_while_its_clusters_change(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        decide,
        "_ended",
        lambda rollout, _, __, now: replace(rollout, state=RolloutState.COMPLETED, ended=now),
    )


def a_pause_counts_for_nothing(patch: pytest.MonkeyPatch) -> None:
    original = decide.decide

    def heedless(rollout: Rollout, *args: Any) -> Any:
        unpaused = replace(rollout, people=replace(rollout.people, paused=None))
        decision = original(unpaused, *args)
        return replace(decision, rollout=replace(decision.rollout, people=rollout.people))

    patch.setattr(rollouts, "decide", heedless)


def an_abort_counts_for_nothing(patch: pytest.MonkeyPatch) -> None:
    original = decide.decide

    def heedless(rollout: Rollout, *args: Any) -> Any:
        if rollout.state is not RolloutState.ABORTED:
            return original(rollout, *args)
        decision = original(replace(rollout, state=RolloutState.ACTIVE), *args)
        return replace(decision, rollout=replace(decision.rollout, state=RolloutState.ABORTED))

    patch.setattr(rollouts, "decide", heedless)


def a_pause_holds_nothing_that_a_newer_commit_changes_again(patch: pytest.MonkeyPatch) -> None:
    def everything(candidates: Any, *_: Any) -> frozenset[str]:
        return frozenset(candidate.cluster for candidate in candidates)

    patch.setattr(of_plan, "not_held", everything)


def a_commit_selects_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(of_plan, "choose", lambda strategies, _, updates: choose(strategies, NOTHING, updates))


def a_mistyped_strategy_is_passed_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(of_plan, "choose", lambda *given: (choose(*given)[0], ()))


def a_freeze_counts_for_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(calendar, "_active", lambda *_: None)


def a_window_is_always_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(calendar, "_first", lambda _, __, now: (now, ""))


def nobody_says_that_a_cluster_has_ended(patch: pytest.MonkeyPatch) -> None:
    original = outbox.send

    def silent(request: QueueRequest, *others: Any, **more: Any) -> None:
        if not isinstance(request, RolloutRequest):
            original(request, *others, **more)

    patch.setattr(outbox, "send", silent)


def _unheld(patch: pytest.MonkeyPatch, *actions: Action) -> None:
    """Let no freeze and no window hold the items of a plan with these actions."""
    original = of_plan._shut

    def shut(item: Item, *args: Any) -> Any:
        return None if item.action in actions else original(item, *args)

    patch.setattr(of_plan, "_shut", shut)


def a_freeze_holds_no_delete(patch: pytest.MonkeyPatch) -> None:
    _unheld(patch, Action.DELETE, Action.REBUILD)


def a_freeze_holds_no_creation(patch: pytest.MonkeyPatch) -> None:
    _unheld(patch, Action.CREATE, Action.ADOPT)


def a_freeze_holds_no_retry(patch: pytest.MonkeyPatch) -> None:
    _unheld(patch, Action.RETRY)


def _aside(patch: pytest.MonkeyPatch, counts_as: standing.MemberStanding) -> None:
    """Let a cluster that cannot take part count as something else."""
    original = standing.standing

    def other(*args: Any) -> Any:
        found = original(*args)
        return counts_as if found is standing.MemberStanding.ASIDE else found

    patch.setattr(decide, "standing", other)


def a_cluster_that_was_set_aside_once_holds_nobody_back(patch: pytest.MonkeyPatch) -> None:
    original, aside = standing.standing, set[str]()

    def careless(member: Any, *args: Any) -> Any:
        found = original(member, *args)
        if found is standing.MemberStanding.ASIDE:
            aside.add(member.uid)
        changes = found is standing.MemberStanding.IN_FLIGHT and member.uid in aside
        return standing.MemberStanding.VERIFIED if changes else found

    patch.setattr(decide, "standing", careless)


def a_group_needs_no_cluster_that_is_ready(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(begin, "at_least", lambda *_: 0)


def a_requirement_is_rounded_down(patch: pytest.MonkeyPatch) -> None:
    def rounded(written: str, size: int) -> int:
        return size * int(written[:-1]) // 100 if written.endswith("%") else min(size, int(written))

    patch.setattr(begin, "at_least", rounded)


def a_cluster_that_is_set_aside_counts_as_a_success(patch: pytest.MonkeyPatch) -> None:
    original = GroupStanding.counts

    def counts(part: Any) -> Any:
        found = original(part)
        found[standing.MemberStanding.VERIFIED] += found[standing.MemberStanding.ASIDE]
        return found

    patch.setattr(GroupStanding, "counts", counts)


def what_starts_keeps_the_spec_that_it_had(patch: pytest.MonkeyPatch) -> None:
    original = acceptance.accept_change

    def accept(record: ClusterRecord, *args: Any, **rest: Any) -> ClusterRecord:
        after = original(record, *args, **rest)
        return after if record.deleting else replace(after, document=record.document, digest=record.digest)

    patch.setattr(acceptance, "accept_change", accept)


def a_stopped_cluster_starts_like_any_other(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(standing, "_cannot_start", lambda *_: False)


def a_stopped_cluster_counts_as_ready(patch: pytest.MonkeyPatch) -> None:
    _aside(patch, standing.MemberStanding.VERIFIED)


def a_stopped_cluster_is_left_out_for_good(patch: pytest.MonkeyPatch) -> None:
    _aside(patch, standing.MemberStanding.OUT)


def a_stopped_cluster_holds_its_group(patch: pytest.MonkeyPatch) -> None:
    original = GroupStanding.unfinished

    def unfinished(part: Any) -> Any:
        aside = part.named(standing.MemberStanding.ASIDE)
        return (
            original(part) or (aside and StartWait(WaitReason.STAGE, part.name, part.number, aside)) or None
        )

    patch.setattr(GroupStanding, "unfinished", unfinished)


def a_stage_of_which_nobody_can_take_part_passes(patch: pytest.MonkeyPatch) -> None:
    group = begin._group
    patch.setattr(begin, "_group", lambda rule, own, **_: group(rule, own, first=False))


def an_older_rollout_is_shown_as_under_way(patch: pytest.MonkeyPatch) -> None:
    def state(rollout: Rollout, decision: Any) -> str:
        older = rollout.state is RolloutState.SUPERSEDED
        return state_of(replace(rollout, state=RolloutState.ACTIVE) if older else rollout, decision)

    patch.setattr(rollout_views, "state_of", state)


def what_waits_takes_the_spec_of_the_older_rollout(patch: pytest.MonkeyPatch) -> None:
    original = read_resolved

    def read(head: str, known: Any, ports: Any, *tombstones: Any) -> Any:
        found, under_way = original(head, known, ports, *tombstones), ports.state.fleet().rollout
        desired = found.desired
        rollout = ports.state.rollout(under_way) if under_way not in ("", head) else None
        if rollout is None:
            return found
        older = original(under_way, known, ports).desired.clusters
        records = {document.name: document for document in ports.state.clusters()}
        waiting = [
            member.cluster
            for member in rollout.members
            if member.cluster in records and records[member.cluster].generation < member.generation
        ]
        kept = {name: older[name] for name in waiting if name in older and name in desired.clusters}
        return replace(found, desired=replace(desired, clusters={**desired.clusters, **kept}))

    patch.setattr(planner, "read_resolved", read)


def a_replay_starts_in_a_freeze(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cluster_acts, "held_start", lambda *_: None)


def a_correction_starts_in_a_freeze(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(corrections, "held_start", lambda *_: None)


ROLLOUT_MUTATIONS = (
    mutation(every_cluster_of_a_rollout_starts_at_once, ROLLOUTS, "rollout bound", "rollout order"),
    mutation(a_group_waits_for_no_other, ROLLOUTS, "rollout order"),
    mutation(a_ready_cluster_counts_at_any_generation, ROLLOUTS, "rollout order", "rollout bound"),
    mutation(
        a_failed_cluster_counts_for_nothing,
        f"{ROLLOUTS} operation-fails",
        *("rollout budget", "rollout bound", "rollout order", "rollout success"),
    ),
    mutation(a_soak_is_over_at_once, ROLLOUTS, "rollout soak"),
    mutation(a_rollout_ends_while_its_clusters_change, ROLLOUTS, "rollout end"),
    mutation(a_pause_counts_for_nothing, ROLLOUTS, "rollout stopped"),
    mutation(an_abort_counts_for_nothing, ROLLOUTS, "rollout stopped"),
    mutation(a_pause_holds_nothing_that_a_newer_commit_changes_again, ROLLOUTS, "rollout stopped"),
    mutation(a_commit_selects_nothing, ROLLOUTS, "rollout"),
    mutation(a_mistyped_strategy_is_passed_over, ROLLOUTS, "rollout strategy"),
    mutation(a_freeze_counts_for_nothing, ROLLOUTS, "rollout window", "timed start"),
    mutation(a_window_is_always_open, ROLLOUTS, "rollout window", "timed start"),
    mutation(a_freeze_holds_no_delete, ROLLOUTS, "timed start", often="add remove"),
    mutation(a_freeze_holds_no_creation, ROLLOUTS, "timed start", often="add remove"),
    mutation(a_freeze_holds_no_retry, ROLLOUTS, "timed start"),
    mutation(a_stopped_cluster_starts_like_any_other, ROLLOUTS, "rollout aside"),
    mutation(a_stopped_cluster_counts_as_ready, ROLLOUTS, "rollout aside", "rollout end"),
    mutation(a_stopped_cluster_is_left_out_for_good, ROLLOUTS, "rollout aside", "rollout end"),
    mutation(a_stopped_cluster_holds_its_group, ROLLOUTS, "rollout aside"),
    mutation(a_stage_of_which_nobody_can_take_part_passes, ROLLOUTS, "rollout order"),
    mutation(an_older_rollout_is_shown_as_under_way, ROLLOUTS, "untrue"),
    mutation(what_waits_takes_the_spec_of_the_older_rollout, ROLLOUTS, "another spec", "untrue"),
    mutation(a_cluster_that_was_set_aside_once_holds_nobody_back, ROLLOUTS, "rollout order"),
    mutation(a_group_needs_no_cluster_that_is_ready, f"{ROLLOUTS} operation-fails", "rollout success"),
    mutation(a_requirement_is_rounded_down, f"{ROLLOUTS} operation-fails", "rollout success"),
    mutation(a_cluster_that_is_set_aside_counts_as_a_success, ROLLOUTS, "rollout success"),
    mutation(what_starts_keeps_the_spec_that_it_had, ROLLOUTS, "another spec"),
    mutation(a_replay_starts_in_a_freeze, f"{ROLLOUTS} operation-fails", "timed start"),
    mutation(a_correction_starts_in_a_freeze, f"{ROLLOUTS} {SWEEPS}", "timed start"),
    mutation(nobody_says_that_a_cluster_has_ended, ROLLOUTS, "lost work", "open status", "not in sync"),
)
