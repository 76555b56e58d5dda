"""``watch=true``: the changes of a resource as a stream of JSON lines."""

from __future__ import annotations

import json
import selectors
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from localcloud.kubernetes.world.api_errors import ApiError
from localcloud.kubernetes.world.kinds import Kind
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import Object, in_version
from localcloud.kubernetes.world.selectors import selector

_LONGEST_SECONDS = 600.0
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class Watch:
    """What is watched, from which version ("" or "0": what is there comes first), and how it is shown."""

    kind: Kind
    namespace: str
    labels: str
    fields: str
    version: str
    seconds: float | None
    shown: Callable[[Object], Mapping[str, Any]]


def stream(world: KubernetesWorld, watch: Watch, ended: Callable[[], bool]) -> Iterator[bytes]:
    """Yield events until the time is up, or ``ended`` says that nobody listens."""
    matches = selector(watch.labels, watch.fields)
    last = time.monotonic() + min(watch.seconds or _LONGEST_SECONDS, _LONGEST_SECONDS)
    yield b" "  # sends the headers, for which clients wait first; before a JSON line it means nothing
    if watch.version in ("", "0"):
        objects, version = world.list(watch.kind, watch.namespace, labels=watch.labels, fields=watch.fields)
        for value in objects:
            yield _event("ADDED", watch.shown(value))
    else:
        version = int(watch.version)
    while not ended() and time.monotonic() < last:
        world.tick()
        if world.version == version:
            time.sleep(_PAUSE_SECONDS)
            continue
        try:
            changes = world.changes(version)
        except ApiError as error:
            yield _event("ERROR", error.status())
            return
        for change in changes:
            version = change.version
            if change.storage != watch.kind.storage:
                continue
            value = in_version(watch.kind, change.value)
            inside = not watch.namespace or value["metadata"].get("namespace") == watch.namespace
            if inside and matches(value):
                yield _event(change.type, watch.shown(value))


def hung_up(environ: Mapping[str, Any]) -> bool:
    """Tell whether a client that has nothing more to say closed its side of the connection."""
    connection = environ.get("roadstead.socket")
    if connection is None or connection.fileno() < 0:
        return connection is not None
    with selectors.DefaultSelector() as readable:
        readable.register(connection, selectors.EVENT_READ)
        return bool(readable.select(0))


def _event(sort: str, value: Mapping[str, Any]) -> bytes:
    return json.dumps({"type": sort, "object": value}, separators=(",", ":")).encode() + b"\n"
