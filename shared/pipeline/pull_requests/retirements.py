"""What a comment says of the retirements that concern the clusters of a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shared.fleet.resolve.problems import Problem
from shared.pipeline.pull_requests.markdown import code, prose, table

RETIREMENTS_SHOWN = 20


def retirements(warnings: Sequence[Problem], stale: str) -> Iterator[str]:
    """Yield the first warnings, the number of the others, and that their table is old."""
    shown = [
        (code(f"{each.file}:{each.line}"), code(each.field), prose(each.message))
        for each in warnings[:RETIREMENTS_SHOWN]
    ]
    if shown:
        yield "#### Retirements of AKS\n\n" + table(("place", "field", "warning"), shown)
    if len(warnings) > len(shown):
        yield f"{len(warnings) - len(shown)} more warnings are not shown."
    if stale:
        yield f"> [!NOTE]\n> {prose(stale)}"
