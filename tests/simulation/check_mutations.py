"""Mutations of checks: what a check finds is not seen, not concluded, not shown, or never taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from shared.app import outbox, records
from shared.app.api.parts import condition_of
from shared.app.api.views import clusters
from shared.app.check import check, reading
from shared.app.check import check as checks
from shared.app.sweep import corrections
from shared.app.worker import worker
from shared.app.worker.steps.flux import sync, waiting
from shared.cluster.queues.envelopes import Envelope
from shared.cluster.queues.messages import StatusRequest
from shared.cluster.record import ClusterRecord
from shared.kubernetes import health
from shared.kubernetes.health import SUSPENDED, Fault, sync_faults
from shared.ports import Ports
from simulation.actors.kinds import CHECKS
from tests.simulation.mutations import Mutation, mutation


def a_check_looks_at_no_component(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reading, "_component_faults", lambda *_: [])


def an_unhealthy_cluster_stays_ready(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(check, "outcome_of", lambda *_: None)


def a_cluster_that_turns_unhealthy_is_not_checked_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(check, "next_check_of", lambda *_, **__: ())


def the_commit_of_an_unhealthy_cluster_is_not_reported(patch: pytest.MonkeyPatch) -> None:
    def silent(envelopes: Iterable[Envelope], ports: Ports) -> None:
        outbox.send_all(
            [envelope for envelope in envelopes if not isinstance(envelope.message, StatusRequest)], ports
        )

    patch.setattr(records, "send_all", silent)


def what_a_check_found_is_never_taken_back(patch: pytest.MonkeyPatch) -> None:
    original = check.conclude

    def conclude(record: ClusterRecord, found: Any, *given: Any, **named: Any) -> None:
        if all(document.status is False for document in found[:1]):
            original(record, found, *given, **named)

    patch.setattr(checks, "conclude", conclude)
    patch.setattr(worker, "needs_check", lambda _: False)


def flux_is_never_applied_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(corrections, "applies_again", lambda *_: False)


def flux_that_somebody_suspended_stays_so(patch: pytest.MonkeyPatch) -> None:
    for module in (sync, waiting):
        patch.setattr(module, "corrects_flux", lambda _: False)


def flux_that_is_suspended_is_healthy(patch: pytest.MonkeyPatch) -> None:
    def but_suspended(*given: Any) -> list[Fault]:
        return [sync_fault for sync_fault in sync_faults(*given) if sync_fault.reason != SUSPENDED]

    patch.setattr(health, "sync_faults", but_suspended)


def the_api_shows_every_condition_as_true(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(clusters, "condition_of", lambda *given: {**condition_of(*given), "status": "True"})


def _mutation(remove: Callable[[pytest.MonkeyPatch], None]) -> Mutation:
    return mutation(remove, CHECKS, "stale health", "lost work", "open status")


CHECK_MUTATIONS = (
    _mutation(a_check_looks_at_no_component),
    _mutation(an_unhealthy_cluster_stays_ready),
    _mutation(a_cluster_that_turns_unhealthy_is_not_checked_again),
    _mutation(the_commit_of_an_unhealthy_cluster_is_not_reported),
    _mutation(what_a_check_found_is_never_taken_back),
    _mutation(flux_is_never_applied_again),
    _mutation(flux_that_somebody_suspended_stays_so),
    _mutation(flux_that_is_suspended_is_healthy),
    _mutation(the_api_shows_every_condition_as_true),
)
