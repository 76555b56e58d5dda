"""Parts of a comment besides the clusters' own changes: stages, warnings, and what Flux would apply."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from shared.app.pull_requests.markdown import code, details, fence, line, names, prose, table
from shared.language.resolve.problems import Problem, number_of
from shared.plan.list_price import ListPrice, changes_of, details_of, headline
from shared.plan.plan import Item
from shared.platform.changes.report import ReportSection, text_of, wrapped
from shared.prices.price_file import NO_FILE
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
    waits = [f"{code(item.cluster)}: {prose(item.hold.cause)}" for item in held if item.hold]
    yield from _listed("Freezes and change windows", waits, GROUPS_SHOWN, "cluster")


def _listed(title: str, lines: Sequence[str], most: int, noun: str) -> Iterator[str]:
    if lines:
        yield f"#### {title}\n\n" + "\n".join(f"- {line}" for line in lines[:most])
    if len(lines) > most:
        yield not_shown(len(lines) - most, noun)


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
    yield from _listed("What Azure has", [*map(prose, short)], WARNINGS_SHOWN, "remark")


def list_price_line(price: ListPrice | None, today: date) -> str:
    """Return by how much the list price changes as a further sentence, "" where it does not.

    Not every pull request repeats that there is no price file: ``roadstead plan`` says how to get one.
    """
    if price is None or price.problem == NO_FILE:
        return ""
    return f"\nList price: {prose(headline(price, today).partition(': ')[2])}."


def list_price_parts(price: ListPrice | None) -> Iterator[str]:
    """Yield what a list price counts and what not, which nobody has to open; nothing for none."""
    counted = [f"- {prose(sentence)}" for sentence in details_of(price)] if price else []
    if price is None or not counted:
        return
    changes = [(prose(clusters), prose(change)) for clusters, change in changes_of(price)]
    each = table(("clusters", "each"), changes) + "\n\n" if changes else ""
    yield details("What this list price counts", each + "\n".join(counted))


# What a pull request changes of what Flux applies: a part of the comment, by change and not by cluster.

WIDTH = 78
"""Columns of a line, so that a narrow window shows it whole."""
CHANGES_SHOWN = 25
SECTIONS_SHOWN = 30
NOTES_SHOWN = 5


def platform_parts(
    sections: Sequence[ReportSection], note: str = "", notes: Sequence[Problem] = ()
) -> Iterator[str]:
    """Yield the changes of Flux on the clusters, what is refused or needs an approval first."""
    if note:
        yield f"Flux: {prose(note)}."
    for section in sections[:SECTIONS_SHOWN]:
        state = f": **{section.state}**" if section.state else ""
        yield f"#### {_heading(section)}{state}"
        if len(section.clusters) > 1:
            yield from names(section.clusters)
        yield fence("\n".join(map(line_of, text_of(section, WIDTH, CHANGES_SHOWN))), "diff")
    if len(sections) > SECTIONS_SHOWN:
        yield not_shown(len(sections) - SECTIONS_SHOWN, "group of changes")
    if notes:
        known = [text for found in notes[:NOTES_SHOWN] for text in wrapped(str(found), WIDTH, "")]
        hidden = number_of(notes[NOTES_SHOWN:])
        rest = [not_shown(hidden, "note")] if hidden else []
        yield "#### Flux: may be wrong"
        yield fence("\n".join(map(line_of, [*known, *rest])))


def line_of(text: str) -> str:
    """Return a line of a section with its indentation, without control characters and secrets."""
    indent = len(text) - len(text.lstrip(" "))
    return f"{' ' * indent}{line(text)}"


def platform_title(sections: Sequence[ReportSection]) -> str:
    """Return on how many clusters Flux changes something, "" for none."""
    clusters = {name for section in sections for name in section.clusters}
    if not clusters:
        return ""
    states = [section.state for section in sections]
    state = next((known for known in ("refused", "needs approval") if known in states), "")
    return f"Flux changes on {len(clusters)}" + (f", {state}" if state else "")


def _heading(section: ReportSection) -> str:
    if len(section.clusters) > 1:
        return section.heading
    return section.heading.replace(section.clusters[0], code(section.clusters[0]), 1)
