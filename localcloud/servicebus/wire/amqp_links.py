"""The links of a queue: one receives messages from a client, one delivers them.

Names are the service's view: an ``Inlet`` is a client's sender, an ``Outlet`` a client's receiver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proton import Condition, Delivery, Endpoint, Link, Receiver, Sender, Terminus, symbol

from localcloud.servicebus.wire import amqp_codec
from localcloud.servicebus.world.broker import Broker
from localcloud.servicebus.world.broker_values import (
    MAX_MESSAGE_BYTES,
    BrokerError,
    MessageTooLarge,
    NotAllowed,
    SessionLock,
    SessionLockLost,
)

SESSION_FILTER = symbol("com.microsoft:session-filter")
LOCKED_UNTIL = symbol("com.microsoft:locked-until-utc")
TIMEOUT = "com.microsoft:timeout"
CREDIT = 100


def accept_terms(link: Link) -> None:
    """Agree to what the client asked for: addresses and settle modes."""
    link.source.copy(link.remote_source)
    link.target.copy(link.remote_target)
    link.snd_settle_mode = link.remote_snd_settle_mode
    link.rcv_settle_mode = link.remote_rcv_settle_mode


def refuse(link: Link, condition: str, text: str) -> None:
    """Answer an attach with an end without address, and close with the error."""
    (link.source if link.is_sender else link.target).type = Terminus.UNSPECIFIED
    link.open()
    end(link, condition, text)


def end(link: Link, condition: str, text: str) -> None:
    """Close a link with an error."""
    if link.state & Endpoint.LOCAL_CLOSED:
        return
    link.condition = fault(condition, text)
    link.close()


def fault(condition: str, text: str) -> Condition:
    """Return an AMQP error; its third field is there because the client reads it unasked."""
    return Condition(condition, text, {symbol("tracking-id"): "local"})


def whole_payload(delivery: Delivery) -> bytes | None:
    """Return what was transferred, or None while parts are missing."""
    if not delivery.readable or delivery.partial:
        return None
    return bytes(delivery.link.recv(delivery.pending) or b"")


def top_up(link: Receiver) -> None:
    """Give the client new credit in large steps: every grant is a frame that it stops to read."""
    if link.credit < CREDIT // 2:
        link.flow(CREDIT - link.credit)


class Inlet:
    """A client's sender: every message is taken in before it is acknowledged."""

    def __init__(self, link: Receiver, broker: Broker, queue: str) -> None:
        self._link, self._broker, self._queue = link, broker, queue
        accept_terms(link)
        link.max_message_size = MAX_MESSAGE_BYTES
        link.open()
        top_up(link)

    def on_delivery(self, delivery: Delivery) -> None:
        """Take a message or a batch in, or reject it."""
        payload = whole_payload(delivery)
        if payload is None:
            return
        self._link.advance()
        try:
            if len(payload) > MAX_MESSAGE_BYTES:
                raise MessageTooLarge(
                    f"the message has {len(payload)} bytes, the limit is {MAX_MESSAGE_BYTES}"
                )
            self._broker.send_batch(self._queue, amqp_codec.drafts(payload))
        except BrokerError as error:
            delivery.local.condition = fault(error.condition, str(error))
            delivery.update(Delivery.REJECTED)
        else:
            delivery.update(Delivery.ACCEPTED)
        delivery.settle()
        top_up(self._link)

    def end(self, condition: str, text: str) -> None:
        """Close the link from this side."""
        end(self._link, condition, text)


