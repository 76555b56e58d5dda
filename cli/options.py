"""Options and arguments that several commands share, and the checks of their values."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.errors import UsageError
from cli.fleet_api.contexts import LOCAL_URL, chosen

if TYPE_CHECKING:
    from cli.fleet_api.client import Api

KEY = "ROADSTEAD_KEY"
MAX_EVENTS = 1000

ClusterArgument = Annotated[str, typer.Argument(metavar="NAME", help="A cluster.")]
RepositoryPath = Annotated[
    Path,
    typer.Argument(
        metavar="PATH", help="The folder of the fleet repository.", show_default="the current folder"
    ),
]
Limit = Annotated[
    int, typer.Option(metavar="NUMBER", min=1, max=MAX_EVENTS, help="How many, the newest first.")
]
Before = Annotated[str, typer.Option(metavar="TIME", help="Only older ones.")]
Reason = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why; the audit and the events show it.")
]
NeededReason = Annotated[
    str,
    typer.Option("--reason", metavar="TEXT", help="Why, which is needed; the audit and the events show it."),
]
OfEnvironment = Annotated[
    str, typer.Option("--environment", metavar="NAME", help="Only of this environment.")
]
WithLabels = Annotated[
    str, typer.Option("--label", metavar="LABELS", help="Only with labels, such as team=shop,tier.")
]
OfApps = Annotated[
    str, typer.Option("--subscription", metavar="ID", help="That of the apps; by default, of your sign-in.")
]
FleetOrCluster = Annotated[str, typer.Argument(metavar="NAME", help="A cluster; without it the fleet.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

_PLAIN_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_COMMIT = re.compile(r"[0-9a-f]{1,64}")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h)?")
_SPAN = re.compile(r"[1-9][0-9]{0,4}[mhd]")
_LONGEST = 1e9
"""Seconds; a socket waits for 292 years at most."""
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_TIME = "a time such as 2026-01-31T12:00:00Z"


@dataclass(frozen=True)
class Address:
    """The app that a command asks, as ``--url``, ``--key-file`` and ``--timeout`` name it.

    A command whose first parameter is one has these options (``with_address``).
    """

    url: Annotated[
        str,
        typer.Option(
            "--url",
            metavar="URL",
            envvar="ROADSTEAD_URL",
            help=f"Address of the function app; without it that of the context, or {LOCAL_URL}.",
            show_envvar=False,
            show_default=False,
        ),
    ] = ""
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--key-file",
            metavar="FILE",
            envvar="ROADSTEAD_KEY_FILE",
            help="A file with a key of the API (default: ROADSTEAD_KEY_FILE; without a file, the key "
            "in ROADSTEAD_KEY).",
            show_envvar=False,
        ),
    ] = None
    timeout: Annotated[
        str,
        typer.Option(
            "--timeout", metavar="DURATION", help="How long to wait for an answer, such as 30s or 2m."
        ),
    ] = "30s"

    def connect(self) -> Api:
        """Return the client; raise UsageError for a context, key file or timeout that is none."""
        from cli.fleet_api.client import Api
        from cli.fleet_api.sign_in import token_of

        context, longest = chosen(self.url), seconds(self.timeout)
        token = token_of(context) if context.scope and self.key_file is None else None
        if token:
            # A key is of one fleet: the one in the environment is not sent to whatever context is chosen.
            return Api(context.url, token=token, origin=context.origin, timeout=longest)
        key, origin = _key(self.key_file)
        return Api(context.url, key, origin=origin, timeout=longest)


def with_address(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of Address in the place of its first parameter, an Address.

    A command with a ``--timeout`` of its own, the time until it gives up, has the other two.
    """
    declared = signature(command, eval_str=True).parameters
    parameters = {name: found for name, found in declared.items() if found.annotation is not Address}
    if len(parameters) == len(declared):
        return command
    options = [
        option.replace(kind=Parameter.KEYWORD_ONLY)
        for name, option in signature(Address, eval_str=True).parameters.items()
        if name not in parameters
    ]

    def asking(**given: Any) -> None:
        address = Address(**{option.name: given.pop(option.name) for option in options})
        command(address, **given)

    asking.__doc__ = command.__doc__
    asking.__signature__ = Signature([*parameters.values(), *options])  # type: ignore[attr-defined]
    return asking


