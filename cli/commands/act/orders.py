"""Commands that order something for a time, or at once: ``roadstead pause``, ``resume``, ``wake``, ``sleep``,
``postpone``, ``extend``, ``try`` and ``sync``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer
from rich.text import Text

from cli.errors import UsageError
from cli.options import Address, ClusterArgument, NeededReason, Reason, cluster_name, end_time, span
from cli.terminal.output import echo
from cli.text import line
from cli.times import whole
from shared.app.api import schema

Until = Annotated[
    str, typer.Option("--until", metavar="TIME", help="Its end: 2h, or a time such as 2026-01-31T12:00:00Z.")
]


def pause(address: Address, *, reason: NeededReason, until: Until = "") -> None:
    """Stop everything that the app starts by itself: jobs, deletes, rollouts, corrections, pull requests.

    A step that runs ends, and so does an operation that Azure has accepted. Commits are planned, and wait.
    It ends at --until, or with roadstead resume.
    """
    with address.connect() as api:
        receipt = api.act(schema.PauseReceipt, "pause", {"reason": reason, "until": end_time(until)})
    echo(f"paused until {receipt['until'] or 'roadstead resume'}")


def resume(address: Address, *, reason: Reason = "") -> None:
    """End a pause. What waited starts now; a delete that needs an approval still does."""
    with address.connect() as api:
        api.act(schema.PauseReceipt, "resume", {"reason": reason})
    echo("resumed: what waited starts within a minute; see roadstead status")


Sleeper = Annotated[str, typer.Argument(metavar="NAME", help="A cluster whose manifest has spec.sleep.")]
OrderUntil = Annotated[
    str,
    typer.Option(
        "--until",
        metavar="TIME",
        help="Its end: 2h, or a time such as 2026-01-31T12:00:00Z; by default what the schedule does next.",
    ),
]


def _order(kind: str, does: str, text: str, *, ends: bool = True) -> Callable[..., None]:
    """Return a command that orders something of a cluster; ``text`` is its help, ``does`` what it shows.

    ``ends``: without --until, the schedule says when it ends.
    """

    def command(
        address: Address,
        name: Sleeper,
        *,
        reason: NeededReason,
        until: OrderUntil = "",
    ) -> None:
        if not (until or ends):
            raise UsageError("give --until: no schedule ends this")
        with address.connect() as api:
            body = {"until": end_time(until), "reason": reason}
            receipt = api.act(schema.SleepReceipt, f"clusters/{cluster_name(name)}/{kind}", body)
        echo(f"{receipt['cluster']} {does} until {whole(receipt['until'])}")

    command.__doc__ = text
    return command


wake = _order(
    "wake",
    "starts, and is awake",
    "Start a cluster that sleeps. It is awake until --until, or until its schedule stops it next.",
)
sleep = _order(
    "sleep",
    "stops, and sleeps",
    "Stop a cluster that is awake. It sleeps until --until, or until its schedule starts it next.",
)
postpone = _order(
    "postpone",
    "stays awake",
    "Keep a cluster awake until a time, whatever its schedule says.",
    ends=False,
)


def extend(
    address: Address,
    name: ClusterArgument,
    *,
    lasts: Annotated[
        str, typer.Option("--for", metavar="TIME", help="For how long, such as 24h; 7d at most.")
    ] = "24h",
    hold: Annotated[
        bool, typer.Option("--hold", help="Hold the cluster from now on: also no commit deletes it.")
    ] = False,
    reason: NeededReason,
) -> None:
    """Put the end of a cluster off, or hold the cluster.

    An end is put off once for each that git gives the cluster. With --hold nothing removes the cluster for a
    time, also no commit without an approval. A hold can be set again, and replaces the one before. Both need
    a reason.
    """
    body = {"for": span(lasts), "hold": hold, "reason": reason}
    with address.connect() as api:
        receipt = api.act(schema.LifetimeReceipt, f"clusters/{cluster_name(name)}/extend", body)
    until = receipt["heldUntil"]
    what = f"is on hold until {whole(until)}" if until else f"ends {whole(receipt['ends'])}"
    echo(Text(line(f"{receipt['cluster']} {what}")))


def try_pull(
    address: Address,
    pull: Annotated[int, typer.Argument(metavar="PULL", min=1, help="The number of a pull request.")],
    *,
    cluster: Annotated[str, typer.Option("--on", metavar="NAME", help="The cluster.")],
    lasts: Annotated[
        str, typer.Option("--for", metavar="TIME", help="For how long, such as 30m; 24h at most.")
    ] = "4h",
    end: Annotated[bool, typer.Option("--end", help="Go back now.")] = False,
    reason: Reason = "",
) -> None:
    """Try a pull request on a cluster for some hours.

    Flux on it then pulls the newest commit of the pull request. It goes back by itself, also once the pull
    request is merged or closed. The pull request says what became of it.
    """
    name, lasts = cluster_name(cluster), span(lasts)
    with address.connect() as api:
        if end:
            api.act(schema.Receipt, f"clusters/{name}/try/end", {"pull": pull, "reason": reason})
            text = f"{name} goes back from pull request {pull}; roadstead why {name} says how far it is"
        else:
            body = {"pull": pull, "for": lasts, "reason": reason}
            receipt = api.act(schema.TryReceipt, f"clusters/{name}/try", body)
            text = f"{name} tries pull request {pull} at {receipt['commit'][:8]} until {receipt['until']}"
            text = f"{text}; the pull request says what becomes of it"
    echo(Text(line(text)))


def sync(address: Address, *, reason: Reason = "") -> None:
    """Plan a commit now whose webhook was lost, as the timer does every five minutes, and pull requests."""
    with address.connect() as api:
        receipt = api.act(schema.SyncReceipt, "sync", {"reason": reason})
    commit = receipt["commit"][:8]
    if receipt["queued"]:
        echo(f"{commit}: will be planned within a minute; see roadstead status")
    else:
        echo(f"{commit}: was planned already, or is being planned")
