"""The handler of the loop: connections, their permissions, and the links that wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from proton import Delivery, Endpoint, Event, Link, Message, symbol

from localcloud.servicebus.wire import amqp_codec, shared_access
from localcloud.servicebus.wire.amqp_links import Inlet, Outlet, accept_terms, refuse, top_up, whole_payload
from localcloud.servicebus.wire.amqp_loop import Peer
from localcloud.servicebus.wire.queue_management import Management, ManagementAnswer
from localcloud.servicebus.world.broker import Broker
from localcloud.servicebus.world.broker_values import BrokerError, SessionLock

CBS = "$cbs"
MANAGEMENT = "/$management"
CHECK_SECONDS = 0.05
"""The longest pause while something is to happen at a time, so that a clock may also jump."""


@dataclass
class SessionReceiver:
    """A receiver that has asked for the next free session, until the client gives up (monotonic seconds)."""

    outlet: Outlet
    until: float


@dataclass
class ConnectedClient:
    """What one connection has: rights (paths), and links by the engine's object."""

    rights: set[str] = field(default_factory=set)
    inlets: dict[Link, Inlet] = field(default_factory=dict)
    outlets: dict[Link, Outlet] = field(default_factory=dict)
    waiting: dict[Link, SessionReceiver] = field(default_factory=dict)
    requests: dict[Link, str] = field(default_factory=dict)
    replies: dict[str, Link] = field(default_factory=dict)
    used: dict[Link, float] = field(default_factory=dict)
    """When each inlet was last used (monotonic seconds)."""

    def lock(self, queue: str, session: str) -> SessionLock | None:
        """Return the lock that a receiver of this connection has on a session."""
        locks = (o.lock for o in self.outlets.values() if o.queue == queue and o.lock is not None)
        return next((lock for lock in locks if lock.session == session), None)

    def links(self) -> tuple[Link, ...]:
        """Return every link there is, but for those of replies."""
        return (*self.inlets, *self.outlets, *self.waiting, *self.requests)

    def remove_link(self, link: Link) -> None:
        """Remove a link that the client has closed, and release its session."""
        for links in (self.inlets, self.waiting, self.requests, self.used):
            links.pop(link, None)
        outlet = self.outlets.pop(link, None)
        if outlet is not None:
            outlet.on_closed()


