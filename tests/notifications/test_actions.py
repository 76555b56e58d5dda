"""What a fact says of what comes next is whole, because it has commands; a reason that is cut says so."""

from __future__ import annotations

import pytest

from shared.cluster.failures.errors import QuotaExceeded, ReconcileError, classes
from shared.cluster.outcomes import Fail
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.diagnosis import diagnose
from shared.cluster.transitions.acceptance import accept_new
from shared.cluster.transitions.apply_outcome import apply_outcome
from shared.notifications.notification import DETAIL_LIMIT, Notification
from shared.notifications.of_clusters import trouble_between
from tests.support.cluster_records import NOW
from tests.support.desired_clusters import desired


def failing(error: ReconcileError) -> tuple[ClusterRecord, Notification]:
    """Return a cluster with a long name whose job has failed, and the fact that it is."""
    before = accept_new(desired(f"a{'tlantic' * 8}-aks"), uid="0badcafe", commit="c" * 40, now=NOW)
    after = apply_outcome(before, Fail(error), now=NOW, jitter=0)
    notice = trouble_between(before, after)
    assert notice is not None
    return after, notice


@pytest.mark.parametrize("kind", list(classes()), ids=lambda kind: kind.__name__)
def test_what_comes_next_is_whole(kind: type[ReconcileError]) -> None:
    record, notice = failing(kind("an error"))
    assert notice.action == diagnose(record, now=NOW).suggested_action


def test_a_reason_that_is_cut_ends_with_dots() -> None:
    _, notice = failing(QuotaExceeded("x" * DETAIL_LIMIT))
    assert (len(notice.detail), notice.detail[-4:]) == (DETAIL_LIMIT, "x...")
