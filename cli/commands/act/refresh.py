"""``roadstead refresh``: has clusters compared with Azure now."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.errors import UsageError
from cli.options import DEFAULT_TIMEOUT, DEFAULT_URL, KeyFile, Reason, Timeout, Url, cluster_name, connect
from cli.terminal.output import echo


def refresh(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A cluster that no job works on.")] = "",
    *,
    everything: Annotated[bool, typer.Option("--all", help="The whole fleet: a sweep.")] = False,
    reason: Reason = "",
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Compare clusters with Azure now, as the timer of sweeps does every four hours."""
    if bool(name) == everything:
        raise UsageError("give a cluster, or --all")
    with connect(url, key_file, timeout) as api:
        api.refresh([cluster_name(name)] if name else [], reason)
    echo(f"{name or 'The fleet'}: will be compared with Azure within a minute; see roadstead status")
