"""The rights that ``infra/`` gives the identity of each app, and a cloud whose functions have only those."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar
from urllib.parse import urlsplit

from azure.core.pipeline.transport import HttpTransport
from azure.mgmt.containerservice import ContainerServiceClient
from azure.mgmt.kubernetesconfiguration.extensions import KubernetesConfigurationExtensionsMgmtClient
from azure.mgmt.kubernetesconfiguration.fluxconfigurations import (
    KubernetesConfigurationFluxConfigurationsMgmtClient,
)
from azure.mgmt.resource.resources import ResourceManagementClient

from localcloud.azure.wire.authorization import action_of, allows
from localcloud.memory.memory_cloud import EVENTS, QUEUES, MemoryCloud
from localcloud.servicebus.world.broker_values import SessionLock
from shared.adapters.arm import ArmRequests
from shared.cluster.failures.errors import Unauthorized
from shared.configuration.settings import App
from shared.ports import Azure, Message, Ports, Queue
from shared.ports.azure import AzureCall
from shared.ports.process import Comparisons
from shared.ports.pull_requests import Proposing
from tests.support.azure_operations import example
from tests.support.azure_ports import SUBSCRIPTION, StaticCredential
from tests.support.lost_tables import CONFIG
from tests.support.replaced_ports import Noted
from tests.support.templates import assignments, role_definitions

T = TypeVar("T")
WORKER = "00000000-0000-0000-0000-00000000000e"
"""The object id of the identity of the worker."""
CLIENTS: dict[str, Any] = {
    **{"containerservice": ContainerServiceClient, "resource": ResourceManagementClient},
    "extensions": KubernetesConfigurationExtensionsMgmtClient,
    "fluxconfigurations": KubernetesConfigurationFluxConfigurationsMgmtClient,
}


@cache
def actions(app: App) -> frozenset[str]:
    """Return the actions of the roles of an app, with those that are options, in a target subscription."""
    definitions = role_definitions()
    roles = {found.role for found in assignments() if found.app == app} & set(definitions)
    allowed: set[str] = set()
    for role in roles:
        (permissions,) = definitions[role].properties["permissions"]
        if set(permissions) == {"dataActions"}:
            continue  # such as writing a secret: no action of Resource Manager
        assert set(permissions) == {"actions"}
        allowed |= set(permissions["actions"])
    return frozenset(allowed)


@cache
def receiver(queue: str) -> App:
    """Return the app whose identity receives from a queue: Azure Service Bus Data Owner."""
    (app,) = _apps(queue, "090c5cfd-751d-490a-894a-3ce6f1109419")
    return app


@cache
def senders(queue: str) -> frozenset[App]:
    """Return the apps whose identities may send to a queue: Azure Service Bus Data Sender, and its owner."""
    return _apps(queue, "69a216fc-b8fb-44d8-bc22-1f3c2cd27a39") | {receiver(queue)}


def _apps(queue: str, role: str) -> frozenset[App]:
    return frozenset(
        found.app
        for found in assignments()
        if found.role == role and found.scope.endswith(f"/queues/{queue}")
    )


def permission_of(kind: type[AzureCall[Any]]) -> str:
    """Return the permission for an operation."""
    return action_of(*request_of(kind))


def request_of(kind: type[AzureCall[Any]]) -> tuple[str, str]:
    """Return the method and the path of the request that the client library makes of an operation."""
    operation, recorder = example(kind), _Recorder()
    with suppress(_Sent):
        if kind.request is not None:
            ArmRequests(None, SUBSCRIPTION, transport=recorder, policies=[]).send(operation)
        client: Any = CLIENTS[kind.service](StaticCredential(), SUBSCRIPTION, transport=recorder)
        answer = attrgetter(kind.sdk)(client)(*operation.place, *operation.arguments)
        list(answer)  # a list sends its request when it is read
    return recorder.request


class _Sent(Exception):
    """The request was recorded, and goes no further."""


class _Recorder(HttpTransport[Any, Any]):
    """The transport of a client library that records the one request."""

    def __init__(self) -> None:
        self.request = ("", "")

    def send(self, request: Any, **_: Any) -> Any:
        self.request = (request.method, urlsplit(request.url).path)
        raise _Sent

    def open(self) -> None:
        """Nothing to open."""

    def close(self) -> None:
        """Nothing to close."""

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""


class CloudWithRights(MemoryCloud):
    """A cloud in which every function acts as the identity of its app; ``calls`` are its calls to Azure."""

    def __init__(self) -> None:
        super().__init__(
            throttle=False, config=replace(CONFIG, installation="", identities={"worker": WORKER})
        )
        self.calls: defaultdict[App, set[type[AzureCall[Any]]]] = defaultdict(set)
        self.compared: defaultdict[App, Comparisons] = defaultdict(Comparisons)
        self.sent: defaultdict[App, set[str]] = defaultdict(set)
        self.written: defaultdict[str, set[App]] = defaultdict(set)
        """The apps that call each method which writes to the fleet repository."""
        self.refused: list[str] = []
        self.received: set[str] = set()
        """The queues from which a function has received a message."""

    def deliver(self, queue: str, lock: SessionLock, ports: Ports) -> None:
        """Deliver a message to the function that receives from the queue."""
        self.received.add(queue)
        super().deliver(queue, lock, self.acting_as(receiver(queue), ports))

    def deliver_event(self, queue: str, ports: Ports) -> bool:
        """Deliver an event of Azure to the function of the control app."""
        delivered = super().deliver_event(queue, self.acting_as(receiver(EVENTS), ports))
        self.received |= {queue.lower()} if delivered else set()
        return delivered

    def deliver_dead_letter(self, queue: str, ports: Ports) -> bool:
        """Deliver a dead letter to the function that receives from the queue."""
        return super().deliver_dead_letter(queue, self.acting_as(receiver(queue), ports))

    def run_timers(self, ports: Ports) -> None:
        """Run the timers, which are functions of the control app."""
        super().run_timers(self.acting_as(App.CONTROL, ports))

    def acting_as(self, app: App, ports: Ports) -> Ports:
        """Return the ports with the rights of an app."""
        queues: dict[str, Any] = {name: _QueueAs(app, name, getattr(ports, name), self) for name in QUEUES}

        def note(name: str) -> None:
            if name in vars(Proposing):
                self.written[name].add(app)

        host, azure = Noted(ports.git_host, note), _AzureAs(app, ports.azure, self)
        process = replace(ports.process, compared=self.compared[app])
        return replace(ports, azure=azure, git_host=host, process=process, **queues)


class _AzureAs:
    """Azure, which refuses what the role of an app does not allow."""

    def __init__(self, app: App, inner: Azure, cloud: CloudWithRights) -> None:
        self._app, self._inner, self._cloud = app, inner, cloud

    def call(self, operation: AzureCall[T]) -> T:
        kind = type(operation)
        if not allows(actions(self._app), permission_of(kind)):
            self._cloud.refused.append(f"{self._app}: {operation}")
            raise Unauthorized(f"the identity of {self._app} may not {permission_of(kind)}")
        self._cloud.calls[self._app].add(kind)
        return self._inner.call(operation)


class _QueueAs:
    """A queue, which refuses the messages of an app that may not send to it."""

    def __init__(self, app: App, name: str, inner: Queue, cloud: CloudWithRights) -> None:
        self._app, self._name, self._inner, self._cloud = app, name, inner, cloud

    def send(self, *messages: Message) -> None:
        self.probe()
        self._cloud.sent[self._app].add(self._name)
        self._inner.send(*messages)

    def probe(self) -> None:
        if self._app not in senders(self._name):
            self._cloud.refused.append(f"{self._app}: send to {self._name}")
            raise Unauthorized(f"the identity of {self._app} may not send to {self._name}")
