"""The rule about the ends of problems: which problems a reader of the messages takes for open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from shared.language.model.notification_kinds import NotificationKind
from shared.notifications.digest import Links, OutgoingMessage, messages
from shared.notifications.notification import Notification, end_of
from simulation.actors.notification_routes import _shown

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def held(sequence: int, minute: int) -> Notification:
    return Notification(
        id=f"held:b:{sequence}",
        kind=NotificationKind.HELD,
        key="cluster:b",
        subject="b",
        at=BEGAN + timedelta(minutes=minute),
        sequence=sequence,
    )


def over(problem: Notification, minute: int) -> Notification:
    return end_of(problem, BEGAN + timedelta(minutes=minute))


def sent(*digests: Sequence[Notification]) -> Iterator[OutgoingMessage]:
    for notifications in digests:
        yield from messages(notifications, fleet="north", limit=10_000, links=Links())


OLD, NEW = held(14, 1), held(17, 2)
AGAIN = held(14, 3)
"""A writer that was frozen stores the older notification once more."""


@pytest.mark.parametrize(
    "digests",
    [
        pytest.param(([OLD], [OLD], [over(OLD, 4)]), id="it is sent twice"),
        pytest.param(([OLD], [NEW], [over(NEW, 4)]), id="it continues as another notification"),
        pytest.param(([OLD], [NEW], [AGAIN], [over(AGAIN, 4)]), id="it is reported again"),
        pytest.param(([OLD], [NEW], [AGAIN, over(AGAIN, 4)]), id="it is reported again with its end"),
    ],
)
def test_no_problem_is_open_when(digests: Sequence[Sequence[Notification]]) -> None:
    assert not [*_shown(sent(*digests))]


@pytest.mark.parametrize(
    "digests",
    [
        pytest.param(([OLD], [NEW]), id="nothing ends"),
        pytest.param(([OLD], [NEW], [over(OLD, 4)]), id="the one before it ends"),
        pytest.param(
            ([OLD], [over(OLD, 2), held(17, 3)]), id="it begins in the message with the end of another"
        ),
        pytest.param(([OLD, over(OLD, 2), held(17, 3)],), id="it begins after one that was over at once"),
    ],
)
def test_the_problem_that_began_last_is_open_when(digests: Sequence[Sequence[Notification]]) -> None:
    assert [problem.sequence for problem in _shown(sent(*digests))] == [17]