class Namespace:
    """Serves a broker's queues to every client. ``idle_seconds`` is how long a sender may be silent."""

    def __init__(self, broker: Broker, *, key: str, idle_seconds: float, wake: Callable[[], None]) -> None:
        self._broker, self._key, self._idle = broker, key, idle_seconds
        self._clients: dict[Peer, ConnectedClient] = {}
        self._changed = False
        self._wake = wake
        self._unlisten = broker.listen(self._on_change)
        self._handlers: dict[Any, Callable[[ConnectedClient, Event], None]] = {
            Event.CONNECTION_REMOTE_OPEN: self._open_connection,
            Event.CONNECTION_REMOTE_CLOSE: self._close_connection,
            Event.SESSION_REMOTE_OPEN: lambda _, event: event.session.open(),
            Event.SESSION_REMOTE_CLOSE: self._close_session,
            Event.LINK_REMOTE_OPEN: self._open_link,
            Event.LINK_REMOTE_CLOSE: self._close_link,
            Event.LINK_REMOTE_DETACH: self._close_link,
            Event.LINK_FLOW: self._flow,
            Event.DELIVERY: self._delivery,
        }

    def close(self) -> None:
        """Stop listening to the broker."""
        self._unlisten()

    # What the loop calls

    def on_event(self, peer: Peer, event: Event) -> None:
        """Take one event of the engine."""
        handler = self._handlers.get(event.type)
        if handler is not None:
            handler(self._clients.setdefault(peer, ConnectedClient()), event)

    def on_disconnect(self, peer: Peer) -> None:
        """Drop a connection; its sessions stay locked until their locks expire when it was cut off."""
        self._clients.pop(peer, None)

    def on_iteration(self) -> float | None:
        """Serve the waiting links, when a queue has changed or a time has come."""
        due = self._broker.next_time()
        now = self._broker.clock()
        if self._changed or (due is not None and due <= now):
            self._changed = False
            self._serve()
        moments = self._give_up(time.monotonic())
        if self._changed:
            return 0.0
        due = self._broker.next_time()
        if due is not None:
            moments.append(min(CHECK_SECONDS, (due - self._broker.clock()) / timedelta(seconds=1)))
        return max(0.0, min(moments)) if moments else None

    def _on_change(self) -> None:
        self._changed = True
        self._wake()

    def _serve(self) -> None:
        for client in self._clients.values():
            for outlet in client.outlets.values():
                outlet.check_lock()
                outlet.pump()
            for link, waiting in tuple(client.waiting.items()):
                self._try_to_open(client, link, waiting.outlet)

    def _give_up(self, now: float) -> list[float]:
        """End what has waited too long; return the seconds to the next such moments."""
        moments = []
        for client in self._clients.values():
            for link, waiting in tuple(client.waiting.items()):
                if waiting.until <= now:
                    del client.waiting[link]
                    waiting.outlet.refuse("com.microsoft:timeout", "no session became free in time")
                else:
                    moments.append(waiting.until - now)
            for link, last in tuple(client.used.items()):
                if last + self._idle <= now:
                    del client.used[link]
                    text = f"the link was idle for {self._idle} seconds"
                    client.inlets[link].end("amqp:link:detach-forced", text)
                else:
                    moments.append(last + self._idle - now)
        return moments

    # Connections and sessions

    def _open_connection(self, _: ConnectedClient, event: Event) -> None:
        event.connection.container = "roadstead-local-servicebus"
        event.connection.open()

    def _close_connection(self, client: ConnectedClient, event: Event) -> None:
        for link in client.links():
            client.remove_link(link)
        event.connection.close()

    def _close_session(self, client: ConnectedClient, event: Event) -> None:
        for link in client.links():
            if link.session == event.session:
                client.remove_link(link)
        event.session.close()

    # Links

    def _open_link(self, client: ConnectedClient, event: Event) -> None:
        link: Link = event.link
        terminus = link.remote_source if link.is_sender else link.remote_target
        path = shared_access.resource_path(terminus.address or "")
        if path != CBS and not any(shared_access.covers(right, path) for right in client.rights):
            refuse(link, "amqp:unauthorized-access", f"no token for {path} was put on this connection")
            return
        try:
            if path == CBS or path.endswith(MANAGEMENT):
                self._open_request_link(client, link, path)
            elif link.is_sender:
                outlet = Outlet(link, self._broker, path)
                self._try_to_open(client, link, outlet)
            else:
                self._broker.config(path)
                client.inlets[link] = Inlet(link, self._broker, path)
                client.used[link] = time.monotonic()
        except BrokerError as error:
            refuse(link, error.condition, str(error))

    def _open_request_link(self, client: ConnectedClient, link: Link, path: str) -> None:
        if path != CBS:
            self._broker.config(path.removesuffix(MANAGEMENT))
        accept_terms(link)
        link.open()
        if link.is_sender:
            client.replies[path] = link
        else:
            client.requests[link] = path
            top_up(link)

    def _try_to_open(self, client: ConnectedClient, link: Link, outlet: Outlet) -> None:
        try:
            opened = outlet.open()
        except BrokerError as error:
            client.waiting.pop(link, None)
            outlet.refuse(error.condition, str(error))
            return
        if opened:
            client.waiting.pop(link, None)
            client.outlets[link] = outlet
            outlet.pump()
        elif link not in client.waiting:
            client.waiting[link] = SessionReceiver(outlet, time.monotonic() + outlet.patience)

    def _close_link(self, client: ConnectedClient, event: Event) -> None:
        client.remove_link(event.link)
        if not event.link.state & Endpoint.LOCAL_CLOSED:
            event.link.close()

    def _flow(self, client: ConnectedClient, event: Event) -> None:
        outlet = client.outlets.get(event.link)
        if outlet is not None:
            outlet.pump()

    def _delivery(self, client: ConnectedClient, event: Event) -> None:
        delivery: Delivery = event.delivery
        link: Link = event.link
        if link in client.inlets:
            client.used[link] = time.monotonic()
            client.inlets[link].on_delivery(delivery)
        elif link in client.outlets:
            client.outlets[link].on_delivery(delivery)
        elif link in client.requests:
            self._request(client, link, delivery)
        elif delivery.updated:
            delivery.settle()

    # Requests

    def _request(self, client: ConnectedClient, link: Link, delivery: Delivery) -> None:
        payload = whole_payload(delivery)
        if payload is None:
            return
        link.advance()
        top_up(link)
        delivery.update(Delivery.ACCEPTED)
        delivery.settle()
        request = Message()
        request.decode(payload)
        path = client.requests[link]
        fields = amqp_codec.plain(request.properties or {})
        if path == CBS:
            reply = self._put_token(client, str(request.body), audience=str(fields.get("name", "")))
        else:
            queue = path.removesuffix(MANAGEMENT)
            management = Management(self._broker, queue, lambda session: client.lock(queue, session))
            answer = management.answer(str(fields.get("operation", "")), amqp_codec.plain(request.body))
            reply = _reply(answer)
        reply.correlation_id = request.id
        target = client.replies.get(path)
        if target is not None:
            target.send(reply).settle()

    def _put_token(self, client: ConnectedClient, token: str, *, audience: str) -> Message:
        try:
            shared_access.verify(token, audience, key=self._key, now=time.time())
        except shared_access.InvalidToken as error:
            status, text = 401, str(error)
        else:
            client.rights.add(shared_access.resource_path(audience))
            status, text = 202, "Accepted"
        return Message(properties={"status-code": status, "status-description": text})


def _reply(answer: ManagementAnswer) -> Message:
    properties: dict[str, Any] = {"statusCode": answer.status, "statusDescription": answer.text}
    if answer.condition:
        properties["errorCondition"] = symbol(answer.condition)
    return Message(body=answer.body, properties=properties)
