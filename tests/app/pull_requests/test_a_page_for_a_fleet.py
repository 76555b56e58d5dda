"""A pull request that changes a class and the platform of a fleet: its comment is a page."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.proposals import Repo
from tests.support.scaffolded_fleets import CLASS, INGRESS, NAMESPACES, changed, with_chart

pytestmark = pytest.mark.lives

LINES, COLUMNS = 60, 80
CommentOn = Callable[[Callable[[dict[str, bytes]], dict[str, bytes]]], str]


@pytest.fixture(scope="module")
def comment_on() -> CommentOn:
    """Return what proposes a change of the planned fleet, and returns the comment without its hidden line."""
    repo, files = Repo(MemoryCloud()), with_chart()
    repo.push(files)

    def comment(change: Callable[[dict[str, bytes]], dict[str, bytes]]) -> str:
        number = repo.propose(change(files))
        (body,) = repo.comments(number)
        repo.cloud.repository.pulls.change(number, state="closed")
        return body.partition("\n")[2]

    return comment


def platform_alone(files: dict[str, bytes]) -> dict[str, bytes]:
    return changed(files) | {CLASS: files[CLASS]}


def test_one_class_line_and_two_platform_files_of_14_clusters_are_one_page(comment_on: CommentOn) -> None:
    text = comment_on(changed)
    lines = text.splitlines()
    assert len(lines) <= LINES
    assert [line for line in lines if len(line) > COLUMNS and not line.startswith(("|", "Duration"))] == []
    assert "#### Flux on 14 clusters of development, staging and production (1 path)" in lines
    assert "+ Namespace ingress" in lines
    version = "spec.chart.spec.version 61.3.2 -> 62.0.0"
    assert f"~ HelmRelease flux-system/prometheus {version}" in lines
    assert "#### Each of 14 clusters: update" in lines
    assert "| `nodePools[apps].maxCount` | `5` | `8` | in place | `classes/standard.yaml:11` |" in lines
    (pin,) = [line for line in lines if "pin.commit" in line]
    assert len(pin) <= COLUMNS


def test_the_platform_alone_writes_nothing_to_azure_and_has_no_diff_of_manifests(
    comment_on: CommentOn,
) -> None:
    text = comment_on(platform_alone)
    assert "**14 update**." in text
    assert "#### Each of 14 clusters: update\n" in text
    assert "Resolved YAML" not in text


def test_what_is_refused_on_14_clusters_is_said_once(comment_on: CommentOn) -> None:
    wrong = INGRESS.replace("ingress", "In_gress").encode()
    text = comment_on(lambda files: files | {NAMESPACES: files[NAMESPACES] + wrong})
    assert len(text.splitlines()) <= LINES
    assert text.count("because what it would apply is invalid") == 1
    assert "#### Each of 14 clusters: **refused**" in text


def test_one_wrong_line_of_the_fleet_is_one_row_and_one_heading(comment_on: CommentOn) -> None:
    wrong = {"fleet.yaml": with_chart()["fleet.yaml"].replace(b"vmSize: ", b"vmsize: ", 1)}
    lines = comment_on(lambda files: files | wrong).splitlines()
    assert len(lines) <= LINES
    rows = [line for line in lines if line.startswith("| `")]
    assert len(rows) == 1
    assert rows[0].endswith("| there is no such field; did you mean vmSize? |")
    assert [line for line in lines if line.startswith("#### ")] == [
        "#### Problems",
        "#### Each of 14 clusters: **invalid: keeps its last valid spec**",
    ]
