"""Which clusters of a fleet a list shows, in which order, and how many there are in each phase. Pure."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from shared.app.api import schema
from shared.app.api.parts import ClusterPage
from shared.cluster.forms import RecordList
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.summary import ClusterSummary, SummaryDetails
from shared.frozen import dataclass


class Sort(StrEnum):
    """The order of a list."""

    NAME = "name"
    PHASE = "phase"
    """What needs attention first; by name within a phase."""


_ATTENTION = (
    *(Phase.FAILED, Phase.STALLED, Phase.SUSPENDED, Phase.EXEMPT, Phase.DELETING, Phase.RELEASING),
    *(Phase.PROVISIONING, Phase.UPDATING, Phase.SLEEPING, Phase.READY),
)


@dataclass(frozen=True)
class ClusterSelection:
    """The filters of a list, each "" or empty for none, and its order.

    ``text`` is part of a name, in lower case, ``version`` the beginning of a version that git has or that
    runs, and ``owner`` one of the owners of a system. ``labels`` are keys with their values, None for any;
    ``conditions`` types with their status. ``commit`` is one that a cluster has, ``names`` the clusters that
    have it, None as long as nobody has looked.
    """

    phases: frozenset[Phase] = frozenset()
    environment: str = ""
    location: str = ""
    prefix: str = ""
    text: str = ""
    version: str = ""
    owner: str = ""
    cluster_class: str = ""
    labels: frozenset[tuple[str, str | None]] = frozenset()
    conditions: frozenset[tuple[str, bool | None]] = frozenset()
    commit: str = ""
    names: frozenset[str] | None = None
    sort: Sort = Sort.NAME

    @property
    def everything(self) -> bool:
        """Whether the list has every cluster, by name."""
        return self == ClusterSelection()

    @property
    def needs_details(self) -> bool:
        """Whether the filters are about what summaries have only if it is asked for."""
        return bool(self.labels or self.conditions or self.cluster_class or self.version or self.owner)

    def matches(self, summary: ClusterSummary) -> bool:
        """Return whether a cluster is in the list."""
        named = self.names is None or summary.name in self.names
        return (
            named
            and self._matches_details(summary.details)
            and (
                (not self.phases or summary.shown_phase in self.phases)
                and self.environment in ("", summary.place.environment)
                and self.location in ("", summary.place.location)
                and summary.name.startswith(self.prefix)
                and self.text in summary.name
            )
        )

    def of(self, summaries: Sequence[ClusterSummary]) -> Sequence[ClusterSummary]:
        """Return the clusters that are in the list, in any order."""
        if self == ClusterSelection(sort=self.sort):
            return summaries
        return [summary for summary in summaries if self.matches(summary)]

    def _matches_details(self, details: SummaryDetails | None) -> bool:
        if not self.needs_details:
            return True
        if details is None:
            return False
        labels, conditions = details.labels, details.conditions
        return (
            self.cluster_class in ("", details.cluster_class)
            and (not self.owner or any(self.owner in system.owners for system in details.systems))
            and (not self.version or any(text.startswith(self.version) for text in details.versions))
            and all(key in labels and value in (None, labels[key]) for key, value in self.labels)
            and all(kind in conditions and conditions[kind] is status for kind, status in self.conditions)
        )

    def key(self, summary: ClusterSummary) -> str:
        """Return where a cluster is in the order, as the ``after`` of the clusters behind it."""
        if self.sort is Sort.NAME:
            return summary.name
        return f"{_ATTENTION.index(summary.shown_phase)}:{summary.name}"


EVERYTHING = ClusterSelection()


def names_of_page(
    matching: Iterable[ClusterSummary], selection: ClusterSelection, page: ClusterPage
) -> tuple[Sequence[str], str | None]:
    """Return the names of a page of a list, and the ``after`` of the next one, None for the last."""
    keyed = ((selection.key(summary), summary.name) for summary in matching)
    found = heapq.nsmallest(page.limit + 1, (pair for pair in keyed if pair[0] > page.after))
    shown = found[: page.limit]
    return [name for _, name in shown], shown[-1][0] if shown and len(found) > len(shown) else None


def counts_of(summaries: RecordList[ClusterSummary], matching: int) -> schema.Counts:
    """Return how many clusters there are, also without a known phase, in each phase, and in the list."""
    pairs = Counter((summary.place.environment, summary.shown_phase.value) for summary in summaries)
    phases, environments = Counter[str](), dict[str, dict[str, int]]()
    for (environment, phase), count in sorted(pairs.items()):
        phases[phase] += count
        environments.setdefault(environment, {})[phase] = count
    return {
        "total": len(summaries) + len(summaries.unreadable),
        "matching": matching,
        "phases": dict(sorted(phases.items())),
        "environments": environments,
    }
