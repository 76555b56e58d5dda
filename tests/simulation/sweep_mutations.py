"""Mutations of sweeps: what a sweep finds is not concluded, not shown, or concluded of too little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

import pytest

from localcloud.github.world_host import WorldHost
from shared.app.api.parts import condition_of
from shared.app.api.views import clusters as cluster_views
from shared.app.api.views import drift as drift_views
from shared.app.api.views.drift import _cluster, _field
from shared.app.outbox import send
from shared.app.planner import reporter
from shared.app.planner.reporter import reopen
from shared.app.proposals import proposals
from shared.app.sweep import clusters, conclusions, corrections, events, sweep, verdicts
from shared.app.sweep.sweep import orphans_of
from shared.azure.differences import drift_of
from shared.azure.drift import policy
from shared.cluster.divergence import drift
from shared.cluster.divergence.verification import Verification
from shared.cluster.findings.conditions import with_in_sync
from shared.cluster.queues.messages import ReportRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.transitions import acceptance, apply_comparison
from shared.cluster.transitions.acceptance import accept_retry
from shared.language.model.cluster.drift import DriftAction
from shared.language.pin import PIN_BRANCHES
from shared.ports import Ports
from shared.ports.azure import DeleteCluster
from shared.ports.state import Listing, Orphan
from shared.resource_ids import ClusterId
from simulation.actors.accepted_drift import RULE as ACCEPTED
from simulation.actors.approved_corrections import RULE
from simulation.actors.drift import STATUS
from simulation.actors.kinds import AZURE_EVENTS, SWEEPS
from tests.simulation.mutations import Mutation, mutation


def a_sweep_concludes_nothing_of_single_clusters(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(clusters, "conclude", lambda *_: False)


def a_sweep_concludes_nothing_from_lists(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sweep, "conclude_from_list", lambda *_: False)


def what_a_sweep_found_is_never_taken_back(patch: pytest.MonkeyPatch) -> None:
    original = conclusions.conclude

    def conclude(record: ClusterRecord, *given: Any) -> bool:
        return not record.finding and original(record, *given)

    patch.setattr(conclusions, "conclude", conclude)


def a_stopped_cluster_is_no_finding(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(verdicts, "is_stopped", lambda _: False)


def a_lost_cluster_counts_as_in_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClusterRecord, "lost", property(lambda _: False))


def drift_is_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(corrections, "drift_of", lambda *_: [])


def a_digest_says_nothing(patch: pytest.MonkeyPatch) -> None:
    verify = import_module("shared.app.worker.steps.flux.verify")  # the package has a function of its name
    for module in (verdicts, corrections, verify):
        patch.setattr(module, "live_digest", lambda _: "same")


def drift_is_never_taken_back(patch: pytest.MonkeyPatch) -> None:
    original = apply_comparison.apply_comparison

    def kept(record: ClusterRecord, decided: Any, *given: Any, **named: Any) -> ClusterRecord:
        after = original(record, decided, *given, **named)
        drift = after.divergence.drift or record.divergence.drift
        return replace(after, divergence=replace(after.divergence, drift=drift))

    patch.setattr(corrections, "apply_comparison", kept)


def a_policy_corrects_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(corrections, "start_correction", lambda record, *_, **__: (record, ()))


def every_policy_corrects_everything(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(policy, "_careful", lambda _: DriftAction.CORRECT)


def a_correction_writes_the_other_differences_too(patch: pytest.MonkeyPatch) -> None:
    def whole(record: ClusterRecord, *, now: datetime, **_: Any) -> ClusterRecord:
        return accept_retry(record, now=now)

    patch.setattr(apply_comparison, "accept_retry", whole)


def a_correction_is_repeated_indefinitely(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(corrections, "exhausted", lambda *_: frozenset())


def a_cluster_that_differs_says_that_it_is_in_sync(patch: pytest.MonkeyPatch) -> None:
    def in_sync(record: ClusterRecord, drift: Any, now: datetime, **rest: Any) -> ClusterRecord:
        after = with_in_sync(record, None, now, **rest)
        return replace(after, divergence=replace(after.divergence, drift=drift))

    for module in (acceptance, apply_comparison):
        patch.setattr(module, "with_in_sync", in_sync)


def a_correction_begins_in_a_suspension(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(corrections, "only_reported", lambda decided, _: decided)


def a_deleted_node_pool_is_no_difference(patch: pytest.MonkeyPatch) -> None:
    def but_pools(*given: Any) -> list[Any]:
        return [difference for difference in drift_of(*given) if not difference.path.endswith("]")]

    patch.setattr(corrections, "drift_of", but_pools)


def a_missing_cluster_is_never_created_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClusterRecord, "recreated", property(lambda _: False))


def a_missing_cluster_is_created_again_whatever_its_policy_says(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClusterRecord, "_policy_recreates", True)


def a_commit_creates_a_missing_cluster_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClusterRecord, "may_create", True)


def what_needs_an_approval_is_corrected_without_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(policy, "_HARMLESS", (*policy._HARMLESS, *policy._BY_APPROVAL))


def an_approval_counts_for_any_correction(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(drift, "_correction", lambda *_: "any")


def an_approved_correction_is_not_started(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(apply_comparison, "released", lambda decided: decided)


def a_difference_that_lasts_leaves_the_commit_a_success(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reporter, "lasting_since", lambda _: datetime.min.replace(tzinfo=UTC))


def the_api_shows_no_fields(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(drift_views, "_cluster", lambda *given: {**_cluster(*given), "fields": []})


def the_api_shows_no_values(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(drift_views, "_field", lambda *given: {**_field(*given), "git": "", "live": ""})


def the_api_shows_another_value(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(drift_views, "_field", lambda *given: {**_field(*given), "live": given[0].git})


def the_api_shows_every_condition_as_true(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cluster_views, "condition_of", lambda *given: {**condition_of(*given), "status": "True"})


def a_sweep_reports_no_orphan(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sweep, "orphans_of", lambda *_: ())


def an_orphan_that_is_gone_is_still_reported(patch: pytest.MonkeyPatch) -> None:
    def kept(listed: Any, summaries: Any, before: Listing, *given: Any) -> tuple[Orphan, ...]:
        return tuple({*orphans_of(listed, summaries, before, *given), *before.orphans})

    patch.setattr(sweep, "orphans_of", kept)


def a_sweep_deletes_orphans(patch: pytest.MonkeyPatch) -> None:
    def deleted(*given: Any) -> tuple[Orphan, ...]:
        found, ports = orphans_of(*given), given[-1]
        for orphan in found:
            _, _, subscription, _, group, *_, name = orphan.resource.split("/")
            ports.azure.call(DeleteCluster(ClusterId(subscription, group, name), etag=None))
        return found

    patch.setattr(sweep, "orphans_of", deleted)


def a_status_stays_red_when_all_is_well_again(patch: pytest.MonkeyPatch) -> None:
    def only_for_worse(report: Callable[..., None]) -> Callable[..., None]:
        def reported(asked: Any, ports: Ports, **more: Any) -> None:
            others = not isinstance(asked, str | ReportRequest)
            if others or any(summary.lost for summary in ports.state.summaries()):
                report(asked, ports, **more)

        return reported

    patch.setattr(sweep, "send", only_for_worse(send))
    patch.setattr(sweep, "reopen", only_for_worse(reopen))


def _approval(remove: Callable[[pytest.MonkeyPatch], None]) -> Mutation:
    return mutation(remove, SWEEPS, RULE)


def drift_is_never_proposed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(proposals, "settle", lambda *_, **__: None)


def a_proposal_is_never_closed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(proposals, "_end", lambda *_, **__: None)


def a_proposal_keeps_the_values_with_which_it_was_opened(patch: pytest.MonkeyPatch) -> None:
    move = WorldHost.move_branch

    def moved(self: WorldHost, branch: str, *given: Any, **more: Any) -> Any:
        return move(self, branch, *given, **more) if branch.startswith(PIN_BRANCHES) else None

    patch.setattr(WorldHost, "move_branch", moved)


def _drift(remove: Callable[[pytest.MonkeyPatch], None], often: str = "") -> Mutation:
    return mutation(remove, SWEEPS, "drift", "untrue", often=often)


def _proposal(remove: Callable[[pytest.MonkeyPatch], None]) -> Mutation:
    return mutation(remove, SWEEPS, "proposal")


def _mutation(remove: Callable[[pytest.MonkeyPatch], None]) -> Mutation:
    return mutation(remove, SWEEPS, "stale ready")


def no_event_has_a_cluster_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(events, "handle", lambda *_: None)


def what_a_person_does_counts_as_the_apps(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(events, "is_own", lambda *_: True)


def a_comparison_of_long_ago_serves_every_later_event(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(events, "SHOWN", timedelta(days=-1000))


def what_is_accepted_is_still_shown(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Verification, "accepting", lambda known, *_: known)


def an_acceptance_never_ends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Verification, "now", lambda known, _: known)


def _of_events(remove: Callable[[pytest.MonkeyPatch], None]) -> Mutation:
    return mutation(remove, AZURE_EVENTS, "drift")


def _view(remove: Callable[[pytest.MonkeyPatch], None]) -> Mutation:
    return mutation(remove, SWEEPS, "untrue")


SWEEP_MUTATIONS = (
    mutation(a_sweep_concludes_nothing_of_single_clusters, SWEEPS, "stale ready", "drift"),
    mutation(a_sweep_concludes_nothing_from_lists, SWEEPS, "stale ready", "drift", "untrue"),
    _mutation(what_a_sweep_found_is_never_taken_back),
    _mutation(a_stopped_cluster_is_no_finding),
    _mutation(a_lost_cluster_counts_as_in_sync),
    _drift(drift_is_not_compared),
    _drift(a_digest_says_nothing),
    _drift(drift_is_never_taken_back),
    _drift(a_policy_corrects_nothing),
    _drift(every_policy_corrects_everything),
    _drift(a_correction_writes_the_other_differences_too, "add tag"),
    _drift(a_correction_is_repeated_indefinitely),
    _drift(a_cluster_that_differs_says_that_it_is_in_sync),
    mutation(a_correction_begins_in_a_suspension, SWEEPS, "drift", "suspended"),
    mutation(a_deleted_node_pool_is_no_difference, SWEEPS, "drift", "untrue", RULE, often="add-pool"),
    _drift(a_missing_cluster_is_never_created_again),
    mutation(
        a_missing_cluster_is_created_again_whatever_its_policy_says,
        SWEEPS,
        "drift",
        "untrue",
        "unasked creation",
    ),
    mutation(a_difference_that_lasts_leaves_the_commit_a_success, SWEEPS, STATUS),
    mutation(a_commit_creates_a_missing_cluster_again, SWEEPS, "unasked creation"),
    _approval(what_needs_an_approval_is_corrected_without_one),
    _approval(an_approval_counts_for_any_correction),
    _approval(an_approved_correction_is_not_started),
    _proposal(drift_is_never_proposed),
    _proposal(a_proposal_is_never_closed),
    _proposal(a_proposal_keeps_the_values_with_which_it_was_opened),
    mutation(a_sweep_reports_no_orphan, SWEEPS, "orphan"),
    mutation(an_orphan_that_is_gone_is_still_reported, SWEEPS, "orphan"),
    mutation(a_sweep_deletes_orphans, SWEEPS, "identity", "foreign write", "orphan"),
    _mutation(a_status_stays_red_when_all_is_well_again),
    mutation(what_is_accepted_is_still_shown, SWEEPS, ACCEPTED),
    mutation(an_acceptance_never_ends, SWEEPS, ACCEPTED),
    _of_events(no_event_has_a_cluster_compared),
    _of_events(what_a_person_does_counts_as_the_apps),
    _of_events(a_comparison_of_long_ago_serves_every_later_event),
    _view(the_api_shows_no_fields),
    _view(the_api_shows_no_values),
    _view(the_api_shows_another_value),
    _view(the_api_shows_every_condition_as_true),
)
