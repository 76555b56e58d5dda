"""``roadstead rollout``: pauses, resumes, approves and ends rollouts, and lets clusters out or start again.

All of them act on one rollout, with a reason; they differ in what they are about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from cli.commands.act.replay import replay_each
from cli.errors import UsageError
from cli.fleet_api.commits import commit_of, commit_with_items
from cli.options import Address, Reason, Yes, cluster_name, commit_id
from cli.terminal.output import confirm, echo
from shared.app.api import schema

if TYPE_CHECKING:
    from cli.fleet_api.client import Api

Commit = Annotated[
    str,
    typer.Option(
        "--commit", metavar="COMMIT", help="The rollout of this commit (default: the one under way)."
    ),
]
Stage = Annotated[str, typer.Argument(metavar="STAGE", help="A stage that waits for an approval.")]
Back = Annotated[
    bool,
    typer.Option(
        "--back", help="What Flux pulls goes back, too, on the clusters that have the commit already."
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A cluster of the rollout.")]


def _on_all(
    act: Callable[[Api, str, str], None],
    text: str,
    find: Callable[[Api, str], str] = commit_of,
    *,
    needs_reason: bool = False,
) -> Callable[..., None]:
    """Return a command that acts on a whole rollout, which ``find`` finds; ``text`` is its help."""

    def command(address: Address, *, commit: Commit = "", reason: Reason = "") -> None:
        if needs_reason and not reason:
            raise UsageError("give a --reason: the audit and the rollout show it")
        with address.connect() as api:
            act(api, _whole(api, commit, find), reason)

    command.__doc__ = text
    return command


def _on_one(act: Callable[[Api, str, str, str], None], about: object, text: str) -> Callable[..., None]:
    """Return a command that acts on one stage or cluster of a rollout, which is the argument ``about``."""

    def command(
        address: Address,
        subject: str,
        *,
        commit: Commit = "",
        reason: Reason = "",
    ) -> None:
        with address.connect() as api:
            act(api, _whole(api, commit), reason, subject)

    command.__doc__ = text
    command.__annotations__["subject"] = about
    return command


def _act(api: Api, whole: str, kind: str, reason: str, **subject: str) -> None:
    api.act(schema.Receipt, f"rollouts/{whole}/{kind}", {**subject, "reason": reason})
    echo(f"rollout of {whole[:8]}: {' '.join((kind, *subject.values()))} is queued")


def _whole(api: Api, commit: str, find: Callable[[Api, str], str] = commit_of) -> str:
    return find(api, commit_id("COMMIT", commit.removeprefix("rollout/")) if commit else "")


def _retry(api: Api, whole: str, reason: str) -> None:
    groups = (group for stage in api.rollout(whole)["stages"] for group in stage["groups"])
    names = [name for group in groups for name in group["failed"]]
    if names:
        replay_each(api, names, reason)
    else:
        echo(f"No cluster of the rollout of {whole[:8]} has failed.")


pause = _on_all(
    lambda api, whole, reason: _act(api, whole, "pause", reason),
    "Let a rollout finish what runs, and start nothing more until it is resumed.",
)
resume = _on_all(
    lambda api, whole, reason: _act(api, whole, "resume", reason), "Continue a rollout that somebody paused."
)
retry = _on_all(
    _retry,
    "Start the failed clusters of a rollout again, without a commit.",
    lambda api, start: commit_of(api, start, under_way=False),
)
override = _on_all(
    lambda api, whole, reason: _act(api, whole, "override", reason),
    "Start clusters outside their windows and in freezes, in an emergency; also what is on hold.\n\n"
    "Also before the time or the checks of a gate. It needs a --reason.",
    commit_with_items,
    needs_reason=True,
)
approve = _on_one(
    lambda api, whole, reason, stage: _act(api, whole, "approve", reason, stage=stage),
    Stage,
    "Let a stage begin that waits for an approval.",
)
skip = _on_one(
    lambda api, whole, reason, name: _act(api, whole, "skip", reason, cluster=cluster_name(name)),
    Name,
    "Take a cluster out of a rollout: it counts no more, as a failure or otherwise.",
)


def abort(
    address: Address,
    *,
    commit: Commit = "",
    back: Back = False,
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """End a rollout: the clusters that have not started stay as they are until a newer commit.

    With --back, Flux on the others pulls again what it pulled before, and prunes what only the commit has.
    """
    with address.connect() as api:
        whole = _whole(api, commit)
        goes = ", and prune what only its commit has" if back else ""
        confirm(f"Abort the rollout of {whole[:8]}{goes}?", "nothing was aborted", yes=yes)
        _act(api, whole, "back" if back else "abort", reason)
