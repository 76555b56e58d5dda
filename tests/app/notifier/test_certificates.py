"""A certificate that ends soon is announced once, to whoever takes that kind, and so is its end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.recovery.missed_work import wake_notifier
from shared.cluster.divergence.drift import Drift, DriftedField
from shared.cluster.record_parts import Divergence
from shared.kubernetes.kubeconfig import AUTHORITY, SERVER, Certificate
from shared.language.model.notification_kinds import NotificationKind
from shared.notifications.of_clusters import deleted
from tests.support import fleet_files
from tests.support.checks import check
from tests.support.notifications import notifying
from tests.support.notified import OPS, kinds, notified_fleet, titles
from tests.support.one_cluster import ONE, world
from tests.support.pipeline_runs import cloud_with, push, record_of
from tests.support.sweeps import delete_by_hand, sweep

SOON, OVER = (NotificationKind.EXPIRING, "one", False), (NotificationKind.EXPIRING, "one", True)


def with_certificates(cloud: MemoryCloud, server_days: int, authority_days: int = 10_000) -> None:
    """Let the API server have certificates that end so many days from now, and a check see them."""
    now = cloud.clock()
    world(cloud).certificates = (
        Certificate(SERVER, now + timedelta(days=server_days, hours=12)),
        Certificate(AUTHORITY, now + timedelta(days=authority_days, hours=12)),
    )
    announced(cloud)


def announced(cloud: MemoryCloud) -> None:
    check(cloud)
    for _ in range(2):
        wake_notifier(cloud.ports)
        cloud.run(700)


def notified(server_days: int) -> MemoryCloud:
    cloud = cloud_with(notified_fleet("one"), throttle=False)
    with_certificates(cloud, server_days)
    return cloud


def test_a_certificate_that_ends_soon_is_one_message_with_what_to_do() -> None:
    cloud = notified(12)
    assert titles(cloud) == ["example: 1 cluster with a certificate that ends soon in eastus"]
    text = cloud.routes.delivered["ops"][0].text
    assert "Why: the certificate of the API server ends in 12 days: AKS rotates it by itself" in text
    announced(cloud)
    cloud.run(4 * 3600)
    announced(cloud)
    assert kinds(cloud) == [SOON], "what stays as it is is announced once"


def test_one_that_lasts_is_not_announced_and_is_once_its_end_is_near() -> None:
    cloud = notified(31)
    assert kinds(cloud) == []
    cloud.clock.advance(3 * 86400)
    announced(cloud)
    assert kinds(cloud) == [SOON]


def test_its_rotation_is_announced_and_so_is_another_one_that_ends_soon() -> None:
    cloud = notified(12)
    with_certificates(cloud, 700)
    assert kinds(cloud) == [SOON, OVER]
    with_certificates(cloud, 700, 3)
    assert kinds(cloud) == [SOON, OVER, SOON]


def test_it_is_over_with_its_cluster() -> None:
    cloud = notified(12)
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    announced(cloud)
    assert OVER in kinds(cloud)
    cloud = notified(12)
    push(cloud, notifying(fleet_files.fleet(), OPS))
    cloud.run()
    announced(cloud)
    assert kinds(cloud) == [SOON, OVER]


def test_the_delete_of_a_cluster_says_at_once_which_of_its_problems_are_over() -> None:
    cloud = notified(12)
    facts = list(deleted(record_of(cloud, ONE.name), cloud.clock()))
    assert [(fact.kind, fact.key, fact.over) for fact in facts] == [
        (NotificationKind.EXPIRING, "certificate:one", True),
        (NotificationKind.DELETED, "cluster:one", False),
    ]
    drift = Drift((DriftedField("tags.a", '"b"', '"c"', cloud.clock()),))
    facts = list(deleted(replace(record_of(cloud, ONE.name), divergence=Divergence(drift)), cloud.clock()))
    assert [fact.kind for fact in facts if fact.over] == [NotificationKind.DRIFT, NotificationKind.EXPIRING]
