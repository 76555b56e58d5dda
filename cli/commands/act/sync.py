"""``roadstead sync``: has the branch read now, and planned if no webhook announced its head."""

from __future__ import annotations

from cli.options import Address, Reason
from cli.terminal.output import echo
from shared.app.api import schema


def sync(address: Address, *, reason: Reason = "") -> None:
    """Plan a commit now whose webhook was lost, as the timer does every five minutes, and pull requests."""
    with address.connect() as api:
        receipt = api.act(schema.SyncReceipt, "sync", {"reason": reason})
    commit = receipt["commit"][:8]
    if receipt["queued"]:
        echo(f"{commit}: will be planned within a minute; see roadstead status")
    else:
        echo(f"{commit}: was planned already, or is being planned")
