"""``roadstead rollout list``, ``show`` and ``watch``: how far rollouts are, and what clusters wait for."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from cli.errors import CommandError, NoAnswer
from cli.fleet_api.commits import commit_of
from cli.fleet_api.polling import polled
from cli.options import Address, commit_id, seconds
from cli.terminal.cluster_table import indented
from cli.terminal.output import Output, OutputOption, echo, show
from cli.text import line, printable
from cli.times import age
from shared.app.api import schema
from shared.sentences import many, some_of

if TYPE_CHECKING:
    from cli.fleet_api.client import Api


Commit = Annotated[
    str, typer.Argument(metavar="COMMIT", help="A commit (default: the newest with a rollout).")
]


def rollouts(address: Address, *, output: OutputOption = Output.TABLE) -> None:
    """List the newest rollouts."""
    with address.connect() as api:
        found = api.rollouts()
    show(
        found,
        output,
        table=lambda _: rollouts_view(found["rollouts"], datetime.now(UTC)),
        names=lambda: (f"rollout/{rollout['commit']}" for rollout in found["rollouts"]),
    )


def rollout(address: Address, commit: Commit = "", *, output: OutputOption = Output.TABLE) -> None:
    """Show the stages of a rollout, and what its clusters wait for."""
    with address.connect() as api:
        found = api.rollout(_whole(api, commit))
    show(
        found,
        output,
        table=lambda _: rollout_view(found, datetime.now(UTC)),
        names=lambda: (f"cluster/{waiting['cluster']}" for waiting in found["waiting"]),
    )


def watch(
    address: Address,
    commit: Commit = "",
    *,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="DURATION", help="When to give up, such as 90s, 30m or 2h.")
    ] = "24h",
) -> None:
    """Follow a rollout until it has ended: a line whenever it gets further.

    Ends with 0 if it has completed without a failure, with 1 otherwise, or when the time is up.
    """
    until, last = time.monotonic() + seconds(timeout), ""
    with address.connect() as api:
        whole = _whole(api, commit)
        for found in polled(lambda: api.rollout(whole), until):
            now = str(found) if isinstance(found, NoAnswer) else found["progress"]
            if now != last:
                last = now
                echo(Text(line(f"{datetime.now(UTC):%H:%M:%S}  {last}")))
            if not isinstance(found, NoAnswer) and found["endedAt"] is not None:
                if found["state"] != "Completed":
                    raise CommandError(f"the rollout of {whole[:8]} ended: {found['state']}")
                return
    raise CommandError(f"the rollout of {whole[:8]} has not ended after {timeout}")


def _whole(api: Api, commit: str) -> str:
    start = commit_id("COMMIT", commit.removeprefix("rollout/")) if commit else ""
    return commit_of(api, start, under_way=False)


NAMED = 5
WAITS_SHOWN = 20


def rollouts_view(found: Sequence[schema.RolloutSummary], now: datetime) -> RenderableType:
    """Return a text for each rollout."""
    if not found:
        return Text("there is no rollout: no commit has changed a cluster yet, or all start at once")
    lines = (
        Text(
            f"{rollout['commit'][:8]}  {age(rollout['beganAt'], now):>4}  {rollout['state']}",
            style=_style(rollout),
        )
        for rollout in printable(found)
    )
    return Group(*lines)


def rollout_view(view: schema.RolloutView, now: datetime) -> RenderableType:
    """Return how far a rollout is, stage by stage, and why its clusters wait."""
    view = printable(view)
    head = Text(f"{view['commit'][:8]}  {view['state']}", style="bold")
    selected = ", which the commit selects" if view["selected"] else ""
    head.append(f"  strategy {view['strategy']}{selected}" if view["strategy"] else "")
    head.append(f"  began {age(view['beganAt'], now)} ago", style="dim")
    parts: list[RenderableType] = [head]
    for stage in view["stages"]:
        approval = f"  approval {stage['approval']}" if stage["approval"] else ""
        approval += f" ({stage['approvalsMissing']} missing)" if stage["approvalsMissing"] > 1 else ""
        name = f"stage {stage['name']}" if stage["groups"] else "after the last stage"
        parts.append(Text(f"{name}{approval}{_gate(stage, now)}"))
        parts += [indented(text, 2) for text in _checks(stage, now)]
        for number, group in enumerate(stage["groups"]):
            parts += [indented(text, 2) for text in _group(number, group)]
    if view["estimate"]:
        parts.append(Text(f"left: {view['estimate']['text']}"))
    for decision in view["decisions"]:
        about = f" {decision['subject']}" if decision["subject"] else ""
        reason = f": {decision['reason']}" if decision["reason"] else ""
        parts.append(
            Text(f"{decision['act']}{about} {age(decision['at'], now)} ago by {decision['by']}{reason}")
        )
    parts += _waits(view["waiting"], now)
    return Group(*parts)


def _gate(stage: schema.RolloutStage, now: datetime) -> str:
    """Return how long a gate has been waited for, who answers for it, and why."""
    gate = stage["gate"]
    if gate is None or gate["entered"] or not gate["reachedAt"]:
        return ""
    owner = f": {gate['owner']}, {gate['reason']}" if gate["owner"] else ""
    return f"  gate reached {age(gate['reachedAt'], now)} ago{owner}"


def _checks(stage: schema.RolloutStage, now: datetime) -> Iterator[Text]:
    """Yield what each check of a gate said, and how long ago."""
    for check in stage["gate"]["checks"] if stage["gate"] else ():
        if check["askedAt"] is None:
            continue
        text = f"check {check['name']}: {check['state']}"
        text += f", {check['answer']} {age(check['askedAt'], now)} ago" if check["answer"] else ""
        text += f", expected {check['expected']}" if check["state"] == "failed" else ""
        if (check["consecutiveSuccessLimit"] or 1) > 1:
            text += f" ({check['consecutiveSuccesses']} of {check['consecutiveSuccessLimit']} successes)"
        if check["failureLimit"] is not None and check["failures"]:
            text += f" ({many(check['failures'], 'failure')}, {check['failureLimit']} allowed)"
        yield Text(text, style="green" if check["state"] == "passed" else "yellow")


def _group(number: int, group: schema.RolloutGroup) -> Iterator[Text]:
    bounds = f"{group['maxConcurrency']} at a time, budget {group['failureBudget']}"
    counts = f"{group['ready']} of {group['clusters']} ready, {group['changing']} changing"
    text = Text(f"group {number + 1}: {counts} ({bounds})", style="green" if group["passedAt"] else "")
    yield text
    if group["failed"]:
        yield Text(f"failed: {some_of(group['failed'], NAMED)}", style="red")
    if group["setAside"]:
        yield Text(f"set aside: {some_of(group['setAside'], NAMED)}", style="yellow")


def _waits(waiting: Sequence[schema.WaitingCluster], now: datetime) -> Iterator[RenderableType]:
    """Yield why clusters wait, each reason once with its clusters, and for how long where that is known."""
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for wait in waiting:
        since = f"; since {age(wait['since'], now)}" if wait["since"] else ""
        reasons.setdefault((wait["waits"], since, wait["suggestedAction"]), []).append(wait["cluster"])
    for (waits, since, action), names in list(reasons.items())[:WAITS_SHOWN]:
        yield Text(f"{many(len(names), 'cluster')} ({some_of(names, NAMED)}): {waits}{since}", style="yellow")
        if action:
            yield indented(Text(action, style="dim"), 2)
    left = sum(len(names) for names in list(reasons.values())[WAITS_SHOWN:])
    if left:
        yield Text(f"and {many(left, 'more cluster')}, each with its reason in -o json", style="dim")


def _style(rollout: schema.RolloutSummary) -> str:
    return "bold" if rollout["underWay"] else ""