def _key(file: Path | None) -> tuple[str, str]:
    """Return the key and where it is from, "" for none. It is never an argument: other users could see it."""
    if file is None:
        key, origin = os.environ.get(KEY, ""), KEY
    else:
        origin = f"the file {file}"
        try:
            key = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--key-file {file} cannot be read") from error
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"{origin} has no key: one has printable ASCII characters alone, on one line")
    return key, origin


def seconds(duration: str) -> float:
    """Return a duration such as 90, 90s, 5m or 1h in seconds; raise UsageError for anything else."""
    found = _DURATION.fullmatch(duration)
    length = float(found[1]) * _SECONDS[found[2] or "s"] if found else 0
    if not 0 < length <= _LONGEST:
        raise UsageError(f"--timeout {duration[:20]!r} must be a duration such as 30s, 5m or 1h")
    return length


def before_time(given: str) -> str:
    """Return ``--before`` as the API takes it, UTC if it has no zone; raise UsageError for anything else."""
    return _time("--before", given, _TIME) if given else ""


def end_time(given: str) -> str:
    """Return ``--until``, a duration or a time, as the API takes it; raise UsageError for anything else."""
    if not given:
        return ""
    if given[-1:] in _SECONDS and given[:-1].isdecimal():
        return (datetime.now(UTC) + timedelta(seconds=seconds(given))).isoformat()
    return _time("--until", given, f"a duration such as 2h, or {_TIME}")


def span(given: str) -> str:
    """Return ``--for`` as the API takes it, which knows how long it may be; raise UsageError for no time."""
    if not _SPAN.fullmatch(given):
        raise UsageError(f"--for {given[:20]!r} must be a number with a unit, such as 30m, 4h or 7d")
    return given


def _time(option: str, given: str, form: str) -> str:
    try:
        moment = datetime.fromisoformat(given)
    except ValueError as error:
        raise UsageError(f"{option} {given[:40]!r} must be {form}") from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def day(option: str, given: str) -> date:
    """Return a day; raise UsageError for anything else."""
    try:
        return datetime.strptime(given, "%Y-%m-%d").replace(tzinfo=UTC).date()
    except ValueError as error:
        raise UsageError(f"{option} {given[:40]!r} must be a day such as 2026-01-31") from error


def commit_id(option: str, given: str, *, shortest: int = 1) -> str:
    """Return a commit id or its first characters, given plain or as ``-o name`` prints it."""
    commit = given.removeprefix("plan/").lower()
    if not _COMMIT.fullmatch(commit) or len(commit) < shortest:
        least = f"at least {shortest}" if shortest > 1 else "the first"
        raise UsageError(f"{option} {given[:50]!r} must be a commit id, or {least} characters of one")
    return commit


def cluster_name(given: str) -> str:
    """Return the name of a cluster, given plain or as ``-o name`` prints it; raise UsageError for no name."""
    name = given.removeprefix("cluster/")
    if not _PLAIN_NAME.fullmatch(name):
        from shared.language.model.base import ClusterName

        check("NAME", ClusterName, name)
    return name


def check(option: str, rule: Any, value: str) -> None:
    """Raise UsageError for a value that a manifest's field of that type would not accept."""
    from pydantic import TypeAdapter, ValidationError

    from cli.text import line

    try:
        TypeAdapter(rule).validate_python(value)
    except ValidationError as error:
        reason = error.errors()[0].get("ctx", {}).get("error") or error.errors()[0]["msg"]
        raise UsageError(f"{option} {line(str(reason))}") from error
