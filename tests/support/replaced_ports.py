"""Ports with some methods replaced, for what may go wrong around the pipeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.planner import planner
from shared.cluster.failures.errors import Unavailable
from shared.cluster.queues.messages import PlanRequest
from shared.ports import Azure, BranchHead, Message, Ports
from shared.ports.azure import AzureCall

T = TypeVar("T")
Operation = TypeVar("Operation", bound=AzureCall[Any])


class Dies(BaseException):
    """The instance dies."""


class Around:
    """A port with some methods replaced."""

    def __init__(self, inner: Any, **methods: Callable[..., Any]) -> None:
        self._inner, self._methods = inner, methods

    def __getattr__(self, name: str) -> Any:
        return self._methods.get(name) or getattr(self._inner, name)


class Noted:
    """A port whose calls are noted."""

    def __init__(self, inner: Any, note: Callable[[str], None]) -> None:
        self._inner, self._note = inner, note

    def __getattr__(self, name: str) -> Any:
        self._note(name)
        return getattr(self._inner, name)


def around(cloud: MemoryCloud, port: str, **methods: Callable[..., Any]) -> None:
    """Replace methods of a port, from now on."""

    def change(ports: Ports) -> Ports:
        changed: dict[str, Any] = {port: Around(_port(ports, port), **methods)}
        if hasattr(ports, port):
            return replace(ports, **changed)
        return replace(ports, services=replace(ports.services, **changed))

    cloud.with_ports(change)


def _port(ports: Ports, name: str) -> Any:
    return getattr(ports if hasattr(ports, name) else ports.services, name)


def loses_a_message(cloud: MemoryCloud, *queues: str) -> list[bool]:
    """Let the next sending to one of some queues fail, and nothing else; return what is added to then."""
    died, ports = list[bool](), cloud.ports

    def dies(send: Callable[..., None], *messages: Message) -> None:
        if not died:
            died.append(True)
            raise Unavailable("died")
        send(*messages)

    for queue in queues:
        around(cloud, queue, send=partial(dies, getattr(ports, queue).send))
    return died


def calls_of(cloud: MemoryCloud, port: str, method: str) -> list[Any]:
    """Return the list to which the argument of every call of a method of a port is added from now on."""
    given, call = list[Any](), getattr(_port(cloud.ports, port), method)

    def noted(argument: Any) -> Any:
        given.append(argument)
        return call(argument)

    around(cloud, port, **{method: noted})
    return given


def fails_once(cloud: MemoryCloud, port: str, method: str, *, after: bool = False) -> None:
    """Let the next call of a method of a port fail, without an effect, or ``after`` it had its effect."""
    call: Callable[..., Any] = getattr(_port(cloud.ports, port), method)

    def away(*given: Any, **named: Any) -> Any:
        around(cloud, port, **{method: call})
        if after:
            call(*given, **named)
        raise Unavailable("no answer")

    around(cloud, port, **{method: away})


def frozen(cloud: MemoryCloud, port: str, method: str, meanwhile: Callable[[], None]) -> None:
    """Let whoever next calls a method of a port stand still before it does, while something happens."""
    call: Callable[..., Any] = getattr(_port(cloud.ports, port), method)

    def late(*given: Any, **named: Any) -> Any:
        around(cloud, port, **{method: call})
        meanwhile()
        return call(*given, **named)

    around(cloud, port, **{method: late})


class _Answered:
    """Azure, with one operation answered by a test."""

    def __init__(self, inner: Azure, kind: type[AzureCall[Any]], answer: Callable[[Any], Any]) -> None:
        self._inner, self._kind, self._answer = inner, kind, answer

    def call(self, operation: AzureCall[T]) -> T:
        if isinstance(operation, self._kind):
            answer: T = self._answer(operation)
            return answer
        return self._inner.call(operation)


def on_azure(cloud: MemoryCloud, kind: type[Operation], answer: Callable[[Operation], object]) -> None:
    """Let a function answer an operation of Azure, from now on."""
    cloud.with_ports(lambda ports: replace(ports, azure=_Answered(ports.azure, kind, answer)))


def falls_silent(cloud: MemoryCloud, kind: type[AzureCall[Any]], error: Exception | None = None) -> None:
    """Let Azure give no answer to an operation, or an error, from now on."""

    def silent(_: AzureCall[Any]) -> object:
        raise error or Unavailable("nobody answers")

    on_azure(cloud, kind, silent)


def frozen_before(cloud: MemoryCloud, kind: type[AzureCall[Any]], meanwhile: Callable[[], None]) -> None:
    """Let whoever next calls an operation of Azure stand still before it does, while something happens."""
    azure = cloud.ports.azure

    def late(operation: AzureCall[Any]) -> Any:
        on_azure(cloud, kind, azure.call)
        meanwhile()
        return azure.call(operation)

    on_azure(cloud, kind, late)


def shows_first(cloud: MemoryCloud, *commits: str) -> None:
    """Let GitHub show these commits as the head in its next answers, as it may after a push."""
    old, read_head = iter(commits), cloud.repository.read_head

    def late(branch: str) -> BranchHead:
        seen = read_head(branch)
        return replace(seen, commit=next(old, seen.commit))

    around(cloud, "git_host", read_head=late)


def overtake(cloud: MemoryCloud, files: dict[str, bytes]) -> None:
    """Push, and plan at once, as a second planner does."""
    plan_at_once(cloud, cloud.repository.push(files))


def plan_at_once(cloud: MemoryCloud, commit: str) -> None:
    """Plan a push that is surely newer than the last plan."""
    planner.handle(PlanRequest(commit=commit, at=cloud.clock() + timedelta(minutes=1)), cloud.ports)
