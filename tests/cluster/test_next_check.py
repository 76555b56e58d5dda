"""When a cluster that is not known to be healthy is checked again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.cluster.failures.errors import ClusterStopped, FluxUnhealthy
from shared.cluster.findings.health import (
    SLOT_SECONDS,
    HealthCondition,
    HealthFinding,
    checked,
    needs_check,
    next_check,
)
from shared.cluster.outcomes import Done, Fail
from shared.cluster.recipes import Step
from shared.cluster.record import ClusterRecord
from shared.cluster.transitions.acceptance import accept_delete, accept_retry
from shared.cluster.transitions.apply_outcome import apply_outcome
from tests.support.cluster_records import NOW, later, record

SLOT, PATIENCE = timedelta(seconds=SLOT_SECONDS), timedelta(minutes=30)


def found(status: bool | None, seconds: float = 0) -> ClusterRecord:
    """Return a Ready cluster of which a check said this."""
    ready = apply_outcome(record(step=Step.VERIFY), Done("verified"), now=NOW, jitter=0)
    flux = HealthFinding(HealthCondition.FLUX, status, "Reason", "a message")
    return checked(
        ready, [flux, HealthFinding(HealthCondition.PLATFORM, True, "Healthy", "")], later(seconds)
    )


@pytest.mark.parametrize(("status", "needed"), [(True, False), (False, True), (None, True)])
def test_only_a_cluster_that_is_known_to_be_healthy_needs_no_check(status: bool | None, needed: bool) -> None:
    assert needs_check(found(status)) is needed
    assert needs_check(accept_retry(found(status), now=NOW)) is needed, "its job may change that"


def test_a_cluster_that_was_never_checked_a_deleted_one_and_one_that_a_sweep_found_stopped_need_none() -> (
    None
):
    def ended(error: ClusterStopped | FluxUnhealthy) -> ClusterRecord:
        return apply_outcome(found(None), Fail(error), now=NOW, jitter=0)

    assert not needs_check(record())
    assert not needs_check(accept_delete(found(False), commit="d" * 40, now=NOW))
    assert not needs_check(ended(ClusterStopped("somebody stopped it")))
    assert needs_check(ended(FluxUnhealthy("it fails")))


@given(st.floats(0, 10_000), st.floats(0, 10_000), st.sampled_from(["one", "two", "three"]), st.booleans())
def test_all_who_ask_before_a_check_ask_for_the_same_one_and_it_comes_within_a_slot(
    asked: float, since: float, name: str, unread: bool
) -> None:
    current = replace(found(None if unread else False, since), name=name)
    first = next_check(current, later(asked), PATIENCE)
    assert later(asked) < first <= later(asked) + SLOT
    for part in (0.0, 0.3, 0.999):
        between = later(asked) + part * (first - later(asked))
        assert next_check(current, between, PATIENCE) == first
    assert next_check(current, first, PATIENCE) > first


def test_a_condition_that_ends_ready_is_checked_at_that_moment() -> None:
    current = found(False)
    moments, at = [], NOW
    while at < NOW + PATIENCE + SLOT:
        at = next_check(current, at, PATIENCE)
        moments.append(at)
    assert any(timedelta() <= at - NOW - PATIENCE <= timedelta(seconds=10) for at in moments)
