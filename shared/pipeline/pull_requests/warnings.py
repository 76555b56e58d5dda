"""What a comment warns of: what AKS retires, and exemptions from drift that end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shared.fleet.resolve.problems import Problem
from shared.pipeline.pull_requests.markdown import code, prose, table
from shared.some_of import not_shown

WARNINGS_SHOWN = 20


def warnings_of(title: str, warnings: Sequence[Problem]) -> Iterator[str]:
    """Yield the first warnings under a title, and the number of the others; nothing for none."""
    shown = [
        (code(f"{each.file}:{each.line}"), code(each.field), prose(each.message))
        for each in warnings[:WARNINGS_SHOWN]
    ]
    if shown:
        yield f"#### {title}\n\n" + table(("place", "field", "warning"), shown)
    if len(warnings) > len(shown):
        yield not_shown(len(warnings) - len(shown), "warning")
