"""What comes next, as a notification says it, is whole: it has commands; a reason that is cut says so."""

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
    """Return a cluster with a long name whose job has failed, and the notification that it is."""
    before = accept_new(desired(f"a{'tlantic' * 8}-aks"), uid="0badcafe", commit="c" * 40, now=NOW)
    after = apply_outcome(before, Fail(error), now=NOW, jitter=0)
    notification = trouble_between(before, after)
    assert notification is not None
    return after, notification


@pytest.mark.parametrize("kind", list(classes()), ids=lambda kind: kind.__name__)
def test_what_comes_next_is_whole(kind: type[ReconcileError]) -> None:
    record, notification = failing(kind("an error"))
    assert notification.action == diagnose(record, now=NOW).suggested_action


def test_a_reason_that_is_cut_ends_with_dots() -> None:
    _, notification = failing(QuotaExceeded("x" * DETAIL_LIMIT))
    assert (len(notification.detail), notification.detail[-4:]) == (DETAIL_LIMIT, "x...")
