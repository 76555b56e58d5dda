"""The certificates of an API server, as a check sees them: what ends soon is said, and is no failure."""

from __future__ import annotations

from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.why import why_view
from shared.cluster.record_parts import Phase
from shared.kubernetes.kubeconfig import AUTHORITY, SERVER, Certificate
from tests.support.checks import check
from tests.support.one_cluster import ready, world
from tests.support.pipeline_runs import phases
from tests.support.roadstead_command import on_terminal, plain
from tests.support.served_api import served

pytestmark = pytest.mark.lives


def checked(server_days: int, authority_days: int = 10_000) -> MemoryCloud:
    """Return a cloud whose cluster was checked; its certificates end so many days after that."""
    cloud = ready()
    now = cloud.clock()
    world(cloud).certificates = (
        Certificate(SERVER, now + timedelta(days=server_days, hours=12)),
        Certificate(AUTHORITY, now + timedelta(days=authority_days, hours=12)),
    )
    check(cloud)
    return cloud


def ending(cloud: MemoryCloud) -> list[str]:
    found = why_view("one", cloud.ports)
    assert found is not None
    return [certificate["message"].partition(":")[0] for certificate in found["certificates"]]


@pytest.mark.parametrize(
    ("server", "authority", "messages"),
    [
        (400, 10_000, []),
        (31, 10_000, []),
        (12, 10_000, ["the certificate of the API server ends in 12 days"]),
        (
            *(12, 3),
            [
                "the certificate of the certificate authority ends in 3 days",
                "the certificate of the API server ends in 12 days",
            ],
        ),
        (-2, 10_000, ["the certificate of the API server has ended"]),
    ],
)
def test_a_certificate_is_said_30_days_before_its_end_and_the_cluster_stays_ready(
    server: int, authority: int, messages: list[str]
) -> None:
    cloud = checked(server, authority)
    assert ending(cloud) == messages
    assert phases(cloud) == {"one": Phase.READY}


def test_a_certificate_that_was_rotated_is_no_longer_said() -> None:
    cloud = checked(12)
    world(cloud).certificates = (Certificate(SERVER, cloud.clock() + timedelta(days=700)),)
    check(cloud)
    assert ending(cloud) == []


@pytest.mark.parametrize("columns", [80, 120])
def test_status_and_why_show_them(columns: int) -> None:
    with served(checked(12).ports) as url:
        for command in (("status", "one"), ("why", "one")):
            _, shown = on_terminal(*command, columns=columns, rows=60, ROADSTEAD_URL=url)
            rows = [row.rstrip() for row in plain(shown).splitlines()]
            assert max(map(len, rows)) <= columns
            assert "certificate the certificate of the API server ends in 12 days:" in " ".join(
                " ".join(rows).split()
            )
        _, shown = on_terminal("status", columns=columns, ROADSTEAD_URL=url)
    assert "1 cluster has a certificate that ends soon: roadstead why NAME" in plain(shown)
