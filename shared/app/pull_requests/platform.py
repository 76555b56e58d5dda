"""What a pull request changes of what Flux applies: a part of the comment, by change and not by cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shared.app.pull_requests.markdown import code, fence, line, names, prose
from shared.language.resolve.problems import Problem, number_of
from shared.platform.changes.report import Section, text_of, wrapped
from shared.sentences import not_shown

WIDTH = 78
"""Columns of a line, so that a narrow window shows it whole."""
CHANGES_SHOWN = 25
SECTIONS_SHOWN = 30
NOTES_SHOWN = 5


def platform_parts(
    sections: Sequence[Section], note: str = "", notes: Sequence[Problem] = ()
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


def platform_title(sections: Sequence[Section]) -> str:
    """Return on how many clusters Flux changes something, "" for none."""
    clusters = {name for section in sections for name in section.clusters}
    if not clusters:
        return ""
    states = [section.state for section in sections]
    state = next((known for known in ("refused", "needs approval") if known in states), "")
    return f"Flux changes on {len(clusters)}" + (f", {state}" if state else "")


def _heading(section: Section) -> str:
    if len(section.clusters) > 1:
        return section.heading
    return section.heading.replace(section.clusters[0], code(section.clusters[0]), 1)
