"""``roadstead dead-letters``: messages that the functions could not process."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from cli.errors import CommandError, UsageError
from cli.options import Address, Reason, Yes
from cli.terminal import render
from cli.terminal.output import Output, OutputOption, confirm, echo, show
from shared.app.api import schema
from shared.sentences import many


def dead_letters(
    address: Address,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Only these.")] = None,
    *,
    dismiss: Annotated[bool, typer.Option("--dismiss", help="Remove those that are listed.")] = False,
    replay: Annotated[bool, typer.Option("--replay", help="Send those that are listed again.")] = False,
    reason: Reason = "",
    yes: Yes = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """List, replay or dismiss dead letters.

    Newest first. A dead letter is a message that a queue stopped delivering, and that Roadstead could not
    process.
    """
    if replay and dismiss:
        raise UsageError("give --replay or --dismiss: a dead letter that is replayed is removed")
    wanted = [identifier.removeprefix("dead-letter/") for identifier in ids or ()]
    with address.connect() as api:
        letters = api.read(schema.DeadLettersView, "dead-letters")["deadLetters"]
        found = [letter for letter in letters if not wanted or letter["id"] in wanted]
        unknown = {*wanted} - {letter["id"] for letter in found}
        if unknown:
            raise CommandError(f"no listed dead letter has the id {', '.join(sorted(unknown))}")
        show(
            {"deadLetters": found},
            output,
            table=lambda wide: render.dead_letters(found, datetime.now(UTC), wide=wide),
            names=lambda: (f"dead-letter/{letter['id']}" for letter in found),
        )
        if not ((dismiss or replay) and found):
            return
        verb, done = ("Dismiss", "dismissed") if dismiss else ("Replay", "replayed")
        confirm(f"{verb} {many(len(found), 'dead letter')}?", f"nothing was {done}", yes=yes)
        named = [{"queue": letter["queue"], "id": letter["id"]} for letter in found]
        body = {"deadLetters": named, "reason": reason}
        if dismiss:
            count = api.act(schema.DismissReceipt, "dead-letters/dismiss", body)["dismissed"]
        else:
            count = api.act(schema.LettersReceipt, "dead-letters/replay", body)["replayed"]
    if output in (Output.TABLE, Output.WIDE):
        echo(f"{many(count, 'dead letter')} {done}.")
