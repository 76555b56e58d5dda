"""``roadstead refresh``: has clusters compared with Azure now."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import CommandError, NoAnswer, UsageError
from cli.fleet_api.polling import polled
from cli.options import Address, Reason, cluster_name
from cli.terminal.output import echo
from shared.sentences import many

if TYPE_CHECKING:
    from cli.fleet_api.client import Api

WAIT_SECONDS = 300.0
"""How long ``--wait`` waits: Azure may be changing the cluster, or the list of a subscription may fail."""


def refresh(
    address: Address,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A cluster that no job works on.")] = "",
    *,
    everything: Annotated[bool, typer.Option("--all", help="The whole fleet: a sweep.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="End once that is done, and say what differs.")
    ] = False,
    reason: Reason = "",
) -> None:
    """Compare clusters with Azure now, as the timer of sweeps does every four hours."""
    if bool(name) == everything:
        raise UsageError("give a cluster, or --all")
    name, what = cluster_name(name) if name else "", name or "The fleet"
    with address.connect() as api:
        asked = api.refresh([name] if name else [], reason)
        if not wait:
            echo(f"{what}: will be compared with Azure within a minute; see roadstead status")
            return
        differ = _compared(api, name, datetime.fromisoformat(asked["at"]))
    found = f"{many(differ, 'cluster')} with drift" if differ else "no drift"
    echo(f"{what}: compared with Azure: {found}{f'; see roadstead drift {name}'.rstrip() if differ else ''}")


def _compared(api: Api, name: str, asked: datetime) -> int:
    """Wait until a cluster, or each subscription of the fleet, was compared; return how many differ."""
    at = ""
    for view in polled(lambda: api.drift(name), time.monotonic() + WAIT_SECONDS):
        if isinstance(view, NoAnswer):
            continue
        at = view["comparedAt"] or ""
        if at and datetime.fromisoformat(at) >= asked:
            return view["count"]
    last = f"the last comparison was at {at}" if at else "it was never compared"
    raise CommandError(f"not compared after {WAIT_SECONDS:g} s: {last}; `roadstead status` says more")
