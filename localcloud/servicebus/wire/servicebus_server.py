"""The local Service Bus on the wire: AMQP 1.0 for the real azure-servicebus client.

Plain TCP at 127.0.0.1, as the client wants it with ``UseDevelopmentEmulator=true``. Nothing is kept here
but connections: the messages, sessions and locks are the Broker's.
"""

from __future__ import annotations

import base64
import secrets

from localcloud.servicebus.wire.amqp_loop import Loop
from localcloud.servicebus.wire.namespace import Namespace
from localcloud.servicebus.world.broker import Broker

POLICY = "RootManageSharedAccessKey"


class ServiceBusServer:
    """Serves a Broker's queues on a thread of its own until closed. A context manager.

    ``key`` is the shared access key (None: a new random one). A sender that is silent for
    ``idle_seconds`` is detached, as the service does after ten minutes.
    """

    def __init__(
        self, broker: Broker, *, port: int = 0, key: str | None = None, idle_seconds: float = 600
    ) -> None:
        key = key or base64.b64encode(secrets.token_bytes(32)).decode()
        self._loop = Loop(port=port)
        self.port: int = self._loop.port
        self.connection_string = (
            f"Endpoint=sb://127.0.0.1:{self.port};SharedAccessKeyName={POLICY};"
            f"SharedAccessKey={key};UseDevelopmentEmulator=true"
        )
        self._namespace = Namespace(broker, key=key, idle_seconds=idle_seconds, wake=self._loop.wake)
        self._loop.start(self._namespace)

    def close(self) -> None:
        """Drop every connection and stop listening; session locks stay until they end."""
        self._namespace.close()
        self._loop.close()

    def __enter__(self) -> ServiceBusServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
