"""The stages in which a merge would reach the clusters, and what a comment warns of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shared.app.pull_requests.markdown import code, prose, table
from shared.language.resolve.problems import Problem
from shared.plan.plan import Item
from shared.rollouts.estimate import (
    Durations,
    at_once,
    describe_bounds,
    describe_estimate,
    describe_final,
    estimate,
    final_gate,
    groups_of,
    is_one_step,
    work_of,
)
from shared.rollouts.rollout import Rollout
from shared.sentences import not_shown, some_of

GROUPS_SHOWN = 50
NAMED = 10


def stages_of(rollout: Rollout | None, durations: Durations) -> Iterator[str]:
    """Yield the stages with their clusters and where approvals are asked for; nothing without an order."""
    groups = list(groups_of(rollout)) if rollout else []
    if rollout is None or is_one_step(rollout, groups):
        return
    lines = [
        (
            code(group.stage.name) + (f" (**{group.asking}**)" if group.asking else ""),
            str(group.number + 1),
            f"{len(group.clusters)}: {_named(group.clusters)}",
            describe_bounds(group),
        )
        for group in groups[:GROUPS_SHOWN]
    ]
    if lines:
        strategy = f"The strategy {code(rollout.choice.name)}.\n\n" if rollout.choice.name else ""
        yield f"#### Rollout\n\n{strategy}" + table(("stage", "group", "clusters", "how"), lines)
    if len(groups) > len(lines):
        yield not_shown(len(groups) - len(lines), "group")
    if lines and (gate := final_gate(rollout)):
        yield f"After the last stage, the rollout **{describe_final(gate)}**."
    if lines:
        found = estimate(rollout.choice.kind, work_of(groups), durations)
        yield f"Duration: {describe_estimate(found)}."
    if lines and (first := at_once(rollout)):
        yield f"At once: {_named(first)}."


def held_items(held: Sequence[Item]) -> Iterator[str]:
    """Yield what would wait for the end of a freeze, or for a change window, if it were merged now."""
    lines = [f"- {code(item.cluster)}: {prose(item.hold.cause)}" for item in held[:GROUPS_SHOWN] if item.hold]
    if lines:
        yield "#### Freezes and change windows\n\n" + "\n".join(lines)
    left = len(held) - len(lines)
    if left > 0:
        yield not_shown(left, "cluster")


def _named(names: Sequence[str]) -> str:
    return some_of([*map(code, names)], NAMED)


# What a comment warns of: what AKS retires, and exemptions from drift that end.

WARNINGS_SHOWN = 20


def warnings_of(title: str, warnings: Sequence[Problem]) -> Iterator[str]:
    """Yield the first warnings under a title, and the number of the others; nothing for none."""
    shown = [
        (code(f"{warning.file}:{warning.line}"), code(warning.field), prose(warning.message))
        for warning in warnings[:WARNINGS_SHOWN]
    ]
    if shown:
        yield f"#### {title}\n\n" + table(("place", "field", "warning"), shown)
    if len(warnings) > len(shown):
        yield not_shown(len(warnings) - len(shown), "warning")


def shortages_of(short: Sequence[str]) -> Iterator[str]:
    """Yield what the commit needs and Azure does not have, or did not say; nothing for nothing."""
    if short:
        lines = [f"- {prose(sentence)}" for sentence in short[:WARNINGS_SHOWN]]
        yield "#### What Azure has\n\n" + "\n".join(lines)
    if len(short) > WARNINGS_SHOWN:
        yield not_shown(len(short) - WARNINGS_SHOWN, "remark")
