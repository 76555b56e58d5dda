"""What the real controllers do when a pin moves: to commits that people reported as outages, and back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.authority.platform_commits import (
    COMMITS,
    NAMESPACES,
    ROOT,
    PlatformCommit,
    deployment,
    listed,
)
from tests.authority.real_flux import RealFlux, eventually, real_flux
from tests.authority.real_platform import Platform, difference

pytestmark = pytest.mark.timeout(900)
TABLE = Path(__file__).with_name("platform_commits.md")


@pytest.fixture(scope="module")
def flux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealFlux]:
    with real_flux(tmp_path_factory.mktemp("platform")) as running:
        yield running


@pytest.mark.parametrize("case", COMMITS, ids=lambda case: case.name)
def test_the_controllers_do_with_a_commit_what_the_table_says(flux: RealFlux, case: PlatformCommit) -> None:
    seen = _seen(flux, case)
    if "RECORD_ANSWERS" in os.environ:
        _write(case, seen)
    assert _row(case, seen) in TABLE.read_text().splitlines()


def test_a_pin_moves_forward_stays_at_a_broken_commit_and_goes_back(flux: RealFlux) -> None:
    platform = Platform(flux, "acme/pins")
    tree = {"platform/kustomization.yaml": listed("namespaces.yaml"), "platform/namespaces.yaml": NAMESPACES}
    first = platform.commit(tree)
    more = {
        "platform/kustomization.yaml": listed("namespaces.yaml", "gateway.yaml"),
        "platform/gateway.yaml": deployment("gateway", "platform"),
    }
    second = platform.commit(more)
    third = platform.commit({"platform/gateway.yaml": "a: [\n"})
    names = {first: "first", second: "second", third: "third"}
    try:
        platform.move(first)
        bare = platform.objects()
        assert platform.kustomizations(names) == {ROOT: "has first: Ready"}, "and not the head of main"
        platform.move(second)
        full = platform.objects()
        assert [*difference(bare, full)] == ["+ Deployment platform/gateway"]
        assert platform.kustomizations(names) == {ROOT: "has second: Ready"}
        platform.move(third)
        told = platform.kustomizations(names)[ROOT]
        assert told.startswith("has second: False BuildFailed: ")
        assert "gateway.yaml" in told
        assert platform.objects() == full
        platform.move(second)
        assert platform.objects() == full
        assert platform.kustomizations(names) == {ROOT: "has second: Ready"}
        platform.move(first)
        assert platform.objects() == bare, "what the commit brought is pruned"
        assert platform.kustomizations(names) == {ROOT: "has first: Ready"}
    finally:
        platform.remove()


def test_a_push_by_force_changes_nothing_under_a_pin_also_when_the_storage_is_lost(flux: RealFlux) -> None:
    platform = Platform(flux, "acme/forced")
    tree = {"platform/kustomization.yaml": listed("namespaces.yaml"), "platform/namespaces.yaml": NAMESPACES}
    first = platform.commit(tree)
    second = platform.commit({"platform/kustomization.yaml": listed("namespaces.yaml"), "more": "x"})
    try:
        platform.move(second)
        before, fetched = platform.objects(), platform.fetched()
        platform.repository.reset(first)
        platform.commit({"platform/namespaces.yaml": None, "platform/kustomization.yaml": listed()})
        flux.request("GitRepository", ROOT, "1")
        platform.settle()
        flux.restart_sources()
        assert eventually(lambda: platform.fetched() not in ("", fetched)), "it is fetched again"
        flux.request("Kustomization", ROOT, "1")
        platform.settle()
        assert platform.objects() == before
        assert platform.kustomizations({second: "second"}) == {ROOT: "has second: Ready"}
    finally:
        platform.remove()


def _seen(flux: RealFlux, case: PlatformCommit) -> list[str]:
    """Move the pin of a cluster from the tree before to the commit, and return what became of it."""
    facts = {"kind": "ConfigMap", "metadata": {"name": "cluster-facts", "namespace": "flux-system"}}
    flux.apply({**facts, "data": dict(case.facts)})
    platform = Platform(flux, f"acme/{case.name.replace(' ', '-')}")
    try:
        if case.earlier:
            platform.move(platform.commit(case.earlier))
        before = platform.commit(case.before)
        platform.move(before)
        if case.given is not None:
            path = "/apis/data.example.com/v1/namespaces/default/backups"
            flux.world.call("POST", path, case.given)
        objects = platform.objects()
        after = platform.commit(case.changes)
        platform.move(after)
        seen = [*difference(objects, platform.objects())]
        told = platform.kustomizations({before: "before", after: "after"})
    finally:
        platform.remove()
    return seen + [f"{name} {text}" for name, text in sorted(told.items())]


def _row(case: PlatformCommit, seen: list[str]) -> str:
    cells = (case.name, case.reported, case.plan, "<br>".join(seen))
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _write(case: PlatformCommit, seen: list[str]) -> None:
    """Add the line of an outcome that is not there: controllers that race have several."""
    lines, row = TABLE.read_text().splitlines(), _row(case, seen)
    if row not in lines:
        start = next(at for at, line in enumerate(lines) if line.startswith("|---")) + 1
        names = [item.name for item in COMMITS]
        rows = sorted(
            [*lines[start:], row], key=lambda line: names.index(line.split(" | ")[0].removeprefix("| "))
        )
        TABLE.write_text("\n".join([*lines[:start], *rows]) + "\n")
