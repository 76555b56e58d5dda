"""``roadstead takeover``: this app manages a cluster from now on that another one manages, or may manage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from cli.errors import CommandError, NotFound, RequestRefused, UsageError
from cli.options import Address, Reason, Yes, cluster_name
from cli.terminal.cluster_table import indented
from cli.terminal.output import confirm, echo
from cli.text import line
from shared.app.api import schema

if TYPE_CHECKING:
    from cli.fleet_api.client import Api


def takeover(
    address: Address,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A cluster that waits for a takeover.")] = "",
    *,
    everything: Annotated[bool, typer.Option("--all", help="Every cluster that waits for one.")] = False,
    repository: Annotated[
        bool, typer.Option("--repository", help="The repository or branch that the planner refuses.")
    ] = False,
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """Take over clusters that another app manages, or whose records were lost or are too old.

    Stop the other app first: while both run, neither writes to a cluster for long.
    """
    if sum(map(bool, (name, everything, repository))) != 1:
        raise UsageError("give a cluster, or --all, or --repository")
    with address.connect() as api:
        if repository:
            _accept_repository(api, reason, yes=yes)
            return
        name = cluster_name(name) if name else ""
        fleet = api.fleet()["clusters"]
        waiting = [
            summary
            for summary in fleet
            if summary["awaitsTakeover"] and (everything or summary["name"] == name)
        ]
        if not waiting:
            raise CommandError(f"{name or 'no cluster'} waits for {'no' if name else 'a'} takeover")
        echo(_described(waiting))
        confirm("Take them over?", "nothing was taken over", yes=yes)
        if not sum([_take_over(api, cluster["name"], reason) for cluster in waiting]):
            raise CommandError(f"took over none of {len(waiting)}")


def _accept_repository(api: Api, reason: str, *, yes: bool) -> None:
    fleet = api.planned()
    echo(Text(line(fleet["problem"] or "The planner refuses no repository.")))
    confirm("Plan the fleet from it?", "nothing was accepted", yes=yes)
    accepted = api.act(schema.SourceReceipt, "takeover", {"reason": reason})
    echo(f"Accepted the repository {accepted['repositoryId']}, branch {accepted['branch']}.")


def _take_over(api: Api, name: str, reason: str) -> bool:
    """Take a cluster over, or say why not; return whether that was done."""
    try:
        api.act(schema.Receipt, f"clusters/{name}/takeover", {"reason": reason})
    except (
        NotFound,
        RequestRefused,
    ) as error:  # since then the other installation has left, or there is no record
        echo(Text(line(str(error)), style="dim"))
        return False
    echo(f"{name}: taken over")
    return True


def _described(clusters: Sequence[schema.ClusterSummaryView]) -> RenderableType:
    """Return the clusters, and why each waits."""
    parts: list[RenderableType] = []
    for cluster in clusters:
        parts += [Text(cluster["name"], style="bold"), indented(Text(line(cluster["reason"])), 2)]
    return Group(*parts)
