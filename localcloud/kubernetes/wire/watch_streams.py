"""``watch=true``: the changes of a resource as a stream of JSON lines."""

from __future__ import annotations

import json
import selectors
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from localcloud.kubernetes.world.api_errors import StatusError, bad_request
from localcloud.kubernetes.world.kinds import ResourceKind
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import Object, StoreChange, in_version
from localcloud.kubernetes.world.selectors import Matches, selector

_LONGEST_SECONDS = 600.0
_PAUSE_SECONDS = 0.1
_TOO_LARGE = "Too large resource version"


@dataclass(frozen=True)
class Watch:
    """What is watched, from which version (0: existing objects come first), and in which form."""

    kind: ResourceKind
    namespace: str
    labels: str
    fields: str
    version: int
    seconds: float | None
    shown: Callable[[Object], Mapping[str, Any]]


def version_of(text: str, *, listed: bool = False) -> int:
    """Return the version in a resourceVersion, 0 for none; raise ApiError (of a list 400, otherwise 500)."""
    if not text:
        return 0
    if not text.isdigit():
        problem = f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        if listed:
            raise bad_request(f"invalid resource version: resourceVersion: {problem}")
        raise StatusError(500, "", f"resourceVersion: {problem}")
    return int(text)


def too_new(wanted: int, version: int) -> StatusError:
    """A read at a version that does not exist yet; the real API waits three seconds for it first."""
    details = {
        "retryAfterSeconds": 1,
        "causes": [{"reason": "ResourceVersionTooLarge", "message": _TOO_LARGE}],
    }
    return StatusError(504, "Timeout", f"{_TOO_LARGE}: {wanted}, current: {version}", details=details)


def stream(world: KubernetesWorld, watch: Watch, ended: Callable[[], bool]) -> Iterator[bytes]:
    """Return events until the timeout, or until ``ended`` reports that the client has disconnected.

    Raise ApiError (400) for a malformed selector. A version that is too old is an ERROR event (410).
    """
    matches = selector(watch.kind, watch.labels, watch.fields)
    return _events(world, watch, matches, ended)


def _events(
    world: KubernetesWorld, watch: Watch, matches: Matches, ended: Callable[[], bool]
) -> Iterator[bytes]:
    last = time.monotonic() + min(watch.seconds or _LONGEST_SECONDS, _LONGEST_SECONDS)
    yield b" "  # sends the headers, for which clients wait first; before a JSON line it means nothing
    version = watch.version
    if not version:
        objects, version = world.list(watch.kind, watch.namespace, labels=watch.labels, fields=watch.fields)
        for value in objects:
            yield _event("ADDED", watch.shown(value))
    first = True
    while not ended() and time.monotonic() < last:
        world.tick()
        if world.version == version and not first:
            time.sleep(_PAUSE_SECONDS)
            continue
        first = False
        try:
            changes = world.changes(version)
        except StatusError as error:
            yield _event("ERROR", error.status())
            return
        for change in changes:
            version = change.version
            if change.storage != watch.kind.storage:
                continue
            value = in_version(watch.kind, change.value)
            inside = not watch.namespace or value["metadata"].get("namespace") == watch.namespace
            if inside:
                yield from _seen(change, value, matches, watch)


def _seen(change: StoreChange, value: Object, matches: Matches, watch: Watch) -> Iterator[bytes]:
    """Yield the event of a change: an object that begins or ceases to match is added or deleted."""
    now = change.type != "DELETED" and matches(value)
    before = change.before is not None and matches(in_version(watch.kind, change.before))
    if now:
        yield _event("MODIFIED" if before else "ADDED", watch.shown(value))
    elif before:
        yield _event("DELETED", watch.shown(value))


def hung_up(environ: Mapping[str, Any]) -> bool:
    """Return whether the client closed its side of the connection."""
    connection = environ.get("roadstead.socket")
    if connection is None or connection.fileno() < 0:
        return connection is not None
    with selectors.DefaultSelector() as readable:
        readable.register(connection, selectors.EVENT_READ)
        return bool(readable.select(0))


def _event(sort: str, value: Mapping[str, Any]) -> bytes:
    return json.dumps({"type": sort, "object": value}, separators=(",", ":")).encode() + b"\n"
