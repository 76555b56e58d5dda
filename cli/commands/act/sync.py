"""``roadstead sync``: has the branch read now, and planned if no webhook announced its head."""

from __future__ import annotations

from cli.options import DEFAULT_TIMEOUT, DEFAULT_URL, KeyFile, Reason, Timeout, Url, connect
from cli.terminal.output import echo


def sync(
    *,
    reason: Reason = "",
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Plan a commit now whose webhook was lost, as the timer does every five minutes, and pull requests."""
    with connect(url, key_file, timeout) as api:
        receipt = api.sync(reason)
    commit = receipt["commit"][:8]
    if receipt["queued"]:
        echo(f"{commit}: will be planned within a minute; see roadstead status")
    else:
        echo(f"{commit}: was planned already, or is being planned")
