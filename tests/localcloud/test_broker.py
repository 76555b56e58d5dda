"""The broker's rules, on a clock that the tests move."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcloud.common.clock import ManualClock
from localcloud.servicebus.world.broker import Broker, Delivery, Draft, QueueConfig, QueueCounts, SessionLock
from localcloud.servicebus.world.broker_values import (
    MAX_MESSAGE_BYTES,
    BrokerError,
    InvalidArgument,
    MessageLockLost,
    MessageNotFound,
    MessageTooLarge,
    NotAllowed,
    QueueNotFound,
    SessionCannotBeLocked,
    SessionLockLost,
)

JOBS = QueueConfig("jobs", lock_seconds=60, max_delivery_count=3, duplicate_window_seconds=600)
LOOSE = QueueConfig("loose", lock_seconds=60, requires_session=False)
DEAD_LETTERS = "jobs/$DeadLetterQueue"


def make() -> tuple[Broker, ManualClock]:
    clock = ManualClock()
    return Broker([JOBS, LOOSE], clock), clock


def draft(name: str, session: str = "s") -> Draft:
    return Draft(name.encode(), id=name, session=session)


def accept(broker: Broker, session: str | None = None) -> SessionLock:
    lock = broker.accept_session("jobs", session)
    assert lock is not None
    return lock


def receive(broker: Broker, lock: SessionLock | None = None, queue: str = "jobs") -> Delivery:
    delivery = broker.receive(queue, lock)
    assert delivery is not None
    return delivery


def test_an_id_is_taken_once_within_the_window_and_again_after_it() -> None:
    broker, clock = make()
    first = broker.send("jobs", draft("a"))
    clock.advance(599)
    assert broker.send("jobs", draft("a", session="other")) == first
    clock.advance(1)
    assert broker.send("jobs", draft("a")) != first
    assert broker.counts("jobs") == QueueCounts(active=2, scheduled=0, dead_lettered=0)


def test_a_completed_message_still_counts_as_a_duplicate_and_a_scheduled_one_already_does() -> None:
    broker, clock = make()
    broker.send("jobs", Draft(b"later", id="a", session="s", at=clock() + timedelta(hours=1)))
    broker.send("jobs", draft("a"))
    broker.send("jobs", draft("b"))
    broker.complete("jobs", receive(broker, accept(broker)).lock_token)
    broker.send("jobs", draft("b"))
    assert broker.counts("jobs") == QueueCounts(active=0, scheduled=1, dead_lettered=0)


def test_messages_without_an_id_are_never_duplicates() -> None:
    broker, _ = make()
    for _ in range(2):
        broker.send("jobs", Draft(b"", session="s"))
    assert broker.counts("jobs").active == 2


def test_a_scheduled_message_joins_the_line_at_its_time_behind_what_is_there() -> None:
    broker, clock = make()
    at = clock() + timedelta(seconds=30)
    broker.send("jobs", Draft(b"", id="late", session="s", at=at))
    broker.send("jobs", draft("early"))
    assert broker.next_time() == at
    clock.advance(29.9)
    assert [m.scheduled for m in broker.peek("jobs")] == [True, False]
    clock.advance(0.1)
    assert [(m.draft.id, m.scheduled) for m in broker.peek("jobs")] == [("early", False), ("late", False)]
    assert broker.peek("jobs")[1].enqueued_at == at
    assert broker.next_time() is None


def test_a_scheduled_message_can_be_taken_back_until_its_time() -> None:
    broker, clock = make()
    sequence = broker.send("jobs", Draft(b"", session="s", at=clock() + timedelta(seconds=1)))
    broker.cancel_scheduled("jobs", sequence)
    clock.advance(2)
    assert broker.counts("jobs") == QueueCounts(0, 0, 0)
    with pytest.raises(MessageNotFound):
        broker.cancel_scheduled("jobs", sequence)


def test_a_session_has_one_receiver_who_gets_its_messages_in_order() -> None:
    broker, _ = make()
    for name, session in [("a1", "a"), ("b1", "b"), ("a2", "a")]:
        broker.send("jobs", draft(name, session))
    lock = accept(broker)
    assert lock.session == "a"
    assert [receive(broker, lock).message.draft.id for _ in range(2)] == ["a1", "a2"]
    assert broker.receive("jobs", lock) is None
    with pytest.raises(SessionCannotBeLocked):
        broker.accept_session("jobs", "a")
    assert accept(broker).session == "b"
    assert broker.accept_session("jobs") is None


def test_the_session_that_was_freed_last_is_accepted_last() -> None:
    broker, _ = make()
    for session in ("a", "b", "c"):
        broker.send("jobs", draft(session, session))
    broker.release_session("jobs", accept(broker))
    assert [accept(broker).session for _ in range(3)] == ["b", "c", "a"]


def test_a_named_session_can_be_locked_before_it_has_messages() -> None:
    broker, _ = make()
    lock = accept(broker, "new")
    assert broker.receive("jobs", lock) is None
    broker.send("jobs", draft("a", "new"))
    assert receive(broker, lock).message.draft.id == "a"


def test_when_a_session_lock_ends_its_messages_are_free_again_and_count_as_failed() -> None:
    broker, clock = make()
    broker.send("jobs", draft("seen"))
    broker.send("jobs", draft("unseen"))
    lock = accept(broker)
    token = receive(broker, lock).lock_token
    assert broker.next_time() == clock() + timedelta(seconds=60)
    clock.advance(60)
    calls: list[Callable[[], object]] = [
        lambda: broker.complete("jobs", token),
        lambda: broker.receive("jobs", lock),
        lambda: broker.renew_session("jobs", lock),
    ]
    for call in calls:
        with pytest.raises(SessionLockLost):
            call()
    again = accept(broker)
    counts = [
        (d.message.draft.id, d.message.delivery_count)
        for d in (receive(broker, again), receive(broker, again))
    ]
    assert counts == [("seen", 1), ("unseen", 0)]
    broker.release_session("jobs", lock)
    assert broker.session_lock("jobs", "s") == again


def test_a_renewed_session_lock_holds_longer() -> None:
    broker, clock = make()
    broker.send("jobs", draft("a"))
    lock = accept(broker)
    token = receive(broker, lock).lock_token
    clock.advance(59)
    assert broker.renew_session("jobs", lock).until == clock() + timedelta(seconds=60)
    clock.advance(59)
    broker.complete("jobs", token)
    assert broker.counts("jobs").active == 0


def test_a_released_session_frees_its_messages_without_a_failed_delivery() -> None:
    broker, _ = make()
    broker.send("jobs", draft("a"))
    lock = accept(broker)
    receive(broker, lock)
    broker.release_session("jobs", lock)
    assert receive(broker, accept(broker)).message.delivery_count == 0


def test_a_message_abandoned_too_often_is_dead_lettered() -> None:
    broker, _ = make()
    broker.send("jobs", draft("poison"))
    broker.send("jobs", draft("next"))
    lock = accept(broker)
    for failures in range(3):
        delivery = receive(broker, lock)
        assert (delivery.message.draft.id, delivery.message.delivery_count) == ("poison", failures)
        broker.abandon("jobs", delivery.lock_token)
    assert receive(broker, lock).message.draft.id == "next"
    assert broker.counts("jobs") == QueueCounts(active=1, scheduled=0, dead_lettered=1)
    dead = receive(broker, queue=DEAD_LETTERS).message
    assert (dead.draft.id, dead.delivery_count, dead.dead_letter_reason) == (
        "poison",
        3,
        "MaxDeliveryCountExceeded",
    )


def test_a_dead_letter_has_its_reason_and_is_read_from_the_dead_letter_queue() -> None:
    broker, _ = make()
    broker.send("jobs", Draft(b"{}", id="a", session="s", properties={"own": 1}))
    token = receive(broker, accept(broker)).lock_token
    broker.dead_letter("jobs", token, reason="Broken", description="no such field")
    for _ in range(20):
        broker.abandon(DEAD_LETTERS, receive(broker, queue=DEAD_LETTERS).lock_token)
    delivery = receive(broker, queue=DEAD_LETTERS)
    assert (delivery.message.dead_letter_reason, delivery.message.dead_letter_description) == (
        "Broken",
        "no such field",
    )
    assert (delivery.message.draft.session, delivery.message.draft.properties["own"]) == ("s", 1)
    broker.complete(DEAD_LETTERS, delivery.lock_token)
    assert broker.counts("jobs") == QueueCounts(0, 0, 0)


def test_without_sessions_each_message_has_a_lock_of_its_own() -> None:
    broker, clock = make()
    for name in ("a", "b"):
        broker.send("loose", Draft(b"", id=name))
    first, second = receive(broker, queue="loose"), receive(broker, queue="loose")
    clock.advance(30)
    assert broker.renew("loose", second.lock_token) == clock() + timedelta(seconds=60)
    clock.advance(30)
    with pytest.raises(MessageLockLost):
        broker.complete("loose", first.lock_token)
    broker.complete("loose", second.lock_token)
    assert receive(broker, queue="loose").message.delivery_count == 1


def test_peek_shows_locked_messages_by_session_and_from_a_number_on() -> None:
    broker, _ = make()
    for name, session in [("a1", "a"), ("b1", "b"), ("a2", "a")]:
        broker.send("jobs", draft(name, session))
    receive(broker, accept(broker))
    assert [m.draft.id for m in broker.peek("jobs", session="a")] == ["a1", "a2"]
    assert [m.draft.id for m in broker.peek("jobs", first=2, limit=1)] == ["b1"]


@pytest.mark.parametrize(
    ("queue", "message", "error"),
    [
        ("jobs", Draft(b""), NotAllowed),
        ("jobs", Draft(b"", id="x" * 129, session="s"), InvalidArgument),
        ("jobs", Draft(b"x" * (MAX_MESSAGE_BYTES + 1), session="s"), MessageTooLarge),
        ("nowhere", Draft(b"", session="s"), QueueNotFound),
    ],
)
def test_what_the_service_refuses_is_refused(queue: str, message: Draft, error: type[BrokerError]) -> None:
    broker, _ = make()
    with pytest.raises(error):
        broker.send(queue, message)


def test_listeners_are_called_for_messages_and_for_expired_locks() -> None:
    broker, clock = make()
    heard: list[str] = []
    stop = broker.listen(lambda: heard.append("x"))
    broker.send("jobs", draft("a"))
    accept(broker)
    assert len(heard) == 1
    clock.advance(60)
    broker.counts("jobs")
    assert len(heard) == 2
    stop()
    broker.send("jobs", draft("b"))
    assert len(heard) == 2


@given(
    st.lists(
        st.tuples(st.sampled_from(["send", "take", "complete", "abandon", "give", "wait"]), st.integers(0, 3))
    )
)
def test_no_sequence_of_calls_loses_duplicates_or_reorders_a_message(steps: list[tuple[str, int]]) -> None:
    broker, clock = make()
    sent, done = 0, []
    locks: dict[str, SessionLock] = {}
    for step, number in steps:
        session = str(number)
        try:
            if step == "send":
                broker.send("jobs", draft(str(sent), session))
                sent += 1
            elif step == "take" and (lock := broker.accept_session("jobs")):
                locks[lock.session] = lock
            elif step in ("complete", "abandon") and (found := broker.receive("jobs", locks[session])):
                getattr(broker, step)("jobs", found.lock_token)
                done += [found.message] if step == "complete" else []
            elif step == "give":
                broker.release_session("jobs", locks.pop(session))
            elif step == "wait":
                clock.advance(20)
        except (SessionLockLost, KeyError):
            locks.pop(session, None)
    counts = broker.counts("jobs")
    assert counts.active + counts.dead_lettered + len(done) == sent
    assert len({m.sequence for m in done}) == len(done)
    for session in "0123":
        mine = [m.sequence for m in done if m.draft.session == session]
        assert mine == sorted(mine)
