"""``roadstead status`` of a large fleet: pages, filters and counts, on the terminals of people."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from bench.status import fleet_of
from tests.support.roadstead_command import on_terminal, plain, roadstead
from tests.support.served_api import served

pytestmark = pytest.mark.lives

CLUSTERS = 600


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(fleet_of(CLUSTERS).ports) as address:
        yield address


@pytest.mark.parametrize("columns", [80, 120])
def test_the_first_page_says_how_many_more_there_are_and_how_to_see_them(url: str, columns: int) -> None:
    shown = plain(on_terminal("status", columns=columns, ROADSTEAD_URL=url)[1])
    lines = [line.rstrip() for line in shown.splitlines()]
    assert max(map(len, lines)) <= columns
    assert lines[0] == "example: 593 of 600 clusters Ready, commit cccccccc"
    assert lines[1] == "7 Failed"
    assert sum(line.startswith("cluster-") for line in lines) == 50
    text = " ".join(shown.split())
    assert "50 of 600 clusters shown. More: --after cluster-00049, or --all." in text


def test_the_next_page_begins_where_the_first_one_ended(url: str) -> None:
    shown = roadstead("status", "--after", "cluster-00049", "--limit", "2", ROADSTEAD_URL=url).stdout
    assert "cluster-00050" in shown
    assert "cluster-00051" in shown
    assert shown.count("cluster-0005") == 3, "two clusters, and the next page"


def test_a_filtered_list_says_how_many_match(url: str) -> None:
    shown = roadstead("status", "--phase", "Failed", ROADSTEAD_URL=url).stdout
    assert sum(line.startswith("cluster-") for line in shown.splitlines()) == 7
    assert "7 of 600 clusters match" in shown
    assert "--all" not in shown


def test_what_needs_attention_is_shown_first(url: str) -> None:
    shown = roadstead("status", "--sort", "phase", "--limit", "8", "-o", "name", ROADSTEAD_URL=url).stdout
    names = shown.split()
    assert names[6:] == ["cluster/cluster-00582", "cluster/cluster-00001"]


def test_the_formats_for_scripts_have_every_cluster(url: str) -> None:
    assert len(roadstead("status", "-o", "name", ROADSTEAD_URL=url).stdout.split()) == CLUSTERS
    view = json.loads(roadstead("status", "-o", "json", "--prefix", "cluster-005", ROADSTEAD_URL=url).stdout)
    assert len(view["clusters"]) == view["counts"]["matching"] == 100
    assert (
        len(
            json.loads(roadstead("status", "-o", "json", "--limit", "3", ROADSTEAD_URL=url).stdout)[
                "clusters"
            ]
        )
        == 3
    )


def test_an_unknown_phase_is_an_error_with_the_known_ones(url: str) -> None:
    shown = roadstead("status", "--phase", "failed", ROADSTEAD_URL=url)
    assert shown.returncode == 1
    assert "phase must be some of Provisioning, Updating" in shown.stderr
