"""What moves by itself inside a tree that is pinned."""

from __future__ import annotations

from typing import Any

import pytest

from shared.platform.changes.guards import judge
from shared.platform.changes.moving import Movement, moving_parts
from tests.platform.inventories import deployment, inventory, manifest, owner, release

SOURCE = "source.toolkit.fluxcd.io/v1"


def chart(version: str | None, kind: str = "HelmRepository") -> dict[str, Any]:
    spec = {"chart": "grafana", "sourceRef": {"kind": kind, "name": "charts"}}
    return release("a/x", chart={"spec": spec | ({"version": version} if version else {})})


def source(kind: str, **spec: Any) -> dict[str, Any]:
    return manifest(kind, "flux-system/other", SOURCE, spec=spec)


@pytest.mark.parametrize(
    ("given", "field", "value", "why"),
    [
        (chart("61.x"), "spec.chart.spec.version", "61.x", Movement.CHART),
        (chart(">=1.0.0 <2"), "spec.chart.spec.version", ">=1.0.0 <2", Movement.CHART),
        (chart(None), "spec.chart.spec.version", "*", Movement.CHART),
        (source("OCIRepository"), "spec.ref.tag", "latest", Movement.TAG),
        (source("OCIRepository", ref={"tag": "1.0.0"}), "spec.ref.tag", "1.0.0", Movement.TAG),
        (source("OCIRepository", ref={"semver": "1.x"}), "spec.ref.semver", "1.x", Movement.RANGE),
        (source("GitRepository"), "spec.ref.branch", "master", Movement.BRANCH),
        (source("GitRepository", ref={"branch": "main"}), "spec.ref.branch", "main", Movement.BRANCH),
        (source("GitRepository", ref={"semver": "1.x"}), "spec.ref.semver", "1.x", Movement.RANGE),
        (source("Bucket", bucketName="charts"), "spec.bucketName", "charts", Movement.BUCKET),
        (
            manifest(
                "ImageUpdateAutomation",
                "flux-system/images",
                "image.toolkit.fluxcd.io/v1",
                spec={"git": {"push": {"branch": "main"}}},
            ),
            "spec.git.push.branch",
            "main",
            Movement.COMMITS,
        ),
        (
            deployment("a/b", "registry.example:5000/app"),
            "spec.template.spec.containers[b].image",
            "registry.example:5000/app",
            Movement.IMAGE,
        ),
        (
            deployment("a/b", "app:latest"),
            "spec.template.spec.containers[b].image",
            "app:latest",
            Movement.IMAGE,
        ),
    ],
)
def test_it_is_named_with_its_field(given: dict[str, Any], field: str, value: str, why: Movement) -> None:
    (found,) = moving_parts(inventory(owner("p", given)))
    assert (found.field, found.value, found.why) == (field, value, why)


@pytest.mark.parametrize(
    "given",
    [
        chart("61.3.2"),
        chart("v1.0.0-rc.1+build"),
        chart(None, "GitRepository"),
        source("OCIRepository", ref={"digest": "sha256:aa", "tag": "1"}),
        source("GitRepository", ref={"commit": "aa", "branch": "main"}),
        source("GitRepository", ref={"tag": "v1"}),
        source("GitRepository", ref={"name": "refs/tags/v1"}),
        deployment("a/b", "registry.example/app:1.0"),
        deployment("a/b", "registry.example/app@sha256:aa"),
        manifest("ConfigMap", "a/b", spec=None),
    ],
)
def test_what_is_pinned_is_not_named(given: dict[str, Any]) -> None:
    assert not moving_parts(inventory(owner("p", given)))


def test_a_change_names_what_did_not_move_before() -> None:
    old = inventory(owner("p", chart("61.x")), unfollowed=("https://example.com/base?ref=main",))
    new = inventory(
        owner("p", chart("61.x"), deployment("a/b", "app")), unfollowed=("https://example.com/base?ref=main",)
    )
    change = judge(old, new, 20)
    assert [part.why for part in change.moving] == [Movement.IMAGE, Movement.CHART, Movement.REMOTE]
    assert [part.why for part in change.new_moving] == [Movement.IMAGE]
