"""Mutations of notifications: one, an end or the id of a message is lost, or messages follow at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.app.notifications import OF_PLANS
from shared.notifications import of_clusters, record
from shared.notifications.notification import Notification
from shared.notifications.record import NotifierRecord
from simulation.actors.kinds import ROUTES, SWEEPS
from tests.simulation.mutations import mutation


def a_message_that_fails_is_dropped(patch: pytest.MonkeyPatch) -> None:
    original = record.failed

    def failed(known: NotifierRecord, route: str, *given: Any, **named: Any) -> NotifierRecord:
        after = original(known, route, *given, **named)
        state = replace(after.routes[route], sending=(), pending=())
        return replace(after, routes={**after.routes, route: state})

    patch.setattr(record, "failed", failed)


def a_message_that_is_sent_again_has_what_came_since(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(record, "begin", lambda known, *_: known)


def a_problem_that_becomes_another_one_does_not_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(record, "_replaced", lambda known, *_: known)


def a_problem_is_never_compared_with_the_record(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(record, "unconfirmed", lambda *_: [])


def a_plan_is_not_compared_when_another_one_was(patch: pytest.MonkeyPatch) -> None:
    compare = record.compare

    def compared(
        known: NotifierRecord, notifications: Sequence[Notification], kinds: Any, *rest: Any
    ) -> NotifierRecord:
        old = kinds is OF_PLANS and known.plan_at is not None
        return known if old else compare(known, notifications, kinds, *rest)

    patch.setattr(record, "compare", compared)


def the_pause_after_a_digest_does_not_grow(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(record, "COLLECT", timedelta(0))


def drift_is_no_fact(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(of_clusters, "drift_between", lambda *_: None)


ROUTE_MUTATIONS = (
    mutation(a_message_that_fails_is_dropped, ROUTES, "lost notification", "missing end"),
    mutation(a_message_that_is_sent_again_has_what_came_since, ROUTES, "repeated notification"),
    mutation(a_problem_that_becomes_another_one_does_not_end, f"{ROUTES} {SWEEPS}", "missing end"),
    mutation(a_problem_is_never_compared_with_the_record, ROUTES, "missing end"),
    mutation(a_plan_is_not_compared_when_another_one_was, ROUTES, "missing end", "lost notification"),
    mutation(drift_is_no_fact, f"{ROUTES} {SWEEPS}", "lost notification"),
    mutation(the_pause_after_a_digest_does_not_grow, ROUTES, "many messages"),
)
