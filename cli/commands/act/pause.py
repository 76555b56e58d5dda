"""``roadstead pause`` and ``resume``: stop what the app starts by itself, and start it again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from cli.errors import UsageError
from cli.options import DEFAULT_TIMEOUT, DEFAULT_URL, KeyFile, NeededReason, Reason, Timeout, Url, connect
from cli.options import seconds as seconds_of
from cli.terminal.output import echo

Until = Annotated[
    str, typer.Option("--until", metavar="TIME", help="Its end: 2h, or a time such as 2026-01-31T12:00:00Z.")
]


def pause(
    *,
    reason: NeededReason,
    until: Until = "",
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Stop everything that the app starts by itself: jobs, deletes, rollouts, corrections, pull requests.

    A step that runs ends, and so does an operation that Azure has accepted. Commits are planned, and wait.
    It ends at --until, or with roadstead resume.
    """
    with connect(url, key_file, timeout) as api:
        receipt = api.pause(reason, end_of(until))
    echo(f"paused until {receipt['until'] or 'roadstead resume'}")


def resume(
    *,
    reason: Reason = "",
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """End a pause. What waited starts now; a delete that needs an approval still does."""
    with connect(url, key_file, timeout) as api:
        api.resume(reason)
    echo("resumed: what waited starts within a minute; see roadstead status")


def end_of(until: str) -> str:
    """Return the end of something as the API takes it, "" for none; raise UsageError for what is no time."""
    if not until:
        return ""
    if until[-1:] in "smh" and until[:-1].isdecimal():
        return (datetime.now(UTC) + timedelta(seconds=seconds_of(until))).isoformat()
    try:
        end = datetime.fromisoformat(until)
    except ValueError as error:
        example = "a duration such as 2h, or a time such as 2026-01-31T12:00:00Z"
        raise UsageError(f"--until {until[:40]!r} must be {example}") from error
    return (end if end.tzinfo else end.replace(tzinfo=UTC)).isoformat()
