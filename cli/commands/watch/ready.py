"""``roadstead ready``: whether clusters are ready for an upgrade of Kubernetes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from cli.errors import CommandError, ExitCode, NoAnswer
from cli.fleet_api.polling import polled
from cli.options import Address, OfEnvironment, Reason, WithLabels, cluster_name
from cli.terminal.output import Output, OutputOption, show
from cli.terminal.render_cluster import readiness as rendered
from shared.app.api import schema

if TYPE_CHECKING:
    from cli.fleet_api.client import Api

WAIT_SECONDS = 600.0
"""How long ``--wait`` waits for all readings."""
ASKED_TOGETHER = 100
"""How many clusters one request names."""


def ready(
    address: Address,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Clusters; without them the fleet.")
    ] = None,
    *,
    to: Annotated[
        str, typer.Option("--to", metavar="VERSION", help="Such as 1.38; without it the one in git.")
    ] = "",
    environment: OfEnvironment = "",
    label: WithLabels = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Read the clusters now, and show them once that is done.")
    ] = False,
    reason: Reason = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what blocks an upgrade of Kubernetes, as it was read last; end with 1 unless all are ready.

    Budgets, pods, webhooks and APIs in use are read when somebody asks with --wait, and before a stage with a
    gate for that.
    """
    chosen, filters = (
        [cluster_name(name) for name in names or ()],
        {"environment": environment, "label": label},
    )
    with address.connect() as api:
        view = api.readiness(to, chosen, **filters)
        if wait and view["clusters"]:
            view = _read(api, view, to, reason)

    def table(wide: bool) -> RenderableType:
        return rendered(view, datetime.now(UTC), wide=wide)

    show(view, output, table=table, names=lambda: (f"cluster/{found['name']}" for found in view["clusters"]))
    if any(found["state"] != "ready" for found in view["clusters"]):
        raise typer.Exit(ExitCode.FAILED)


def _read(api: Api, view: schema.ReadinessView, to: str, reason: str) -> schema.ReadinessView:
    """Have the clusters of a view read, and return the view once all were."""
    before = {found["name"]: found["readAt"] for found in view["clusters"]}
    names, behind = [*before], len(before)
    for part in _parts(names):
        api.act(schema.RefreshReceipt, "readiness", {"clusters": part, "reason": reason})
    for answer in polled(lambda: api.readiness(to, names), time.monotonic() + WAIT_SECONDS):
        if isinstance(answer, NoAnswer):
            continue
        behind = sum(found["readAt"] == before[found["name"]] for found in answer["clusters"])
        if not behind:
            return answer
    raise CommandError(f"{behind} of {len(names)} clusters were not read after {WAIT_SECONDS:g} s")


def _parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[first : first + ASKED_TOGETHER] for first in range(0, len(names), ASKED_TOGETHER))
