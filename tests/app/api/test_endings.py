"""What ends: versions that leave support and certificates, as the API says it of the whole fleet."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.clusters import fleet_view
from shared.app.api.views.versions import versions_view
from shared.frozen import replace
from shared.kubernetes.kubeconfig import AUTHORITY, SERVER, Certificate
from shared.ports import Ports
from tests.support.checks import check
from tests.support.one_cluster import world
from tests.support.pipeline_runs import ready


def at(cloud: MemoryCloud, now: datetime) -> Ports:
    return replace(cloud.ports, clock=lambda: now)


def test_a_version_is_named_from_180_days_before_its_end_with_its_clusters_and_what_to_do() -> None:
    cloud = ready("one", "two")
    assert versions_view(cloud.ports)["ends"] == []
    assert fleet_view(cloud.ports)["endingCount"] == 0
    last = datetime(2027, 6, 30, tzinfo=UTC)
    before, after = last - timedelta(days=181), last - timedelta(days=180)
    assert versions_view(at(cloud, before))["ends"] == []
    (end,) = versions_view(at(cloud, after))["ends"]
    assert (end["what"], end["on"]) == ("Kubernetes 1.36", "2027-06-30")
    assert (end["clusterCount"], end["clusters"]) == (2, ["one", "two"])
    assert "in 180 days: upgrade to a newer version" in end["message"]
    assert end["source"].startswith("https://")
    fleet = fleet_view(at(cloud, after))
    assert (fleet["endingCount"], fleet["ending"]) == (2, ["one", "two"])


def test_a_certificate_is_named_from_thirty_days_before_its_end() -> None:
    cloud = ready("one")
    now = cloud.clock()
    world(cloud).certificates = (
        Certificate(SERVER, now + timedelta(days=12, hours=12)),
        Certificate(AUTHORITY, now + timedelta(days=10_000)),
    )
    check(cloud)
    (end,) = versions_view(cloud.ports)["ends"]
    assert (end["what"], end["clusters"], end["source"]) == ("certificate of the API server", ["one"], "")
    assert "ends in 12 days: AKS rotates it by itself" in end["message"]
    assert fleet_view(cloud.ports)["ending"] == ["one"]
