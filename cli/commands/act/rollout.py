"""``roadstead rollout``: shows rollouts, and pauses, resumes, aborts, approves or lets a cluster out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import CommandError
from cli.options import (
    DEFAULT_TIMEOUT,
    DEFAULT_URL,
    KeyFile,
    Reason,
    Timeout,
    Url,
    Yes,
    cluster_name,
    commit_id,
    connect,
)
from cli.terminal.output import Output, OutputOption, confirmed, echo, show
from cli.terminal.rollout_view import rollout_view, rollouts_view
from shared.pipeline.api import schema

if TYPE_CHECKING:
    from cli.fleet_api.client import Api

Commit = Annotated[
    str,
    typer.Option(
        "--commit", metavar="COMMIT", help="The rollout of this commit (default: the one under way)."
    ),
]


def rollouts(
    *,
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """List the newest rollouts."""
    with connect(url, key_file, timeout) as api:
        found = api.rollouts()
    show(
        found,
        output,
        table=lambda _: rollouts_view(found["rollouts"], datetime.now(UTC)),
        names=lambda: (f"rollout/{each['commit']}" for each in found["rollouts"]),
    )


def rollout(
    commit: Annotated[
        str, typer.Argument(metavar="COMMIT", help="A commit (default: the newest with a rollout).")
    ] = "",
    *,
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Show the stages of a rollout, and what its clusters wait for."""
    with connect(url, key_file, timeout) as api:
        found = api.rollout(_commit_of(api, commit, under_way=False))
    show(
        found,
        output,
        table=lambda _: rollout_view(found, datetime.now(UTC)),
        names=lambda: (f"cluster/{each['cluster']}" for each in found["waiting"]),
    )


def pause(
    *,
    commit: Commit = "",
    reason: Reason = "",
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Let a rollout finish what runs, and start nothing more until it is resumed."""
    with connect(url, key_file, timeout) as api:
        _act(api, commit, "pause", reason)


def resume(
    *,
    commit: Commit = "",
    reason: Reason = "",
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Continue a rollout that somebody paused."""
    with connect(url, key_file, timeout) as api:
        _act(api, commit, "resume", reason)


def abort(
    *,
    commit: Commit = "",
    reason: Reason = "",
    yes: Yes = False,
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """End a rollout: the clusters that have not started stay as they are until a newer commit."""
    with connect(url, key_file, timeout) as api:
        whole = _commit_of(api, commit, under_way=True)
        if not yes and not confirmed(f"Abort the rollout of {whole[:8]}?"):
            raise CommandError("nothing was aborted")
        _act(api, whole, "abort", reason)


def approve(
    stage: Annotated[str, typer.Argument(metavar="STAGE", help="A stage that waits for an approval.")],
    *,
    commit: Commit = "",
    reason: Reason = "",
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Let a stage begin that waits for an approval."""
    with connect(url, key_file, timeout) as api:
        _act(api, commit, "approve", reason, stage=stage)


def skip(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A cluster of the rollout.")],
    *,
    commit: Commit = "",
    reason: Reason = "",
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Take a cluster out of a rollout: it counts no more, as a failure or otherwise."""
    with connect(url, key_file, timeout) as api:
        _act(api, commit, "skip", reason, cluster=cluster_name(name))


def _act(api: Api, commit: str, kind: str, reason: str, **subject: str) -> None:
    whole = _commit_of(api, commit, under_way=True)
    receipt = api.act_on_rollout(whole, kind, reason, **subject)
    about = f" {receipt['subject']}" if receipt["subject"] else ""
    echo(f"rollout of {whole[:8]}: {kind}{about} is queued")


def _commit_of(api: Api, commit: str, *, under_way: bool) -> str:
    """Return the full id of a commit with a rollout; without one, that under way or the newest one."""
    found = api.rollouts()["rollouts"]
    if commit:
        start = commit_id("COMMIT", commit.removeprefix("rollout/"))
        names = [each["commit"] for each in found if each["commit"].startswith(start)]
        if len(names) != 1:
            many = "no rollout" if not names else f"{len(names)} rollouts"
            raise CommandError(f"{many} of a commit that begins with {start}; see roadstead rollout list")
        return names[0]
    return _newest(found, under_way=under_way)


def _newest(found: list[schema.RolloutSummary], *, under_way: bool) -> str:
    names = [each["commit"] for each in found if each["underWay"] or not under_way]
    if not names:
        raise CommandError("no rollout is under way" if under_way else "there is no rollout")
    current = [each["commit"] for each in found if each["underWay"]]
    return current[0] if current else names[0]
