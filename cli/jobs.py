"""``roadstead why``, ``events`` and ``replay``: what a cluster's job does, did, and beginning it anew."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.text import Text

from cli import render
from cli.actor import actor
from cli.client import Api, ApiError, NotFound, Refused
from cli.errors import CommandFailed, UsageError
from cli.options import DEFAULT_URL, Key, Output, OutputOption, Url, cluster_at
from cli.output import console, line, print_json
from shared.jobs.remedies import classes

Name = Annotated[str, typer.Argument(help="A cluster.")]
MOST = 1000


def why(name: Name, *, output: OutputOption = Output.TABLE, url: Url = DEFAULT_URL, key: Key = "") -> None:
    """Say what a cluster does or waits for, what was tried, what happens next, and what you can do."""
    with Api(url, key) as api:
        view = api.get(f"{cluster_at(name)}/why")
    if output is Output.JSON:
        print_json(view)
        return
    console().print(render.why(view, datetime.now(UTC)))


def events(
    name: Name,
    *,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="How many, the newest first.")] = 50,
    before: Annotated[str, typer.Option(metavar="TIME", help="Only older ones.")] = "",
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    key: Key = "",
) -> None:
    """List what happened to a cluster, newest first; also after it is gone."""
    with Api(url, key) as api:
        older = f"&before={quote(_moment(before), safe='')}" if before else ""
        view = api.get(f"{cluster_at(name)}/events?limit={limit}{older}")
    if output is Output.JSON:
        print_json(view)
        return
    console().print(render.events(view["events"], datetime.now(UTC)))
    if view["next"]:
        console().print(Text(f"older ones: --before {view['next']}", style="dim"))


def _moment(given: str) -> str:
    """Return a time that was typed as the API takes it, UTC if it has no zone; raise UsageError for none."""
    try:
        moment = datetime.fromisoformat(given)
    except ValueError as error:
        raise UsageError(f"--before {given[:40]!r} must be a time as 2026-01-31T12:00:00Z") from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def dead_letters(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Only these.")] = None,
    *,
    dismiss: Annotated[bool, typer.Option("--put-away", help="Remove those that are shown.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    key: Key = "",
) -> None:
    """List the messages that the queues gave up and that nobody understood, newest first."""
    with Api(url, key) as api:
        view = api.get("dead-letters")
        found = [letter for letter in view["deadLetters"] if not ids or letter["id"] in ids]
        unknown = set(ids or ()) - {letter["id"] for letter in found}
        if unknown:
            raise UsageError(f"no dead letter that is shown has the id {', '.join(sorted(unknown))}")
        if output is Output.JSON:
            print_json({"deadLetters": found})
        else:
            console().print(render.dead_letters(found, datetime.now(UTC)))
        if not (dismiss and found):
            return
        if not yes and not typer.confirm("Put them away?", err=True):
            raise typer.Exit(1)
        named = [{"queue": letter["queue"], "id": letter["id"]} for letter in found]
        gone = api.post("dead-letters/put-away", {"deadLetters": named}, actor=actor())["putAway"]
    if output is not Output.JSON:
        console().print(Text(f"{render.many(gone, 'dead letter')} put away."))


def replay(
    name: Annotated[str, typer.Argument(help="A cluster whose job failed.")] = "",
    *,
    everything: Annotated[bool, typer.Option("--all", help="Every cluster whose job failed.")] = False,
    kind: Annotated[
        str, typer.Option("--class", help="Those that failed with this class, as Unavailable.")
    ] = "",
    url: Url = DEFAULT_URL,
    key: Key = "",
) -> None:
    """Begin failed jobs anew, without a commit."""
    if sum(map(bool, (name, everything, kind))) != 1:
        raise UsageError("give a cluster, or --all, or --class CLASS")
    known = [found.__name__ for found in classes()]
    if kind and kind not in known:
        raise UsageError(f"there is no class {kind!r}; these are: {', '.join(known)}")
    with Api(url, key) as api:
        if name:
            _replay(api, name)
            return
        names = _failed(api.whole("clusters", "clusters")["clusters"], kind)
        if not names:
            console().print(Text("No cluster has failed" + (f" with {kind}." if kind else ".")))
        begun = 0
        for each in names:
            try:
                _replay(api, each)
            except (NotFound, Refused) as error:  # it began, or went, by itself since we asked
                console().print(Text(line(str(error)), style="dim"))
            except ApiError as error:
                raise CommandFailed(f"{error}; {begun} of {len(names)} were begun anew") from error
            else:
                begun += 1
        if begun < len(names):
            console().print(Text(f"{begun} of {len(names)} were begun anew."))


def _failed(clusters: Sequence[dict[str, Any]], kind: str) -> list[str]:
    found = [cluster for cluster in clusters if cluster["phase"] == "Failed"]
    return [c["name"] for c in found if not kind or (c["failure"] or {}).get("class") == kind]


def _replay(api: Api, name: str) -> None:
    api.post(f"{cluster_at(name)}/replay", {}, actor=actor())
    console().print(Text(f"{name}: begun anew"))
