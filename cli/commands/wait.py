"""``roadstead wait``: ends when clusters have reached a state, or when time is up."""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import CommandError, NotFound
from cli.options import DEFAULT_URL, KeyFile, Url, cluster_name, connect, seconds
from shared.pipeline.api import schema

if TYPE_CHECKING:
    from cli.client import Api

EVERY_SECONDS = 2.0
REQUEST = "30s"


class State(StrEnum):
    """What to wait for."""

    READY = "ready"
    DELETED = "deleted"


def wait(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Clusters.")],
    *,
    state: Annotated[State, typer.Option("--for", metavar="STATE", help="ready or deleted.")] = State.READY,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="DURATION", help="When to give up, as 90s, 30m or 2h.")
    ] = "30m",
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
) -> None:
    """Wait until clusters are ready or deleted.

    Ready means that the newest accepted generation was verified. The command fails when the time is up,
    and at once for a cluster whose job has failed or that the newest plan does not create.
    """
    left = {cluster_name(name): "" for name in names}
    until = time.monotonic() + seconds(timeout)
    with connect(url, key_file, REQUEST) as api:
        while True:
            for name in list(left):
                now = _progress(api, name, state)
                if now != left[name]:
                    _report(f"cluster/{name}: {now or state.value}")
                left[name] = now
            left = {name: now for name, now in left.items() if now}
            if not left:
                return
            if time.monotonic() >= until:
                waiting = "; ".join(f"{name}: {now}" for name, now in left.items())
                raise CommandError(f"not {state.value} after {timeout}: {waiting}")
            time.sleep(EVERY_SECONDS)


def _report(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _progress(api: Api, name: str, state: State) -> str:
    """Return what a cluster waits for, "" once it has the state; raise CommandError if it never will."""
    try:
        view = api.cluster(name)
    except NotFound as error:
        return "" if state is State.DELETED else str(error)
    if state is State.DELETED and view["phase"] in (schema.DELETED, schema.NOT_CREATED):
        return ""
    if view["phase"] in ("Failed", schema.NOT_CREATED):
        raise CommandError(f"{name} is {view['phase']}; see roadstead why {name}")
    if "generation" not in view:
        return view["phase"]
    current = view["generation"] == view["observedGeneration"]
    if state is State.READY and view["phase"] == "Ready" and current:
        return ""
    return ": ".join(filter(None, (view["phase"], view["waitingFor"])))
