"""Which clusters of a fleet a list shows, in which order, and how many there are in each phase. Pure."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

from shared.app.api import schema
from shared.app.api.parts import ClusterPage
from shared.cluster.failures.advice import explained
from shared.cluster.failures.catalogue import entry_of
from shared.cluster.forms import RecordList
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.summary import ClusterSummary, SummaryDetails
from shared.frozen import dataclass
from shared.kubernetes_versions import numbers


class Sort(StrEnum):
    """The order of a list, by name where it is the same."""

    NAME = "name"
    PHASE = "phase"
    """What needs attention first."""
    ENVIRONMENT = "environment"
    LOCATION = "location"
    VERSION = "version"
    """The version that runs, or that git has where none is known."""
    SINCE = "since"
    """Since when a job is at its step, or has ended; the oldest first."""


_ATTENTION = (
    *(Phase.FAILED, Phase.STALLED, Phase.SUSPENDED, Phase.EXEMPT, Phase.DELETING, Phase.RELEASING),
    *(Phase.PROVISIONING, Phase.UPDATING, Phase.SLEEPING, Phase.READY),
)


@dataclass(frozen=True)
class ClusterSelection:
    """The filters of a list, each "" or empty for none, and its order.

    ``text`` is part of a name, in lower case, ``version`` the beginning of a version that git has or that
    runs, and ``owner`` one of the owners of a system. ``labels`` are keys with their values, None for any;
    ``conditions`` types with their status. ``cause`` is the id of why clusters wait for a person. ``commit``
    is one that a cluster has, ``names`` the clusters that have it, None as long as nobody has looked.
    ``descending`` is the order from its end.
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
    cause: str = ""
    commit: str = ""
    names: frozenset[str] | None = None
    sort: Sort = Sort.NAME
    descending: bool = False

    @property
    def everything(self) -> bool:
        """Whether the list has every cluster, by name."""
        return self == ClusterSelection()

    @property
    def needs_details(self) -> bool:
        """Whether the filters or the order are about what summaries have only if it is asked for."""
        return self._by_details or self.sort is Sort.VERSION

    @property
    def _by_details(self) -> bool:
        return bool(self.labels or self.conditions or self.cluster_class or self.version or self.owner)

    def matches(self, summary: ClusterSummary) -> bool:
        """Return whether a cluster is in the list."""
        return (
            (self.names is None or summary.name in self.names)
            and (not self._by_details or self._matches_details(summary.details))
            and (not self.phases or summary.shown_phase in self.phases)
            and self.environment in ("", summary.place.environment)
            and self.location in ("", summary.place.location)
            and summary.name.startswith(self.prefix)
            and self.text in summary.name
            and (not self.cause or (summary.stuck and self.cause == cause_id(summary)))
        )

    def of(self, summaries: Sequence[ClusterSummary]) -> Sequence[ClusterSummary]:
        """Return the clusters that are in the list, in any order."""
        if self == ClusterSelection(sort=self.sort, descending=self.descending):
            return summaries
        return [summary for summary in summaries if self.matches(summary)]

    def _matches_details(self, details: SummaryDetails) -> bool:
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
        return f"{_KEYS[self.sort](summary)} {summary.name}" if self.sort in _KEYS else summary.name


def cause_of(summary: ClusterSummary) -> tuple[str, str, str]:
    """Return why a cluster waits for a person: its phase, who acts, and what it means or what to do."""
    cause = summary.cause
    entry, meaning = entry_of(cause.entry), explained(cause.kind, cause.entry)
    who = entry.actor.value if entry else ""
    return summary.shown_phase.value, who, summary.cause.action_required or meaning or summary.reason


def cause_id(summary: ClusterSummary) -> str:
    """Return the id that all clusters have which wait for the same."""
    return hashlib.sha256("\n".join(cause_of(summary)).encode()).hexdigest()[:12]


def _version_key(summary: ClusterSummary) -> str:
    git, runs = summary.details.versions
    return ".".join(f"{number:04}" for number in numbers(runs or git))


_KEYS: Mapping[Sort, Callable[[ClusterSummary], object]] = {
    Sort.PHASE: lambda summary: _ATTENTION.index(summary.shown_phase),
    Sort.ENVIRONMENT: lambda summary: summary.place.environment,
    Sort.LOCATION: lambda summary: summary.place.location,
    Sort.VERSION: _version_key,
    Sort.SINCE: lambda summary: summary.times.since.isoformat() if summary.times.since else "",
}
"""What a cluster is sorted by, unless by name; a space comes before whatever a value may go on with."""
EVERYTHING = ClusterSelection()
_STATUSES: Mapping[str, bool | None] = {"": True, "True": True, "False": False, "Unknown": None}


def selection_of(params: Mapping[str, str], usual: Sort = Sort.NAME) -> ClusterSelection:
    """Return which clusters the parameters of a query select, where several have commas between them.

    An order from its end begins with "-". Raise ValueError for an unknown phase, status or order.
    """

    def parts(name: str) -> list[str]:
        return [part for part in (params.get(name) or "").split(",") if part]

    order = params.get("sort") or usual
    return ClusterSelection(
        phases=frozenset(map(Phase, parts("phase"))),
        environment=params.get("environment") or "",
        location=params.get("location") or "",
        prefix=params.get("prefix") or "",
        text=(params.get("text") or "").lower(),
        version=params.get("version") or "",
        owner=params.get("owner") or "",
        cluster_class=params.get("class") or "",
        labels=frozenset(_label(part) for part in parts("label")),
        conditions=frozenset(_condition(part) for part in parts("condition")),
        cause=params.get("cause") or "",
        commit=params.get("commit") or "",
        sort=Sort(order.removeprefix("-")),
        descending=order.startswith("-"),
    )


def _label(text: str) -> tuple[str, str | None]:
    """Return the key and the value of ``key=value``, or the key alone with None for any value."""
    key, given, value = text.partition("=")
    return key, value if given else None


def _condition(text: str) -> tuple[str, bool | None]:
    """Return the type and the status of ``Type=False``; ``Type`` alone is true, and None unknown."""
    kind, given, status = text.partition("=")
    if not kind or status not in _STATUSES or (given and not status):
        raise ValueError(text)
    return kind, _STATUSES[status]


def names_of_page(
    matching: Iterable[ClusterSummary], selection: ClusterSelection, page: ClusterPage
) -> tuple[Sequence[str], str | None]:
    """Return the names of a page of a list, and the ``after`` of the next one, None for the last."""
    keyed = ((selection.key(summary), summary.name) for summary in matching)
    if selection.descending:
        before = (pair for pair in keyed if not page.after or pair[0] < page.after)
        found = heapq.nlargest(page.limit + 1, before)
    else:
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
