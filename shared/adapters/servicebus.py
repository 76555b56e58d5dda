"""Azure Service Bus behind the ``Queue`` port.

One sender link per queue stays open, and one thread at a time uses it. The service closes a link after ten
idle minutes, and a token expires after an hour: when a send fails on a link that worked before, the adapter
retries once on a new link. Sending twice is harmless: every message has an id, and the queue drops
duplicates.

Several messages are sent as batches, each of which the service takes as a whole or not at all (a maintainer's
answer in Azure/azure-sdk-for-net, issue 40409). The messages of a batch may have different sessions, because
the queues are not partitioned: a partitioned queue with duplicate detection takes no such batch
(Azure/azure-sdk-for-python, issue 21955). The client library knows how large a batch may be: 256 KiB in the
Standard tier.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from azure.core.credentials import TokenCredential
from azure.core.exceptions import ClientAuthenticationError
from azure.servicebus import (
    ServiceBusClient,
    ServiceBusMessage,
    ServiceBusMessageBatch,
    ServiceBusSender,
)
from azure.servicebus.exceptions import (
    MessageSizeExceededError,
    MessagingEntityNotFoundError,
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
    ServiceBusError,
    ServiceBusQuotaExceededError,
    ServiceBusServerBusyError,
)
from requests.utils import DEFAULT_CA_BUNDLE_PATH

from shared.cluster.failures.errors import (
    Dependency,
    InvalidManifest,
    ReconcileError,
    Throttled,
    TooLarge,
    Unauthenticated,
    Unauthorized,
    Unavailable,
)
from shared.ports import Message
from shared.ports.tally import SENT

SEND_SECONDS = 20
"""Time limit of a send, the opening of the link included; for several messages, of each of both.

So long a send also waits for those of other threads.
"""
OPENING_SECONDS = 5
"""Time limit on each wait for the service while a connection is opened: for TLS, for a frame of SASL."""

_CLASSES: Mapping[type[ServiceBusError], type[ReconcileError]] = {
    ServiceBusServerBusyError: Throttled,
    ServiceBusQuotaExceededError: Throttled,
    ServiceBusAuthenticationError: Unauthenticated,
    ServiceBusAuthorizationError: Unauthorized,
    MessagingEntityNotFoundError: Dependency,
    MessageSizeExceededError: TooLarge,
}
_ABOUT_THE_LINK = (Unavailable, Unauthenticated, Unauthorized)


def service_bus_client(
    *,
    connection_string: str | None = None,
    namespace: str | None = None,
    credential: TokenCredential | None = None,
) -> ServiceBusClient:
    """Return a client without retries: by connection string if there is one, otherwise by identity."""
    options = client_options()
    if connection_string:
        return ServiceBusClient.from_connection_string(connection_string, **options)
    if not namespace or credential is None:
        raise ValueError("Service Bus needs a connection string, or a namespace and a credential")
    return ServiceBusClient(namespace, credential, **options)


def client_options() -> dict[str, Any]:
    """Return how every client behaves: no retries, and no wait without a limit."""
    # It trusts the same authorities as the library's own, which it replaces.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(DEFAULT_CA_BUNDLE_PATH)
    context.sslsocket_class = _BoundedSocket
    return {"retry_total": 0, "try_timeout": SEND_SECONDS, "ssl_context": context}


class _BoundedSocket(ssl.SSLSocket):
    """A TLS socket on which nobody waits without end.

    The library opens a connection on a blocking socket, and no limit of its own ends that: a service that
    takes a connection and never answers, as in a restart, would hold a send, and all that wait for the link.
    Its origin was mended so (celery/py-amqp, pull request 398).
    """

    def settimeout(self, value: float | None) -> None:
        """Set the limit on a wait; None, which means none, is that of opening a connection."""
        super().settimeout(OPENING_SECONDS if value is None else value)


class ServiceBusQueue:
    """The ``Queue`` port on one queue of a namespace; safe to share between threads.

    It counts the messages that the service has taken.
    """

    def __init__(
        self, client: ServiceBusClient, queue_name: str, count: Callable[[str, int], None] = lambda *_: None
    ) -> None:
        self._client, self._name, self._count = client, queue_name, count
        self._lock = threading.Lock()
        self._sender: ServiceBusSender | None = None

    def send(self, *messages: Message) -> None:
        """Send in this order, or schedule; raise Throttled, Unavailable or a Terminal error."""
        outgoing = [_outgoing(message) for message in messages]
        with self._turn():
            try:
                self._send_or_reopen(outgoing)
            except ServiceBusError as error:
                raise _translated(error, self._name) from error
        self._count(f"{SENT} {self._name}", len(outgoing))

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Have the link for oneself; raise Unavailable when others have it for too long."""
        if not self._lock.acquire(timeout=SEND_SECONDS):
            raise Unavailable(f"Service Bus queue {self._name}: earlier messages are not sent yet")
        try:
            yield
        finally:
            self._lock.release()

    def probe(self) -> None:
        """Open a link of its own, which needs the right to send, and send nothing; raise as ``send``."""
        try:
            with self._client.get_queue_sender(self._name) as sender:
                sender.create_message_batch()
        except ServiceBusError as error:
            raise _translated(error, self._name) from error

    def close(self) -> None:
        """Close the link; a later send opens a new one."""
        with self._lock:
            self._drop_link()

    def _send_or_reopen(self, outgoing: Sequence[ServiceBusMessage]) -> None:
        link_worked = self._sender is not None
        try:
            self._send(outgoing)
        except ServiceBusError as error:
            self._drop_link()
            if not link_worked or not isinstance(_translated(error, self._name), _ABOUT_THE_LINK):
                raise
            self._send(outgoing)

    def _send(self, outgoing: Sequence[ServiceBusMessage]) -> None:
        sender = self._sender or self._client.get_queue_sender(self._name)
        try:
            for part in _in_batches(outgoing, sender):
                sender.send_messages(part, timeout=SEND_SECONDS)
        except ServiceBusError:
            sender.close()
            raise
        self._sender = sender

    def _drop_link(self) -> None:
        if self._sender is not None:
            self._sender.close()
            self._sender = None


def _outgoing(message: Message) -> ServiceBusMessage:
    try:
        return ServiceBusMessage(
            message.body,
            session_id=message.session,
            message_id=message.id,
            content_type="application/json",
            scheduled_enqueue_time_utc=message.at,
        )
    except ValueError as error:
        raise InvalidManifest(f"not a message for Service Bus: {error}") from error


def _in_batches(
    messages: Sequence[ServiceBusMessage], sender: ServiceBusSender
) -> Iterator[ServiceBusMessage | ServiceBusMessageBatch]:
    """Yield the messages in as few parts as the service takes; raise MessageSizeExceededError."""
    if len(messages) == 1:
        yield messages[0]
        return
    batch = sender.create_message_batch()
    for message in messages:
        try:
            batch.add_message(message)
        except MessageSizeExceededError:
            if not len(batch):
                raise
            yield batch
            batch = sender.create_message_batch()
            batch.add_message(message)
    yield batch


def _translated(error: ServiceBusError, queue: str) -> ReconcileError:
    """Return the error for the engine; an error without a class of its own means Unavailable."""
    kind = next((ours for theirs, ours in _CLASSES.items() if isinstance(error, theirs)), Unavailable)
    if isinstance(error.inner_exception, ClientAuthenticationError):
        kind = Unauthenticated
    return kind(f"Service Bus queue {queue}: {error.message}", code=type(error).__name__)