class Outlet:
    """A client's receiver, of one session or of a queue without sessions.

    ``open`` may have to be repeated until a session is free; ``pump`` delivers as many messages as the client
    has credit for.
    """

    def __init__(self, link: Sender, broker: Broker, queue: str) -> None:
        self._link, self._broker, self.queue = link, broker, queue
        self.lock: SessionLock | None = None
        asked = _session_filter(link)
        self._by_session = asked is not None
        self._session = asked or None
        self.name: str = link.name
        self.is_open = False

    @property
    def patience(self) -> float:
        """How long the client waits for a free session, in seconds (the service's default: 60)."""
        properties = self._link.remote_properties or {}
        return float(properties.get(symbol(TIMEOUT), 60_000)) / 1000

    def open(self) -> bool:
        """Attach, if a session is free; return whether the link is attached. Raise BrokerError to refuse."""
        requires = self._broker.config(self.queue).requires_session
        if requires != self._by_session:
            raise NotAllowed(f"queue {self.queue} {'needs' if requires else 'has no'} sessions")
        if self._by_session:
            self.lock = self._broker.accept_session(self.queue, self._session)
            if self.lock is None:
                return False
        accept_terms(self._link)
        if self.lock is not None:
            self._link.source.filter.clear()
            self._link.source.filter.put_object({SESSION_FILTER: self.lock.session})
            self._link.properties = {LOCKED_UNTIL: amqp_codec.ticks(self.lock.until)}
        self._link.open()
        self.is_open = True
        return True

    def refuse(self, condition: str, text: str) -> None:
        """Answer the attach with an error."""
        refuse(self._link, condition, text)

    def pump(self) -> None:
        """Deliver while the client has credit and the line has messages."""
        try:
            while self._link.credit > 0:
                found = self._broker.receive(self.queue, self.lock)
                if found is None:
                    break
                delivery = self._link.delivery(amqp_codec.delivery_tag(found.lock_token))
                delivery.lock_token = found.lock_token
                self._link.stream(amqp_codec.encode(found.message, locked_until=found.locked_until))
                self._link.advance()
        except SessionLockLost as error:
            end(self._link, error.condition, str(error))
        if self._link.drain_mode:
            self._link.drained()

    def check_lock(self) -> None:
        """Close the link when its session was lost; notice when it was renewed."""
        if self.lock is None or self._broker.clock() < self.lock.until:
            return
        present = self._broker.session_lock(self.queue, self.lock.session)
        if present is not None and present.token == self.lock.token:
            self.lock = present
        else:
            end(self._link, SessionLockLost.condition, f"the lock on session {self.lock.session} has ended")

    def on_delivery(self, delivery: Delivery) -> None:
        """Settle with the client's outcome, and confirm it with the same outcome; reject when the lock is
        lost.
        """
        if not delivery.updated or delivery.remote_state == 0:
            return
        outcome = delivery.remote_state
        try:
            self._settle(delivery)
        except BrokerError as error:
            delivery.local.condition = fault(error.condition, str(error))
            outcome = Delivery.REJECTED
        delivery.update(outcome)
        delivery.settle()

    def _settle(self, delivery: Delivery) -> None:
        remote, token = delivery.remote, delivery.lock_token
        outcomes: dict[Any, Callable[[], None]] = {
            Delivery.ACCEPTED: lambda: self._broker.complete(self.queue, token),
            Delivery.RELEASED: lambda: self._broker.release(self.queue, token),
            Delivery.MODIFIED: lambda: self._abandon(delivery),
            Delivery.REJECTED: lambda: self._dead_letter(remote.condition, delivery),
        }
        settle = outcomes.get(delivery.remote_state)
        if settle is not None:
            settle()

    def _abandon(self, delivery: Delivery) -> None:
        if delivery.remote.undeliverable:
            raise NotAllowed("the local Service Bus does not defer messages")
        delivery.local.failed = delivery.remote.failed
        self._broker.abandon(self.queue, delivery.lock_token)

    def _dead_letter(self, error: Condition | None, delivery: Delivery) -> None:
        notes = amqp_codec.plain(error.info) if error is not None and error.info else {}
        self._broker.dead_letter(
            self.queue,
            delivery.lock_token,
            reason=str(notes.get("DeadLetterReason") or ""),
            description=str(notes.get("DeadLetterErrorDescription") or ""),
        )

    def on_closed(self) -> None:
        """Give the session back: the client has closed the link in good order.

        Without a session nothing is given back: as in the service, each lock stays until it ends.
        """
        if self.lock is not None:
            self._broker.release_session(self.queue, self.lock)


def _session_filter(link: Sender) -> str | None:
    """Return the session that a receiver asks for: a name, "" for the next free one, None for none."""
    filters = link.remote_source.filter
    filters.rewind()
    if filters.next() is None:
        return None
    asked = filters.get_object()
    if not isinstance(asked, dict) or SESSION_FILTER not in asked:
        return None
    value = asked[SESSION_FILTER]
    return str(getattr(value, "value", value) or "")
