"""Which clusters of a fleet a list shows, in which order, and how many there are in each phase. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from shared.jobs.record import Phase
from shared.jobs.summary import ClusterSummary
from shared.pipeline.api import schema
from shared.pipeline.api.parts import Page


class Sort(StrEnum):
    """The order of a list."""

    NAME = "name"
    PHASE = "phase"
    """What needs attention first; by name within a phase."""


_ATTENTION = (
    *(Phase.FAILED, Phase.STALLED, Phase.SUSPENDED, Phase.DELETING),
    *(Phase.PROVISIONING, Phase.UPDATING, Phase.READY),
)


@dataclass(frozen=True)
class Selection:
    """The filters of a list, each "" or empty for none, and its order."""

    phases: frozenset[Phase] = frozenset()
    environment: str = ""
    location: str = ""
    prefix: str = ""
    sort: Sort = Sort.NAME

    @property
    def everything(self) -> bool:
        """Whether the list has every cluster, by name."""
        return self == Selection()

    def matches(self, summary: ClusterSummary) -> bool:
        """Return whether a cluster is in the list."""
        return (
            (not self.phases or summary.phase in self.phases)
            and self.environment in ("", summary.environment)
            and self.location in ("", summary.location)
            and summary.name.startswith(self.prefix)
        )

    def key(self, summary: ClusterSummary) -> str:
        """Return where a cluster is in the order, as the ``after`` of the clusters behind it."""
        if self.sort is Sort.NAME:
            return summary.name
        return f"{_ATTENTION.index(summary.phase)}:{summary.name}"


EVERYTHING = Selection()


def names_of_page(
    summaries: Sequence[ClusterSummary], selection: Selection, page: Page
) -> tuple[Sequence[str], str | None]:
    """Return the names of the clusters of a page, and the ``after`` of the next one, None for the last."""
    keyed = sorted((selection.key(each), each.name) for each in summaries if selection.matches(each))
    left = [pair for pair in keyed if pair[0] > page.after]
    shown = left[: page.limit]
    return [name for _, name in shown], shown[-1][0] if len(left) > len(shown) else None


def counts_of(summaries: Sequence[ClusterSummary], selection: Selection) -> schema.Counts:
    """Return how many clusters there are, in each phase, and in the list."""
    phases = Counter(summary.phase.value for summary in summaries)
    matching = sum(map(selection.matches, summaries))
    return {"total": len(summaries), "matching": matching, "phases": dict(sorted(phases.items()))}
