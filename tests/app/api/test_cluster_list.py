"""Lists of clusters: pages, filters, orders and counts, however large the fleet is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.status import fleet_of, measure
from shared.app.api.parts import ClusterPage
from shared.app.api.views.cluster_list import ClusterSelection, Sort, counts_of, names_of_page
from shared.app.api.views.clusters import fleet_view
from shared.cluster.forms import RecordList
from shared.cluster.recipes import Step
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.summary import ClusterSummary, SummaryDetails, SummaryPlace, SummaryTimes
from shared.frozen import replace

pytestmark = pytest.mark.lives

SMALL = 120


def summary(
    name: str,
    phase: Phase,
    environment: str = "dev",
    location: str = "eastus",
    versions: tuple[str, str] = ("", ""),
    since: datetime | None = None,
) -> ClusterSummary:
    texts: dict[str, Any] = {
        "name": name,
        "uid": "0badcafe",
        "reason": "",
    }
    return ClusterSummary(
        **texts,
        phase=phase,
        shown_phase=phase,
        step=Step.VERIFY,
        generation=1,
        observed_generation=1,
        contested=False,
        place=SummaryPlace(environment, location, "", ""),
        details=SummaryDetails(versions=versions),
        times=SummaryTimes(since),
    )


summaries = st.lists(
    st.builds(
        summary,
        st.text("abc", min_size=1, max_size=4),
        st.sampled_from(Phase),
        st.sampled_from(["dev", "prod"]),
        st.sampled_from(["eastus", "westus"]),
        st.tuples(st.sampled_from(["1.36", "1.9"]), st.sampled_from(["", "1.36.2", "1.36.10"])),
        st.none() | st.datetimes(timezones=st.just(UTC)),
    ),
    unique_by=lambda found: found.name,
)
selections = st.builds(
    ClusterSelection,
    phases=st.frozensets(st.sampled_from(Phase), max_size=2),
    environment=st.sampled_from(["", "dev"]),
    location=st.sampled_from(["", "westus"]),
    prefix=st.sampled_from(["", "a", "ab"]),
    sort=st.sampled_from(Sort),
    descending=st.booleans(),
)


@given(fleet=summaries, selection=selections, limit=st.integers(1, 7))
def test_the_pages_of_a_list_have_each_matching_cluster_once_in_order(
    fleet: list[ClusterSummary], selection: ClusterSelection, limit: int
) -> None:
    found, after = list[str](), ""
    for _ in range(len(fleet) + 1):
        names, following = names_of_page(selection.of(fleet), selection, ClusterPage(after, limit))
        found += names
        if following is None:
            break
        after = following
    matching = [cluster for cluster in fleet if selection.matches(cluster)]
    assert sorted(found) == sorted(cluster.name for cluster in matching)
    by_name = {cluster.name: cluster for cluster in fleet}
    keys = [selection.key(by_name[name]) for name in found]
    assert keys == sorted(keys, reverse=selection.descending)
    assert len(selection.of(fleet)) == len(found)


def test_what_needs_attention_comes_first() -> None:
    fleet = [summary(phase.value.lower(), phase) for phase in Phase]
    names, _ = names_of_page(fleet, ClusterSelection(sort=Sort.PHASE), ClusterPage())
    assert (names[0], names[1], names[-1]) == ("failed", "stalled", "ready")


@pytest.mark.parametrize(
    ("older", "newer"),
    [("1.9.10", "1.36"), ("1.36", "1.36.2"), ("1.36.2", "1.36.10"), ("", "1.36"), ("odd", "1.0")],
)
def test_a_version_is_sorted_by_its_numbers_and_the_one_that_runs_counts(older: str, newer: str) -> None:
    fleet = [
        summary("a", Phase.READY, versions=("1.1", newer)),
        summary("b", Phase.READY, versions=(older, "")),
    ]
    ascending = ClusterSelection(sort=Sort.VERSION)
    assert names_of_page(fleet, ascending, ClusterPage())[0] == ["b", "a"]
    assert names_of_page(fleet, replace(ascending, descending=True), ClusterPage())[0] == ["a", "b"]


def test_the_counts_are_of_the_whole_fleet() -> None:
    fleet = [summary("a", Phase.READY), summary("b", Phase.READY), summary("c", Phase.FAILED)]
    failed = ClusterSelection(phases=frozenset({Phase.FAILED}))
    assert counts_of(RecordList(fleet), len(failed.of(fleet))) == {
        "total": 3,
        "matching": 1,
        "phases": {"Failed": 1, "Ready": 2},
        "environments": {"dev": {"Failed": 1, "Ready": 2}},
    }


@pytest.mark.parametrize(
    "selection", [ClusterSelection(), ClusterSelection(sort=Sort.PHASE), ClusterSelection(location="eastus")]
)
def test_a_page_reads_no_more_records_in_a_larger_fleet(selection: ClusterSelection) -> None:
    small, large = (measure(fleet_of(size), selection) for size in (SMALL, 4 * SMALL))
    assert small.clusters == large.clusters == 50
    assert small.records == large.records == 50
    assert small.calls == large.calls
    assert large.calls["summaries"] == 1


def test_all_pages_of_a_fleet_count_it_once() -> None:
    answer = measure(fleet_of(1100), pages=True)
    assert (answer.clusters, answer.records) == (1100, 1100)
    assert answer.calls["summaries"] == 1


def test_a_later_page_of_all_clusters_has_no_counts_and_says_so() -> None:
    cloud = fleet_of(3)
    first = fleet_view(cloud.ports, ClusterPage("", 2))
    phases = {"Failed": 1, "Ready": 2}
    assert first["counts"] == {"total": 3, "matching": 3, "phases": phases, "environments": {"": phases}}
    assert first["next"] is not None
    second = fleet_view(cloud.ports, ClusterPage(first["next"], 2))
    assert (second["counts"], second["next"]) == (None, None)
    assert [cluster["name"] for cluster in second["clusters"]] == ["cluster-00002"]
